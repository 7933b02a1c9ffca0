"""Cross-validation: how many rows are fitted and scored, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.records import TensorSpec


def part(X: TensorSpec, rows: int) -> TensorSpec:
    """Some rows of X, with their share of what is stored."""
    stored = None if X.nnz is None else round(X.nnz * rows / max(X.shape[0], 1))
    return TensorSpec((rows, *X.shape[1:]), X.dtype, stored)


def count_of(cv: Any, rows: int) -> int:
    if cv is None:
        return 5
    if isinstance(cv, int):
        return cv
    name = type(cv).__name__
    if name == "LeaveOneOut":
        return rows
    if "n_repeats" in getattr(cv, "cvargs", {}) or hasattr(cv, "n_repeats"):
        return int(cv.n_repeats) * int(cv.cvargs.get("n_splits", 5))
    if hasattr(cv, "n_splits"):
        return int(cv.n_splits)
    return len(list(cv)) if isinstance(cv, (list, tuple)) else 5


def folds(rows: int, cv: Any) -> Iterator[tuple[int, int, int]]:
    """Rows to fit, rows left out, and how many folds are so: sizes differ by one at most."""
    count = count_of(cv, rows)
    share = getattr(cv, "test_size", None)
    if type(cv).__name__.endswith("ShuffleSplit"):
        share = 0.1 if share is None else share
        left = share if isinstance(share, int) else round(share * rows)
        yield rows - left, left, count
        return
    distinct = int(getattr(cv, "cvargs", {}).get("n_splits", count)) if hasattr(cv, "cvargs") else count
    more, repeats = rows % distinct, count // max(distinct, 1)
    if more:
        yield rows - rows // distinct - 1, rows // distinct + 1, more * repeats
    if distinct - more:
        yield rows - rows // distinct, rows // distinct, (distinct - more) * repeats


#: Folds up to this many have scopes of their own.
_FEW = 10


def numbered(rows: int, cv: Any, *, few: bool = True) -> Iterator[tuple[int, int, int, str]]:
    """As `folds`, each with its name where they are few."""
    number = 1
    for fit, left, times in folds(rows, cv):
        if not few or number + times > _FEW + 1:
            yield fit, left, times, "folds"
            continue
        for _ in range(times):
            yield fit, left, 1, f"fold {number}"
            number += 1


def folds_of(
    call: Call,
    estimator: Any,
    cv: Any,
    *,
    candidates: int = 1,
    asked: str = "score",
    trained: bool = False,
    few: bool = True,
) -> None:
    """A model fitted on each fold and asked on what was left out, as often as there are candidates."""
    for rows, left, times, name in numbered(call.rows, cv, few=few):
        inside, target = part(call.X, rows), part(call.y, rows) if call.y is not None else None
        place = f"{name}.{type(estimator).__name__}"
        call.ask(estimator, "fit", inside, target, times=times * candidates, name=place)
        if asked and left:
            outside = part(call.y, left) if call.y is not None else None
            call.ask(estimator, asked, part(call.X, left), outside, times=times * candidates, name=place)
        if trained:
            call.ask(estimator, "score", inside, target, times=times * candidates, name=place)
