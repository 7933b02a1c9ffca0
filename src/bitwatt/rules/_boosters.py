"""What the rules of XGBoost, LightGBM and CatBoost share."""

from typing import Any

from bitwatt.formulas.boosting import Binned
from bitwatt.formulas.trees import Columns
from bitwatt.records import TensorSpec
from bitwatt.rules.sklearn.tree import columns


def shape(facts: dict[str, Any]) -> tuple[int, int]:
    """Rows and columns of the data: an array's, or what a data set of the library told."""
    X = facts.get("X", facts.get("data"))
    if isinstance(X, TensorSpec) and len(X.shape) == 2:
        return X.shape[0], X.shape[1]
    return facts.get("rows", 0), facts.get("columns", facts.get("boost_features", 0))


def binned(facts: dict[str, Any]) -> Binned:
    names = ("searched", "walked", "judged", "built", "subtracted", "passed")
    return Binned(*(facts.get(f"boost_{name}", 0.0) for name in names))


def bins(rows: int, most: int, facts: dict[str, Any]) -> float:
    """Bins of a feature: not more than it has distinct values."""
    X = facts.get("X")
    seen = columns(X, facts.get("probes", ())) if isinstance(X, TensorSpec) and X.nnz is None else Columns()
    return min(most, rows) if seen.is_plain else min(most, seen.values(rows)[0])


def answered(out: tuple[TensorSpec, ...], facts: dict[str, Any]) -> int:
    """Rows that a prediction was made for."""
    return out[0].shape[0] if out and out[0].shape else shape(facts)[0]
