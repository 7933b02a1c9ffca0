"""What watching adds to calls of estimators: microseconds for each, and the share of the fit's own time.

    python benchmarks/overhead_estimators.py [--rounds 15] [--seconds 30] [--only kmeans,grids] [--block 0.1] [--json F]
    python benchmarks/overhead_estimators.py --quick    # calls and plain grids, scikit-learn alone, under 4 minutes

Each round times three blocks of the same calls in random order: plain, plain again (the A/A control), watched. Time is
the process's own (`time.process_time`), with one thread, so that neighbours on the machine count for less. Opening and
closing a session costs the same milliseconds whatever happens inside; a plain block pays them too, for a session
opened and closed before its calls. What is left between the blocks is all that watching adds: at each call, inside
it, and when the session closes. Printed is the median over the rounds of the share that a block takes longer than
the plain one of its round, and the 95 % interval of that median. Read it beside its control: a difference no larger
than that is noise. Rounds that would take longer than `--seconds` in all are fewer, but five. The meter reads its
sensors on a thread of its own while a session is open, which is part of a watched block; `--no-meter` leaves it out.
What a session costs to open and to close, with nothing inside, is printed first.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import random
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn import (
    cluster,
    decomposition,
    ensemble,
    gaussian_process,
    linear_model,
    manifold,
    mixture,
    naive_bayes,
    neighbors,
    neural_network,
    preprocessing,
    svm,
    tree,
)  # fmt: skip
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs, make_classification, make_regression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import bitwatt

Call = Callable[[], Any]

#: What issue 4 asks for: microseconds for each call of a method, shares of a fit and of a search.
BARS = {"calls": 20.0, "plain grids": 0.01, "fits": 0.02, "searches": 0.01, "grids": 0.01}
#: Groups of `--quick`, and the seconds that one of their workloads may take.
QUICK, QUICK_SECONDS = ("calls", "plain grids"), 8.0


@dataclass(frozen=True)
class Result:
    """Of one workload: seconds of a plain call, what watching adds to it and the control's difference; watched methods
    and counted inner calls (probes) of one call."""

    group: str
    name: str
    plain: float
    added: float
    control: float
    methods: float
    probes: float
    low: float = 0.0  # seconds that watching adds, by the interval
    high: float = 0.0

    @property
    def share(self) -> float:
        return self.added / self.plain

    @property
    def by_method(self) -> float:
        """Microseconds for each method."""
        return 1e6 * self.added / self.methods

    @property
    def holds(self) -> bool:
        return (self.by_method if self.group == "calls" else self.share) <= BARS[self.group]


def classes(rows: int = 1000, features: int = 20, kinds: int = 2) -> tuple[Any, Any]:
    found = make_classification(rows, features, n_informative=8, n_classes=kinds, random_state=0)
    return found[0], found[1]


def hot_calls() -> dict[str, Call]:
    """One row, or a few, at a time: the calls of a service, or of learning from a stream."""
    X, y = classes()
    row, few, some = X[:1], X[:10], y[:10]
    line = linear_model.LinearRegression().fit(X, y)
    scale = preprocessing.StandardScaler().fit(X)
    pipe = make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()).fit(X, y)
    grown = tree.DecisionTreeClassifier(random_state=0).fit(X, y)
    near = neighbors.KNeighborsClassifier().fit(X, y)
    vectors = svm.SVC().fit(X, y)
    forest = ensemble.RandomForestClassifier(10, random_state=0).fit(X, y)
    stream = linear_model.SGDClassifier(random_state=0)
    bayes = naive_bayes.GaussianNB()
    means = cluster.MiniBatchKMeans(4, random_state=0)
    return {
        "LinearRegression.predict, 1 row": lambda: line.predict(row),
        "StandardScaler.transform, 1 row": lambda: scale.transform(row),
        "Pipeline.predict_proba, 1 row": lambda: pipe.predict_proba(row),
        "DecisionTree.predict, 1 row": lambda: grown.predict(row),
        "KNeighbors.predict, 1 row": lambda: near.predict(row),
        "SVC.predict, 1 row": lambda: vectors.predict(row),
        "RandomForest(10).predict, 1 row": lambda: forest.predict(row),
        "SGDClassifier.partial_fit, 10 rows": lambda: stream.partial_fit(few, some, classes=[0, 1]),
        "GaussianNB.partial_fit, 10 rows": lambda: bayes.partial_fit(few, some, classes=[0, 1]),
        "MiniBatchKMeans.partial_fit, 10 rows": lambda: means.partial_fit(few),
    }


def plain_grids() -> dict[str, Call]:
    """Searches over fits of milliseconds, of the estimators that most begin with."""
    small, middle, large = classes(200), classes(), classes(8000, 40)
    forest = functools.partial(ensemble.RandomForestClassifier, random_state=0)
    strengths, depths = {"C": [0.1, 1.0, 10.0]}, {"max_depth": [3, None]}
    return {
        "LogisticRegression, 8,000 rows": functools.partial(
            _searched, linear_model.LogisticRegression(), strengths, *large
        ),
        "LogisticRegression, 1,000 rows": functools.partial(
            _searched, linear_model.LogisticRegression(), strengths, *middle
        ),
        "KNeighbors, 1,000 rows": functools.partial(
            _searched, neighbors.KNeighborsClassifier(), {"n_neighbors": [3, 5, 9]}, *middle
        ),
        "SVC, 1,000 rows": functools.partial(_searched, svm.SVC(), strengths, *middle),
        "RandomForest(10), 200 rows": functools.partial(_searched, forest(10), depths, *small),
        "RandomForest(50), 1,000 rows": functools.partial(_searched, forest(50), depths, *middle),
    }


def fits() -> dict[str, Call]:
    """Short fits, of 1 to 100 ms, where watching is felt most."""
    X, y = classes()
    X4, y4 = classes(1500, 20, 4)
    small, target = make_regression(200, 10, noise=1.0, random_state=0)
    blobs = make_blobs(2000, 8, centers=8, random_state=0, cluster_std=4.0)[0]
    counts = np.abs(X)
    known = np.round(np.abs(target) / 10)
    few = {"random_state": 0}
    return {
        "LinearRegression": lambda: linear_model.LinearRegression().fit(X, y),
        "Ridge cholesky": lambda: linear_model.Ridge().fit(X, y),
        "LogisticRegression lbfgs": lambda: linear_model.LogisticRegression().fit(X, y),
        "LogisticRegression newton-cg": lambda: linear_model.LogisticRegression(solver="newton-cg").fit(X4, y4),
        "LogisticRegression saga": lambda: linear_model.LogisticRegression(solver="saga", max_iter=20).fit(X, y),
        "PoissonRegressor": lambda: linear_model.PoissonRegressor().fit(small, known),
        "HuberRegressor": lambda: linear_model.HuberRegressor().fit(small, target),
        "LassoCV": lambda: linear_model.LassoCV(cv=3).fit(small, target),
        "SGDClassifier": lambda: linear_model.SGDClassifier(**few).fit(X, y),
        "LinearSVC": lambda: svm.LinearSVC(**few).fit(X, y),
        "SVC": lambda: svm.SVC().fit(X, y),
        "KMeans lloyd": lambda: cluster.KMeans(8, n_init=1, **few).fit(blobs),
        "KMeans elkan": lambda: cluster.KMeans(8, n_init=1, algorithm="elkan", **few).fit(blobs),
        "KMeans, small, 10 starts": lambda: cluster.KMeans(3, n_init=10, **few).fit(small),
        "MiniBatchKMeans": lambda: cluster.MiniBatchKMeans(8, n_init=1, **few).fit(blobs),
        "DBSCAN": lambda: cluster.DBSCAN(2.0).fit(blobs),
        "AgglomerativeClustering": lambda: cluster.AgglomerativeClustering(4).fit(small),
        "MeanShift": lambda: cluster.MeanShift(bandwidth=4.0, max_iter=20).fit(small),
        "GaussianMixture": lambda: mixture.GaussianMixture(3, **few).fit(X),
        "PCA": lambda: decomposition.PCA(5).fit(X),
        "TruncatedSVD": lambda: decomposition.TruncatedSVD(5, **few).fit(X),
        "NMF": lambda: decomposition.NMF(4, max_iter=50, tol=0, **few).fit(counts),
        "FastICA": lambda: decomposition.FastICA(5, **few).fit(X),
        "DictionaryLearning": lambda: decomposition.MiniBatchDictionaryLearning(5, max_iter=5, **few).fit(small),
        "TSNE": lambda: manifold.TSNE(max_iter=250, **few).fit(small[:100]),
        "MLP adam": lambda: neural_network.MLPClassifier((20,), max_iter=10, **few).fit(X, y),
        "MLP lbfgs": lambda: neural_network.MLPClassifier((20,), solver="lbfgs", max_iter=30, **few).fit(X, y),
        "GaussianProcess": lambda: gaussian_process.GaussianProcessRegressor(normalize_y=True).fit(small, target),
        "KNeighbors fit and predict": lambda: neighbors.KNeighborsClassifier().fit(X, y).predict(X),
        "DecisionTree": lambda: tree.DecisionTreeClassifier(**few).fit(X, y),
        "RandomForest, 20 trees": lambda: ensemble.RandomForestClassifier(20, **few).fit(X, y),
        "ExtraTrees, 20 trees": lambda: ensemble.ExtraTreesRegressor(20, **few).fit(small, target),
        "GradientBoosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=20, **few).fit(X, y),
        "HistGradientBoosting": lambda: ensemble.HistGradientBoostingClassifier(max_iter=20, **few).fit(X, y),
        "AdaBoost": lambda: ensemble.AdaBoostClassifier(n_estimators=20, **few).fit(X, y),
        "Bagging of trees": lambda: ensemble.BaggingClassifier(n_estimators=10, **few).fit(X, y),
    } | boosters(X, y)  # fmt: skip


def boosters(X: Any, y: Any) -> dict[str, Call]:
    import catboost
    import lightgbm
    import xgboost

    light, extreme = {"n_jobs": 1, "verbose": -1}, {"n_jobs": 1}
    quiet = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
    rows, labels = classes(5000, 20)
    return {
        "LightGBM, 20 rounds": lambda: lightgbm.LGBMClassifier(n_estimators=20, **light).fit(X, y),
        "LightGBM, 100 rounds": lambda: lightgbm.LGBMClassifier(n_estimators=100, **light).fit(rows, labels),
        "XGBoost, 20 rounds": lambda: xgboost.XGBClassifier(n_estimators=20, **extreme).fit(X, y),
        "XGBoost, 100 rounds": lambda: xgboost.XGBClassifier(n_estimators=100, **extreme).fit(rows, labels),
        "CatBoost, 20 rounds": lambda: catboost.CatBoostClassifier(n_estimators=20, **quiet).fit(X, y),
    }


def searches() -> dict[str, Call]:
    """Short ones, where watching is felt most."""
    X, y = classes()
    pipe = make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression())
    forest = ensemble.RandomForestClassifier(10, random_state=0)
    return {
        "GridSearchCV, scaler + LogisticRegression": lambda: GridSearchCV(
            pipe, {"logisticregression__C": [0.01, 0.1, 1.0, 10.0]}, cv=5
        ).fit(X, y),
        "GridSearchCV, RandomForest": lambda: GridSearchCV(forest, {"max_depth": [3, 6, None]}, cv=5).fit(X, y),
        "GridSearchCV, SVC": lambda: GridSearchCV(svm.SVC(), {"C": [0.1, 1.0, 10.0]}, cv=5).fit(X, y),
        "cross_val_score, Ridge": lambda: cross_val_score(linear_model.Ridge(), X, y, cv=10),
    }


def grids() -> dict[str, Call]:
    """As people run them: estimators as they come, on data of the size of scikit-learn's own sets, and larger."""
    import lightgbm
    import xgboost

    sets = {"cancer": load_breast_cancer(return_X_y=True), "digits": load_digits(return_X_y=True)}
    scaled = {name: (preprocessing.scale(X), y) for name, (X, y) in sets.items()}
    larger = {"10,000 rows": classes(10_000, 30)}
    pipe = make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression(max_iter=1000))
    seed: dict[str, Any] = {"random_state": 0}
    depths, strengths = {"max_depth": [3, None]}, {"C": [0.1, 1.0, 10.0]}
    asked: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
        ("LogisticRegression", linear_model.LogisticRegression(max_iter=1000), strengths, scaled),
        ("scaler + LogisticRegression", pipe, {"logisticregression__C": [0.1, 1.0, 10.0]}, sets | larger),
        ("SVC", svm.SVC(), strengths, scaled),
        ("KNeighbors", neighbors.KNeighborsClassifier(), {"n_neighbors": [3, 5, 9]}, scaled | larger),
        ("RandomForest(100)", ensemble.RandomForestClassifier(100, **seed), depths, sets),
        ("HistGradientBoosting", ensemble.HistGradientBoostingClassifier(**seed), {"learning_rate": [0.05, 0.1]},
         {"cancer": sets["cancer"]} | larger),
        ("XGBClassifier", xgboost.XGBClassifier(n_jobs=1), {"max_depth": [3, 6]}, {"cancer": sets["cancer"]} | larger),
        ("LGBMClassifier", lightgbm.LGBMClassifier(n_jobs=1, verbose=-1), {"num_leaves": [15, 31]},
         {"cancer": sets["cancer"]} | larger),
    ]  # fmt: skip
    return {
        f"{name}, {size}": functools.partial(_searched, estimator, grid, X, y)
        for name, estimator, grid, data in asked
        for size, (X, y) in data.items()
    }


def _searched(estimator: Any, grid: dict[str, Any], X: Any, y: Any) -> Any:
    return GridSearchCV(estimator, grid, cv=5).fit(X, y)


GROUPS: dict[str, Callable[[], dict[str, Call]]] = {
    "calls": hot_calls, "plain grids": plain_grids, "fits": fits, "searches": searches, "grids": grids,
}  # fmt: skip


METER = [True]  # or False, as the command line says


def session() -> Any:
    return bitwatt.measure("overhead", keep=False, meter=METER[0])


def around() -> tuple[float, float]:
    """Seconds to open and to close a session, of the process."""
    found = []
    for _ in range(15):
        began = time.process_time()
        opened = session()
        opened.__enter__()
        inside = time.process_time()
        opened.__exit__(None, None, None)
        found.append((inside - began, time.process_time() - inside))
    opening, closing = zip(*found, strict=True)
    return statistics.median(opening), statistics.median(closing)


def plain(call: Call, times: int) -> float:
    began = time.process_time()
    with session():
        pass
    for _ in range(times):
        call()
    return time.process_time() - began


def watched(call: Call, times: int) -> float:
    began = time.process_time()
    with session():
        for _ in range(times):
            call()
    return time.process_time() - began


BLOCKS = {"plain": plain, "control": plain, "watched": watched}


def measured(group: str, name: str, call: Call, rounds: int, block: float, seconds: float) -> Result:
    methods, probes = inside(call)  # also warms up
    once = timed(call)
    times = max(round(block / once), 1)
    rounds = max(min(rounds, round(seconds / (len(BLOCKS) * times * once))), 5)
    spent: dict[str, list[float]] = {kind: [] for kind in BLOCKS}
    for _ in range(rounds):
        for kind in random.sample(list(BLOCKS), len(BLOCKS)):
            spent[kind].append(BLOCKS[kind](call, times) / times)
    empty = statistics.median(plain(call, 0) for _ in range(9))  # the session that is part of every block
    alone = [seconds - empty / times for seconds in spent["plain"]]
    shares = {
        kind: sorted((a - b) / c for a, b, c in zip(spent[kind], spent["plain"], alone, strict=True))
        for kind in ("watched", "control")
    }
    added, control = (statistics.median(found) for found in shares.values())
    off = max(math.floor((rounds - 1.96 * math.sqrt(rounds)) / 2), 0)  # ranks that the median is between
    low, high = shares["watched"][off], shares["watched"][-1 - off]
    least = min(alone)
    return Result(group, name, least, *(share * least for share in (added, control)), methods, probes, low * least,
                  high * least)  # fmt: skip


def timed(call: Call) -> float:
    """Seconds of one call, of as many as take a while."""
    times, spent = 1, 0.0
    while spent < 0.02:
        began = time.process_time()
        for _ in range(times):
            call()
        spent, times = time.process_time() - began, 2 * times
    return 2 * spent / times


def inside(call: Call) -> tuple[float, float]:
    """Methods that one call records, and inner calls that it counts."""
    with session() as open_session:
        call()
    rows = list(open_session.run.ledger)
    probes = sum(row.calls * sum(seen[-1] for seen in dict(row.op.args).get("probes", ())) for row in rows)
    return sum(row.calls for row in rows), probes


def line(result: Result) -> str:
    cost = f"{result.by_method:8.1f} µs/method" if result.group == "calls" else f"{100 * result.share:8.2f} %"
    scale = 1e6 / result.methods if result.group == "calls" else 100 / result.plain
    low, high, control = (f"{scale * value:.1f}" for value in (result.low, result.high, result.control))
    counted = f"{result.methods:4.0f} methods {result.probes:6.0f} probes"
    return (
        f"  {result.name:42s} {1000 * result.plain:9.3f} ms {counted} {cost:18s} [{low}, {high}] (control {control})"
        f" {1e6 * result.added:9.0f} µs {'' if result.holds else ' over'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=30.0, help="of processor time for a workload")
    parser.add_argument("--block", type=float, default=0.1, help="seconds of a block of calls, at least one call")
    parser.add_argument("--only", default="", help="words, with commas between: workloads whose names hold one of them")
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}")
    parser.add_argument("--no-meter", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    words = [word.lower() for word in options.only.split(",")]
    METER[0] = not options.no_meter
    seconds = min(options.seconds, QUICK_SECONDS) if options.quick else options.seconds
    results = []
    with threadpool_limits(1):
        print("a session: {:.1f} ms to open, {:.1f} ms to close".format(*(1000 * part for part in around())))
        for group, make in GROUPS.items():
            if options.quick and group not in QUICK:
                continue
            print(f"{group}:")
            for name, call in make().items():
                if any(word in f"{group} {name}".lower() for word in words):
                    results.append(measured(group, name, call, options.rounds, options.block, seconds))
                    print(line(results[-1]), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump([asdict(result) for result in results], file, indent=1)


if __name__ == "__main__":
    main()
