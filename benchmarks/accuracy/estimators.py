"""Every measured fit of tests/data/sklearn_executed*.jsonl beside what bitwatt counts for it.

    python benchmarks/accuracy/estimators.py [--only TEXT] [--worst 40] [--missing]

Each row of the data holds floating-point operations that were really executed, read by the valgrind tool. Printed: for
fit and for predict or transform, the error factor max(p/m, m/p) of `flops` and of BOPs (64 bits for each float64
operation, 32 for each float32 one), and the worst rows.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import statistics
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bitwatt

PART = re.compile(r"(.*) (rows|columns)\[:(\d+)\]")
DATA = Path(__file__).parents[2] / "tests" / "data"
METHODS = (
    "predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "inverse_transform",
    "score_samples", "kneighbors", "radius_neighbors", "kneighbors_graph", "radius_neighbors_graph", "mahalanobis",
    "score", "predict_joint_log_proba", "apply", "staged_predict", "partial_fit", "fit_predict", "fit_transform",
    "fit_again",
)  # fmt: skip
#: Given the labels too, where there are any.
LABELLED = ("score", "partial_fit", "fit_predict", "fit_transform", "fit_again")


@dataclass(frozen=True)
class Case:
    """One measured call: what was executed and what bitwatt counted."""

    name: str
    method: str
    measured: int
    measured_bops: int
    counted: int
    counted_bops: int
    missing: dict[str, int]
    estimated: int
    paper: int | None = None

    @property
    def ratio(self) -> float:
        return self.counted / self.measured if self.measured else float(not self.counted) or 9.9

    @property
    def is_fit(self) -> bool:
        return self.method.startswith(("fit", "partial_fit"))

    @property
    def error(self) -> float:
        return max(self.ratio, 1 / self.ratio) if self.ratio else 99.0

    @property
    def bops_error(self) -> float:
        ratio = self.counted_bops / self.measured_bops if self.measured_bops else 1.0
        return max(ratio, 1 / ratio) if ratio else 99.0


def rows() -> Iterator[dict[str, Any]]:
    """All but those marked `unsteady`: the last bits of rounding, which differ between processors, lead their solver to
    another number of steps than under the instrument, so that two runs do not do the same work. The mark says how."""
    for file in sorted(DATA.glob("sklearn_executed*.jsonl")):
        yield from (row for row in map(json.loads, file.read_text().splitlines()) if "unsteady" not in row)


def make(row: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The estimator and its data, as in the row."""
    from estimator_data import NAMESPACE, NOTED

    path, _, name = row["cls"].rpartition(".")
    space = dict(NAMESPACE) | vars(importlib.import_module(path))
    space[name] = getattr(importlib.import_module(path), name)
    X, y = NOTED[row["note"]](row, space) if row.get("note") in NOTED else _data(row["data"], space)
    return eval(row["estimator"], space), X, y


def _data(text: str, space: dict[str, Any]) -> tuple[Any, Any]:
    """`blobs(600, 16, centers=8)`, or a part of it: `blobs(600, 16, centers=8) rows[:300]`, `... columns[:3]`."""
    found = PART.fullmatch(text)
    maker, part, stop = found.groups() if found else (text, "", "0")
    X, y = eval(maker, space)
    if part == "rows":
        return X[: int(stop)], None if y is None else y[: int(stop)]
    return (X[:, : int(stop)].copy(), y) if part == "columns" else (X, y)


def weights(row: dict[str, Any], X: Any) -> Any:
    """Sample weights between a half and three halves, from the row's seed for them."""
    return np.random.RandomState(row["weights"]).rand(X.shape[0]) + 0.5


def arguments(estimator: Any, method: str, X: Any, y: Any) -> tuple[Any, ...]:
    if method in LABELLED and y is not None:
        return X, y
    return (estimator.transform(X),) if method == "inverse_transform" else (X,)


def called(estimator: Any, method: str, *given: Any) -> Any:
    """The method's result; of a generator all that it yields. `fit_again` is a second fit, which may start warm."""
    result = getattr(estimator, "fit" if method == "fit_again" else method)(*given)
    return list(result) if method.startswith("staged") else result


def counted(call: Any) -> tuple[Any, bitwatt.Run]:
    with bitwatt.measure(keep=False) as session:
        result = call()
    assert session.run is not None
    return result, session.run


def cases(row: dict[str, Any]) -> Iterator[Case]:
    estimator, X, y = make(row)
    np.random.seed(0)  # for those that draw and were given no seed
    fit_args = (X,) if y is None else (X, y)
    more = {"sample_weight": weights(row, X)} if "weights" in row else {}
    calls = {"fit": lambda: estimator.fit(*fit_args, **more)}
    calls |= {m: (lambda *given, m=m: called(estimator, m, *given)) for m in METHODS if m in row}  # type: ignore[misc]
    for method, call in calls.items():
        given = arguments(estimator, method, X, y) if method != "fit" else ()
        _, run = counted(lambda call=call, given=given: call(*given))
        flops, bops = bitwatt.totals(run), bitwatt.totals(run, "bops")
        truth = row[method]
        yield Case(row["name"], method, truth["f64"] + truth["f32"], 64 * truth["f64"] + 32 * truth["f32"],
                   flops.total, bops.total, flops.missing, flops.coverage.estimated,
                   _paper(run, row["cls"], method))  # fmt: skip


def _paper(run: bitwatt.Run, kind: str, method: str) -> int | None:
    """What the paper's formulas give; None where they have none for this call. What it calls besides may lack one."""
    said = bitwatt.totals(run, "flops:paper")
    own = f".{kind.rpartition('.')[2]}.{method}"
    return said.total if said.total and not any(name.endswith(own) for name in said.missing) else None


def summary(found: list[Case]) -> str:
    if not found:
        return "none"
    errors = sorted(case.error for case in found)
    bops = sorted(case.bops_error for case in found)
    within = sum(e <= 1.1 for e in errors) / len(errors)
    return (f"{len(found)} calls, median {statistics.median(errors):.3f}, 90th {errors[int(0.9 * len(errors))]:.2f}, "
            f"max {errors[-1]:.2f}, within 10 %: {within:.0%}; BOPs median {statistics.median(bops):.3f}, "
            f"max {bops[-1]:.2f}")  # fmt: skip


def _method(path: str, method: str) -> str:
    """As reports name it: `sklearn.feature_extraction.TfidfVectorizer`, without `text`."""
    module, _, name = path.rpartition(".")
    method = "fit" if method == "fit_again" else method
    return ".".join([*module.split(".")[: 2 if module.startswith("sklearn") else 1], name, method])


#: The instrument has no AVX-512: on such processors sums are rounded otherwise, and some solvers take other steps.
_AVX2 = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
}  # fmt: skip


def as_measured() -> None:
    """Start this program again on the code paths that the instrument saw."""
    if any(os.environ.get(name) != value for name, value in _AVX2.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | _AVX2)


def main() -> None:
    as_measured()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of the class's path or the row's name")
    parser.add_argument("--worst", type=int, default=40)
    parser.add_argument(
        "--write", type=Path, help="a JSON file for the errors by method, which docs/reference/estimators.md shows"
    )
    parser.add_argument("--missing", action="store_true", help="also list calls that hold ops without a rule")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(Path(__file__).parent))
    found: list[Case] = []
    by_method: dict[str, list[float]] = {}
    for row in rows():
        if options.only in row["cls"] or options.only in row["name"]:
            for case in cases(row):
                found.append(case)
                if not case.missing and case.measured:
                    by_method.setdefault(_method(row["cls"], case.method), []).append(case.error)
    if options.write:
        options.write.write_text(json.dumps({
            name: {"median": round(statistics.median(errors), 3), "worst": round(max(errors), 2), "calls": len(errors)}
            for name, errors in sorted(by_method.items())
        }, indent=0) + "\n")  # fmt: skip
    known = [case for case in found if not case.missing]
    for method in ("fit", "predict / transform"):
        print(f"{method}: {summary([c for c in known if c.is_fit == (method == 'fit')])}")
    print(f"calls with ops that have no rule: {len(found) - len(known)}")
    for case in sorted(known, key=lambda case: -case.error)[: options.worst]:
        amounts = f"{case.counted:.3g}/{case.measured:.3g}"
        print(f"  {case.name}.{case.method}: counted/executed {case.ratio:.3f} ({amounts}), "
              f"BOPs {case.bops_error:.2f}{', estimated' if case.estimated else ''}")  # fmt: skip
    if options.missing:
        for case in found:
            if case.missing:
                print(f"  {case.name}.{case.method}: {case.missing}")


if __name__ == "__main__":
    main()
