"""Estimates before fitting (`bitwatt.estimate`) beside what bitwatt counts when the same fit really runs.

    python benchmarks/accuracy/estimates.py [--data tests/data/sklearn_executed.jsonl] [--only TEXT] [--worst 20]

The estimators and inputs are those of the data; the estimate is given them before any fit and takes of them no more
than shapes, dtypes, stored elements and the number of classes. Printed, by module: the median of the factor
max(e/c, c/e) between estimate and count, and the shares of calls within 1.1, 1.3 and 2. Calls that the estimate names
as missing have no factor, and are counted apart. The rules are the same on both sides: this judges what is assumed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimators import DATA, METHODS, arguments, called, counted, make, weights

import bitwatt

#: A call is asked for with data of its own shape, but for those whose argument is what another method gave.
ASKED = tuple(method for method in METHODS if method != "inverse_transform")


def pairs(row: dict[str, Any]) -> Iterator[tuple[str, int | None, int]]:
    """Each method measured in the row: its name, the estimate (None: missing) and the count."""
    estimator, X, y = make(row)
    methods = ("fit", *(method for method in ASKED if method in row))
    guessed = {method: _guessed(estimator, X, y, method) for method in methods}
    given = (X,) if y is None else (X, y)
    more = {"sample_weight": weights(row, X)} if "weights" in row else {}
    _, run = counted(lambda: estimator.fit(*given, **more))
    yield "fit", guessed["fit"], bitwatt.totals(run).total
    for method in methods[1:]:
        told = arguments(estimator, method, X, y)
        _, run = counted(lambda method=method, told=told: called(estimator, method, *told))
        yield method, guessed[method], bitwatt.totals(run).total


def _guessed(estimator: Any, X: Any, y: Any, method: str) -> int | None:
    said = bitwatt.totals(bitwatt.estimate(estimator, X, y, methods=(method,)))
    return None if said.missing else said.total


def factor(estimate: int, count: int) -> float:
    if not estimate or not count:
        return 1.0 if estimate == count else 99.0
    return max(estimate / count, count / estimate)


def summary(factors: list[float]) -> str:
    shares = [f"{sum(one <= most for one in factors) / len(factors):.0%} within {most}" for most in (1.1, 1.3, 2)]
    return f"{len(factors)} calls, median {statistics.median(factors):.2f}, {', '.join(shares)}"


def module_of(row: dict[str, Any]) -> str:
    parts = row["cls"].split(".")
    return ".".join(parts[: 2 if parts[0] == "sklearn" else 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", default=[DATA / "sklearn_executed.jsonl"])
    parser.add_argument("--only", default="", help="part of the class's path or the row's name")
    parser.add_argument("--worst", type=int, default=20)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: list[tuple[float, str, str, str]] = []
    missing: Counter[str] = Counter()
    for row in (json.loads(line) for file in options.data for line in file.read_text().splitlines()):
        if options.only not in row["cls"] and options.only not in row["name"]:
            continue
        for method, estimate, count in pairs(row):
            kind = "fit" if method == "fit" else "other"
            if estimate is None:
                missing[kind] += 1
            else:
                what = f"{row['name']}.{method}: estimate / count {estimate:.3g} / {count:.3g}"
                found.append((factor(estimate, count), kind, module_of(row), what))
    for kind, name in (("fit", "fit"), ("other", "predict, transform and their kin")):
        factors = [one for one, of, _, _ in found if of == kind]
        if factors:
            print(f"{name}: {summary(factors)}; missing: {missing[kind]}")
    for module in sorted({module for _, _, module, _ in found}):
        factors = [one for one, kind, of, _ in found if kind == "fit" and of == module]
        if factors:
            print(f"  {module}.fit: {summary(factors)}")
    for one, _, _, what in sorted(found, reverse=True)[: options.worst]:
        print(f"  {one:.2f} {what}")


if __name__ == "__main__":
    main()
