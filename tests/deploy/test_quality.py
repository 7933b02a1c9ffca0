"""Metrics with intervals, flips, and the traps between a model and its conversions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_runtimes
from families import fitted, texts
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, get_scorer, mean_absolute_error, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bitwatt.deploy.given import loading
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.judging import asking, doubts, drifting, edges, quality
from bitwatt.deploy.making import building
from bitwatt.deploy.records import Artefact, Case, Precision, Quality, Scenario
from bitwatt.errors import BitwattError

NATIVE, ONNX = "sklearn-fp64", "onnx-fp32"


def case_of(scores: Any, y: Any, classes: Any = (0, 1, 2), **told: Any) -> Case:
    return Case(
        LogisticRegression(),
        "sklearn",
        "m",
        np.zeros((len(scores), 2)),
        np.asarray(y),
        "predict_proba",
        classes,
        **told,
    )


def judged(case: Case, native: Any, mine: Any, name: str = ONNX, mode: str = "fp32") -> Quality:
    integer = 1 if mode == "int8" else 0
    artefact = Artefact(name, name, "", (), case.method, precision=Precision(mode, 2, integer, 10, 10 * integer))
    return quality.judge(case, Scenario(name, artefact=artefact), {NATIVE: native, name: mine}, {"native": NATIVE})


def test_accuracy_has_wilsons_interval() -> None:
    """Wilson 1927, the score interval: 81 of 263 (Newcombe 1998, table I): 0.2553 to 0.3662."""
    low, high = quality.wilson(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


def test_mcnemar_is_exact() -> None:
    """10 rows only we get right and 2 only they do: 2 * (1 + 12 + 66) / 2^12 = 0.03857."""
    ours = np.array([True] * 10 + [False] * 2 + [True] * 50)
    theirs = np.array([False] * 10 + [True] * 2 + [True] * 50)
    assert quality.mcnemar(ours, theirs) == pytest.approx(2 * (1 + 12 + 66) / 4096)
    assert quality.mcnemar(ours, ours) == 1.0


def test_flips_are_counted_where_accuracy_stays() -> None:
    native = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    mine = np.eye(3)[[1, 0, 2, 0, 1, 2]]
    found = judged(case_of(native, [0, 0, 2, 0, 1, 2]), native, mine, mode="int8")
    assert found.value == judged(case_of(native, [0, 0, 2, 0, 1, 2]), native, native).value == 5 / 6
    assert (found.flips, found.max_difference, found.mcnemar_p) == (2, 1.0, 1.0)
    assert found.per_class == {"0": pytest.approx(2 / 3), "1": 1.0, "2": 1.0}
    assert found.balanced == pytest.approx((2 / 3 + 1 + 1) / 3)
    assert any("2 of 6 labels flip" in one for one in found.warnings)


def test_wrong_scores_under_right_labels_are_found() -> None:
    """As a converter does that takes softmax for one against the rest: labels are equal, scores are not."""
    draw = np.random.default_rng(0).normal(size=(50, 3))
    softmax = np.exp(draw) / np.exp(draw).sum(axis=1, keepdims=True)
    apart = 1 / (1 + np.exp(-draw))
    found = judged(case_of(softmax, draw.argmax(1)), softmax, apart / apart.sum(axis=1, keepdims=True))
    assert found.flips == 0
    assert any("no label flips, but scores differ" in one for one in found.warnings)
    assert judged(case_of(softmax, draw.argmax(1)), softmax, softmax + 1e-7).warnings == ()


def test_the_cast_to_float32_is_named_with_its_cause(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(1500, 5))
    y = (rows @ [1.0, -1.0, 0.5, 0.2, 0.0] > 0).astype(int)
    rows[:, 2] += 1e7
    case = loading.case(make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, y), rows, y)
    chosen = (NATIVE, ONNX, "onnx-fp64")
    found = {one.name: one.quality for one in quality.judged(case, building.build_all(case, tmp_path, chosen))}
    cured = found["onnx-fp64"]
    assert cured is not None
    assert cured.flips == 0
    assert (cured.max_difference or 0) < 1e-12
    onnx = found[ONNX]
    assert onnx is not None
    assert onnx.flips
    assert any("the input 2 has values around 1e+07" in one and "float64" in one for one in onnx.warnings)
    assert doubts.coarsest(rows - [0, 0, 1e7, 0, 0]) is None


def test_results_that_are_no_numbers_are_told() -> None:
    native = np.eye(3)[[0, 1, 2]]
    mine = native.copy()
    mine[1, 1] = np.nan
    assert any("1 results are NaN" in one for one in judged(case_of(native, [0, 1, 2]), native, mine).warnings)


def test_values_that_are_no_numbers_cost_their_scenario_its_metric_and_no_other() -> None:
    y = np.arange(20.0)
    case = Case(None, "sklearn", "m", np.zeros((20, 2)), y, "predict")
    found = judged(case, y, np.full(20, np.nan))
    assert found.value is None
    assert any("the metric r2 cannot be computed" in one for one in found.warnings)
    assert judged(case, y, y).value == 1.0


def test_a_metric_that_the_rows_have_no_value_of_is_told_at_once() -> None:
    model, rows, y, _ = fitted("logistic")
    two = LogisticRegression().fit(rows, y == 1)
    with pytest.raises(BitwattError, match="the metric roc_auc cannot be computed"):
        loading.case(two, rows[y == 1], (y == 1)[y == 1], metric="roc_auc")
    model, rows, y, _ = fitted("ridge")
    with pytest.raises(BitwattError, match="the targets are no numbers"):
        loading.case(model, rows, np.where(y > 0, "high", "low"))


def test_the_users_metric_is_a_function_or_a_name() -> None:
    model, rows, y, _ = fitted("logistic")
    scores = model.predict_proba(rows)

    def told(metric: Any) -> tuple[str, float | None, Any]:
        return quality.score(loading.case(model, rows, y, metric=metric), scores)

    labels = scores.argmax(1)
    assert told("f1_macro")[:2] == ("f1_macro", pytest.approx(f1_score(y, labels, average="macro")))
    assert told("roc_auc_ovr")[1] == pytest.approx(roc_auc_score(y, scores, multi_class="ovr"))

    def share_of_zeros(y: Any, found: Any) -> float:
        return float(np.mean(found == 0))

    name, value, interval = told(share_of_zeros)
    assert (name, value) == ("share_of_zeros", np.mean(labels == 0))
    assert interval[0] < value < interval[1]
    with pytest.raises(BitwattError, match="knows no metric"):
        told("f1_mackro")


def test_values_have_r2_and_an_interval() -> None:
    model, rows, y, _ = fitted("ridge")
    case = loading.case(model, rows, y)
    name, value, interval = quality.score(case, model.predict(rows))
    assert name == "r2"
    assert value == pytest.approx(model.score(rows, y))
    assert interval is not None
    assert interval[0] < value < interval[1]
    named = quality.score(loading.case(model, rows, y, metric="neg_mean_absolute_error"), model.predict(rows))
    assert named[1] == pytest.approx(-mean_absolute_error(y, model.predict(rows)))


def test_an_interval_covers_as_often_as_it_says() -> None:
    draw, covered = np.random.default_rng(1), 0
    for _ in range(60):
        values = draw.normal(1.0, 1.0, 80)
        low, high = quality.bootstrap(lambda at, values=values: values[at].mean(), 80) or (0.0, 0.0)
        covered += low < 1.0 < high
    assert 50 <= covered <= 60


def test_a_scenario_that_fails_on_the_rows_is_a_row(tmp_path: Path) -> None:
    model, rows, y, _ = fitted("logistic")
    case = loading.case(model, rows, y)
    [built] = building.build_all(case, tmp_path, (ONNX,))
    assert built.artefact is not None
    (Path(built.artefact.folder) / "model.onnx").write_bytes(b"broken")
    [found] = quality.judged(case, [built])
    assert found.failure.startswith("built, but fails")
    assert found.artefact is None


def test_edge_rows_find_what_the_native_model_refuses(tmp_path: Path) -> None:
    model, rows, y, train = fitted("logistic")
    case = loading.case(model, rows, y, train=train)
    scenarios = building.build_all(case, tmp_path, (NATIVE, ONNX))
    found = edges.checked(case, scenarios, asking.asked(case, scenarios))
    assert found[ONNX].passed is False
    assert found[ONNX].told == "missing numbers: sklearn-fp64 refuses it (ValueError), this answers"
    assert found[NATIVE].passed
    assert "answers zeros, the highest values" in found[NATIVE].told
    assert found[NATIVE].told.endswith("refuses missing numbers (ValueError)")
    checks = {one.name: one.passed for one in drifting.checks(case)}
    assert checks == {"input drift": True, "class balance": True}


def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(toy_runtimes.install(packages)))


@pytest.mark.parametrize(
    ("manners", "said"),
    [
        ({"fails": "crash"}, "killed by SIGABRT on the rows given"),
        ({"fails": "exit"}, "out of luck"),
        ({"fails": "hang"}, "hung for 15 s"),
        ({"fails": "load"}, "ValueError: this model is broken"),
    ],
)
def test_a_runtime_that_crashes_when_it_is_asked_is_a_row(
    manners: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not end this process, and the scenarios around it are judged."""
    toys(tmp_path, monkeypatch)
    case = Case(None, "sklearn", "m", np.arange(20.0), np.arange(20.0), "predict")
    ways = {"before": {}, "bad": manners, "after": {}}
    scenarios = [Scenario(name, "toy", artefact=toy_runtimes.toy(name, **told)) for name, told in ways.items()]
    answers = asking.asked(case, scenarios, tmp_path, timeout_s=15.0)
    found = {one.name: one for one in quality.judged(case, scenarios, answers)}
    assert said in found["bad"].failure
    assert found["bad"].quality is None
    for name in ("before", "after"):
        assert found[name].failure == ""
        assert found[name].quality is not None
        assert found[name].quality.value == 1.0


def test_a_crash_on_unusual_rows_alone_costs_no_quality(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toys(tmp_path, monkeypatch)
    case = Case(None, "sklearn", "m", np.arange(20.0), np.arange(20.0), "predict")
    bad = Scenario("bad", "toy", artefact=toy_runtimes.toy("bad", fails="crash", after=1), baseline="native")
    answers = asking.asked(case, [bad], tmp_path)
    [judged] = quality.judged(case, [bad], answers)
    assert judged.quality is not None
    edge = edges.checked(case, [bad], answers)["bad"]
    assert edge.passed is False
    assert "does not survive them: the process was killed by SIGABRT on zeros" in edge.told


def test_rows_without_one_of_the_classes_have_a_log_loss() -> None:
    """And names of classes need not be numbers."""
    model, rows, y, _ = fitted("logistic")
    some = y != 2
    scores = model.predict_proba(rows)
    found = quality.score(loading.case(model, rows[some], y[some], metric="neg_log_loss"), scores[some])
    assert found[1] == pytest.approx(np.log(scores[some, y[some]]).mean())
    names = np.array(["no", "yes"])[(y[some] == 1).astype(int)]
    two = LogisticRegression().fit(rows[some], names)
    numbers = LogisticRegression().fit(rows[some], names == "yes")
    for name in ("neg_log_loss", "average_precision", "neg_brier_score", "roc_auc"):
        case = loading.case(two, rows[some], names, metric=name)
        expected = get_scorer(name)(numbers, rows[some], names == "yes")
        assert quality.score(case, two.predict_proba(rows[some]))[1] == pytest.approx(expected), name


def test_a_metric_of_scores_is_not_computed_from_labels() -> None:
    model, rows, y, _ = fitted("logistic")
    with pytest.raises(BitwattError, match="it is of scores, and predict gives labels"):
        loading.case(model, rows, y, metric="roc_auc_ovr", method="predict")


def test_edge_rows_of_tables_and_texts_are_in_their_form() -> None:
    _, rows, _, _ = fitted("columns")
    made = dict(edges.rows(rows))
    assert set(made["a category never seen"]["colour"]) == {"never-seen"}
    assert (made["zeros"].dtypes == rows.dtypes).all()
    assert all(rows_of.count(row) == 1 for row in made.values())
    assert "capitals beyond ASCII" in dict(edges.rows(texts()))


@pytest.mark.parametrize("changed", [False, True])
def test_drift_is_found_where_there_is_some(changed: bool) -> None:
    draw = np.random.default_rng(0)
    train, rows = draw.normal(size=(800, 6)), draw.normal(size=(400, 6))
    rows[:, 4] += 0.8 * changed
    model = LogisticRegression().fit(train, train[:, 0] > 0)
    found = drifting.drift(loading.case(model, rows, train=train))
    assert found.passed is not changed
    assert ("4 (0." in found.told) == changed
    assert drifting.drift(loading.case(model, rows)).passed is None


def test_rare_classes_are_named() -> None:
    model, rows, y, _ = fitted("logistic")
    at = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1), np.flatnonzero(y == 2)[:2]])
    found = drifting.balance(loading.case(model, rows[at], y[at]))
    assert found.passed is False
    assert "accuracy hardly shows 2" in found.told


@pytest.mark.parametrize("form", ["array", "frame", "texts", "tensor", "tuple", "sparse"])
def test_rows_are_counted_and_taken_in_every_form(form: str) -> None:
    import pandas as pd
    import scipy.sparse
    import torch

    array = np.arange(12.0).reshape(6, 2)
    tensor = torch.from_numpy(array)
    rows = {
        "array": array, "frame": pd.DataFrame(array, columns=["a", "b"]), "texts": list("abcdef"), "tensor": tensor,
        "tuple": (tensor, tensor[:, :1]), "sparse": scipy.sparse.coo_matrix(array),
    }[form]  # fmt: skip
    assert rows_of.count(rows) == 6
    for index in (slice(1, 4), np.array([5, 0, 2])):
        some = rows_of.take(rows, index)
        assert rows_of.count(some) == 3
        assert type(some) is type(rows) or form == "sparse"
    assert rows_of.digest(rows_of.take(rows, slice(0, 6))) == rows_of.digest(rows)
    assert rows_of.digest(rows_of.take(rows, np.array([1, 0, 2, 3, 4, 5]))) != rows_of.digest(rows)
