"""What watching adds to calls and searches of estimators, in instructions: a number that neighbours do not change.

    python benchmarks/overhead_instructions.py --fpcount DIR [--only svc,predict]

Words that name a group: "call" for small calls, "search", and "guide" for searches as in guides.

DIR holds the fpcount instrument (valgrind), under which the script starts itself. Each workload runs once plain and
once watched, after a round of both to warm up. Counted apart is what watching adds while the workload runs, and what
closing the session takes beyond one with nothing inside. An instruction is no time: they compare one bitwatt with
another, and shares with those of `overhead_estimators.py`, whose seconds need a quiet machine. The meter, which reads
sensors on a thread of its own, and Python's garbage collector are off. valgrind takes the AVX2 paths of libraries.
"""

from __future__ import annotations

import argparse
import functools
import gc
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from overhead_estimators import classes
from sklearn import (
    cluster,
    decomposition,
    ensemble,
    linear_model,
    naive_bayes,
    neighbors,
    preprocessing,
    svm,
)
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import bitwatt

Call = Callable[[], Any]
#: Calls of a workload that is one small call.
CALLS = 50


def workloads() -> dict[str, Call]:
    return calls() | searches() | guides()


def calls() -> dict[str, functools.partial[Any]]:
    """Of a service, of a stream of ten rows at a time, and fits that take less than a millisecond."""
    X, y = classes()
    row, few, labels = X[:1], X[:10], y[:10]
    scaler, line = preprocessing.StandardScaler().fit(X), linear_model.LinearRegression().fit(X, y)
    logistic, near = linear_model.LogisticRegression().fit(X, y), neighbors.KNeighborsClassifier().fit(X, y)
    steps = preprocessing.MinMaxScaler(), preprocessing.StandardScaler(), decomposition.PCA(5)
    four, pair = make_pipeline(*steps, linear_model.LogisticRegression()), make_pipeline(scaler, linear_model.Ridge())
    descent, bayes = linear_model.SGDClassifier(random_state=0), naive_bayes.GaussianNB()
    means, parts = cluster.MiniBatchKMeans(4, random_state=0, n_init=1), decomposition.IncrementalPCA(5)
    ridge = linear_model.Ridge().fit(X, y)
    four.fit(X, y)
    asked: dict[str, Call] = {
        "StandardScaler.transform": lambda: scaler.transform(row),
        "LinearRegression.predict": lambda: line.predict(row),
        "LogisticRegression.predict": lambda: logistic.predict(row),
        "LogisticRegression.predict_proba": lambda: logistic.predict_proba(row),
        "KNeighborsClassifier.predict": lambda: near.predict(row),
        "pipeline of four, predict": lambda: four.predict(row),
        "Ridge.score": lambda: ridge.score(few, labels),
        "LogisticRegression.score": lambda: logistic.score(few, labels),
        "StandardScaler.fit_transform": lambda: scaler.fit_transform(X),
        "Ridge.fit": lambda: linear_model.Ridge().fit(X, y),
        "LogisticRegression.fit": lambda: linear_model.LogisticRegression().fit(X, y),
        "GaussianNB.fit": lambda: naive_bayes.GaussianNB().fit(X, y),
        "scaler + Ridge, fit": lambda: pair.fit(X, y),
        "SGDClassifier.partial_fit": lambda: descent.partial_fit(few, labels, classes=[0, 1]),
        "GaussianNB.partial_fit": lambda: bayes.partial_fit(few, labels, classes=[0, 1]),
        "MiniBatchKMeans.partial_fit": lambda: means.partial_fit(few),
        "IncrementalPCA.partial_fit": lambda: parts.partial_fit(few),
    }
    return {f"call: {name}": functools.partial(_repeat, call) for name, call in asked.items()}


def searches() -> dict[str, functools.partial[Any]]:
    """Over fits of 2 to 100 ms."""
    X, y = classes()
    strengths = {"C": [0.1, 1.0, 10.0]}
    pipe = make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    forest = ensemble.RandomForestClassifier(10, random_state=0)
    boosting = ensemble.HistGradientBoostingClassifier(max_iter=10, random_state=0)
    asked: dict[str, tuple[Any, dict[str, Any]]] = {
        "LogisticRegression": (linear_model.LogisticRegression(), strengths),
        "Pipeline": (pipe, {f"logisticregression__{name}": values for name, values in strengths.items()}),
        "KNeighbors": (neighbors.KNeighborsClassifier(), {"n_neighbors": [3, 5, 9]}),
        "SVC": (svm.SVC(), strengths),
        "RandomForest(10)": (forest, {"max_depth": [3, None]}),
        "HistGradientBoosting(10)": (boosting, {"learning_rate": [0.05, 0.1]}),
    }
    return {f"search: {name}": functools.partial(_searched, model, grid, X, y) for name, (model, grid) in asked.items()}


def guides() -> dict[str, functools.partial[Any]]:
    """Estimators as they come, on sets that scikit-learn brings along, and on one of 10,000 rows."""
    cancer, digits = load_breast_cancer(return_X_y=True), load_digits(return_X_y=True)
    pipe = make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    forest, boosting = ensemble.RandomForestClassifier, ensemble.HistGradientBoostingClassifier
    asked: dict[str, tuple[Any, dict[str, Any], tuple[Any, Any]]] = {
        "RandomForest(100), breast cancer": (forest(random_state=0), {"max_depth": [3, None]}, cancer),
        "scaler + LogisticRegression, digits": (pipe, {"logisticregression__C": [0.1, 1.0]}, digits),
        "HistGradientBoosting, 10,000 rows": (boosting(random_state=0), {"learning_rate": [0.1]}, classes(10_000)),
        "SVC, digits": (svm.SVC(), {"C": [1.0, 10.0]}, digits),
        "KNeighbors, digits": (neighbors.KNeighborsClassifier(), {"n_neighbors": [3, 5, 9]}, digits),
    }
    return {
        f"guide: {name}": functools.partial(_searched, model, grid, *data)
        for name, (model, grid, data) in asked.items()
    }  # fmt: skip


def _repeat(call: Call) -> None:
    for _ in range(CALLS):
        call()


def _searched(estimator: Any, grid: dict[str, Any], X: Any, y: Any) -> Any:
    return GridSearchCV(estimator, grid, cv=5).fit(X, y)


def _session() -> Any:
    return bitwatt.measure("overhead", keep=False, meter=False)


def _instructions(call: Call) -> int:
    import fpcount  # the instrument puts it on the path

    gc.collect()
    gc.disable()
    before = fpcount._read()
    call()
    after = fpcount._read()
    gc.enable()
    return int(after[2 * len(fpcount.KINDS)] - before[2 * len(fpcount.KINDS)])


def _watched(call: Call) -> tuple[int, int, int]:
    """Instructions of the call and of closing its session; methods that were recorded."""
    opened = _session()
    session = opened.__enter__()
    inside = _instructions(call)
    closing = _instructions(lambda: opened.__exit__(None, None, None))
    return inside, closing, sum(row.calls for row in session.run.ledger)


def child(words: list[str]) -> None:
    warnings.simplefilter("ignore")
    _watched(lambda: None)
    _, empty, _ = _watched(lambda: None)
    for name, call in workloads().items():
        if not any(word in name.lower() for word in words):
            continue
        _watched(call)
        call()
        plain = _instructions(call)
        inside, closing, methods = _watched(call)
        print(_line(name, plain, (inside - plain, closing - empty), methods), flush=True)


def _line(name: str, plain: int, added: tuple[int, int], methods: int) -> str:
    if name.startswith("call: "):
        each = [part / CALLS / 1e3 for part in (plain, *added)]
        return f"{name:42s} {each[0]:8.1f} K plain: {each[1]:6.1f} K + {each[2]:5.1f} K at the close"
    shares = " + ".join(f"{100 * part / plain:5.2f} %" for part in added)
    total = f"{100 * sum(added) / plain:5.2f} %, {sum(added) / methods / 1e3:6.1f} K a method"
    return f"{name:42s} {plain / 1e6:8.1f} M plain, {methods:4d} methods: {shares} at the close = {total}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fpcount", type=Path, required=True, help="the instrument's folder")
    parser.add_argument("--only", default="", help="words, with commas between: workloads whose names hold one of them")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.only.lower().split(","))
        return
    built = os.environ.get("FPCOUNT_OUT") or tempfile.mkdtemp(prefix="fpcount-")
    command = [str(options.fpcount / "fpcount"), sys.executable, __file__, *sys.argv[1:], "--child"]
    subprocess.run(command, env=os.environ | {"FPCOUNT_OUT": built}, check=True)


if __name__ == "__main__":
    main()
