"""Estimators: each method that computes is one op, wherever it runs, and nobody notices."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import bitwatt

RANDOM = np.random.RandomState(0)
X = RANDOM.randn(120, 6)
Y = (X[:, 0] + X[:, 1] > 0).astype(int)


def measured(function: Callable[[], Any]) -> bitwatt.Run:
    with bitwatt.measure("estimators", keep=False) as session:
        function()
    assert session.run is not None
    return session.run


def calls(run: bitwatt.Run) -> Counter[tuple[str, str, str]]:
    found: Counter[tuple[str, str, str]] = Counter()
    for row in run.ledger:
        found[row.phase, row.scope, row.op.name] += row.calls
    return found


def test_a_method_is_an_op_with_its_sizes_and_what_was_found() -> None:
    run = measured(lambda: Ridge(alpha=2.0).fit(X, Y))
    (row,) = run.ledger
    facts = dict(row.op.args)
    assert (row.phase, row.scope, row.op.name) == ("fit", "Ridge", "sklearn.linear_model.Ridge.fit")
    assert facts["X"] == bitwatt.TensorSpec((120, 6), "float64")
    assert facts["alpha"] == 2.0
    assert facts["coef_"] == bitwatt.TensorSpec((6,), "float64")


def test_methods_called_by_methods_are_ops_of_their_own_in_the_phase_of_the_outermost() -> None:
    model = LogisticRegression().fit(X, Y)
    found = calls(measured(lambda: model.score(X, Y)))
    assert {phase for phase, _, _ in found} == {"score"}
    assert {name.rpartition(".")[2] for _, _, name in found} == {"score", "predict", "decision_function"}
    assert {scope for _, scope, _ in found} == {"LogisticRegression"}


def test_steps_have_their_names_and_folds_their_numbers() -> None:
    search = GridSearchCV(Pipeline([("scale", StandardScaler()), ("model", Ridge())]), {"model__alpha": [1, 2]}, cv=3)
    found = calls(measured(lambda: search.fit(X, Y)))
    for fold in (1, 2, 3):
        key = ("fit", f"GridSearchCV.fold {fold}.Pipeline.model", "sklearn.linear_model.Ridge.fit")
        assert found[key] == 2
    assert found["fit", "GridSearchCV.best_estimator.model", "sklearn.linear_model.Ridge.fit"] == 1


def test_user_phases_nest() -> None:
    def program() -> None:
        with bitwatt.phase("tuning"):
            LinearRegression().fit(X, Y).predict(X)

    assert {phase for phase, _, _ in calls(measured(program))} == {"tuning/fit", "tuning/predict"}


NESTED = {
    "grid": lambda n: GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1, 2]}, cv=3, n_jobs=n),
    "vote": lambda n: VotingClassifier([("a", LogisticRegression()), ("b", LogisticRegression(C=2))], n_jobs=n),
    "stack": lambda n: StackingClassifier([("a", LogisticRegression())], LogisticRegression(), cv=3, n_jobs=n),
    "bag": lambda n: BaggingClassifier(LogisticRegression(), 4, n_jobs=n, random_state=0),
    "forest": lambda n: RandomForestClassifier(6, n_jobs=n, random_state=0),
    "columns": lambda n: ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [2])], n_jobs=n),
    "union": lambda n: FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler())], n_jobs=n),
}


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
@pytest.mark.parametrize("name", NESTED)
def test_workers_lose_nothing_and_double_nothing(name: str, backend: str) -> None:
    def fit(jobs: int) -> bitwatt.Run:
        with joblib.parallel_backend(backend, n_jobs=jobs):
            return measured(lambda: NESTED[name](jobs).fit(X, Y))

    alone, together = fit(1), fit(2)
    assert calls(together) == calls(alone)
    assert bitwatt.totals(together).total == bitwatt.totals(alone).total
    assert together.notes == alone.notes == ()


def test_cross_validation_without_an_estimator_around_it() -> None:
    found = calls(measured(lambda: cross_val_score(Ridge(), X, Y, cv=3)))
    fits = {scope for phase, scope, name in found if name.endswith("Ridge.fit")}
    assert fits == {f"fold {i}.Ridge" for i in (1, 2, 3)}


def _plain_state() -> dict[str, Any]:
    from sklearn.utils import all_estimators

    kinds = {parent for _, kind in all_estimators() for parent in kind.__mro__}
    held = [(kind, name, value) for kind in kinds for name, value in vars(kind).items() if callable(value)]
    return {f"{kind.__module__}.{kind.__qualname__}.{name}": value for kind, name, value in held}


def test_everything_is_as_before_afterwards() -> None:
    parallel, state = joblib.Parallel.__call__, _plain_state()
    measured(lambda: Ridge().fit(X, Y))
    with pytest.raises(ValueError, match="inconsistent"):
        measured(lambda: Ridge().fit(X, Y[:5]))
    assert _plain_state() == state
    assert joblib.Parallel.__call__ is parallel
    assert "__init_subclass__" not in vars(BaseEstimator) or vars(BaseEstimator)["__init_subclass__"] is not None


def test_a_fit_that_raises_raises_and_is_remarked() -> None:
    with bitwatt.measure(keep=False) as session, pytest.raises(ValueError, match="inconsistent"):
        Ridge().fit(X, Y[:5])
    assert session.run is not None
    assert any("Ridge.fit raised" in note for note in session.run.notes)


def test_results_copies_pictures_and_signatures_are_the_same() -> None:
    def look() -> list[Any]:
        model = make_pipeline(StandardScaler(), LogisticRegression(C=2)).fit(X, Y)
        return [
            model.predict_proba(X).tobytes(), repr(model), str(clone(model).get_params()), pickle.dumps(model),
            joblib.hash(model), model._repr_html_()[:200], str(inspect.signature(LogisticRegression.fit)),
            str(copy.deepcopy(model).get_params(deep=False)), inspect.isfunction(LogisticRegression.fit),
            str(LogisticRegression().__sklearn_tags__()),
        ]  # fmt: skip

    plain = look()
    with bitwatt.measure(keep=False):
        watched = look()
    for one, other in zip(plain, watched, strict=True):
        if not isinstance(one, str) or "sk-container-id" not in one:
            assert one == other


def test_what_is_pickled_while_measuring_loads_without_us(tmp_path: Path) -> None:
    with bitwatt.measure(keep=False):
        joblib.dump(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), tmp_path / "model.joblib")
    code = (
        "import sys; sys.modules['bitwatt'] = None; import joblib, numpy as np; "
        f"print(joblib.load({str(tmp_path / 'model.joblib')!r}).predict(np.zeros((2, 6))).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(2,)", done.stderr


def test_a_class_made_while_measuring_is_counted_and_left_alone_afterwards() -> None:
    with bitwatt.measure(keep=False) as session:

        class Mine(LinearRegression):
            pass

        Mine().fit(X, Y)
    assert session.run is not None
    assert "sklearn.linear_model.LinearRegression.fit" in {row.op.name for row in session.run.ledger}
    assert not any("bitwatt" in str(getattr(value, "__module__", "")) for value in vars(Mine).values())


def test_a_program_that_imports_scikit_learn_while_measured_is_counted_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import numpy as np\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "X = np.random.RandomState(0).randn(60, 3)\n"
        "LogisticRegression().fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0)\n"
    )
    command = [sys.executable, "-m", "bitwatt", "run", "--quiet", "--store", str(tmp_path), "program.py"]
    subprocess.run(command, cwd=tmp_path, check=True)
    found = calls(bitwatt.load(store=tmp_path))
    assert found["score", "LogisticRegression", "sklearn.base.ClassifierMixin.score"] == 1
    assert {phase for phase, _, _ in found} == {"fit", "score"}
