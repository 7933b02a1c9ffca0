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
    for name, *sizes, _ in facts.get("probes", ()):
        if name in ("round", "trained"):
            return sizes[0], sizes[1]
    return facts.get("rows", 0), facts.get("columns", facts.get("boost_features", 0))


def binned(facts: dict[str, Any]) -> Binned:
    names = ("searched", "walked", "judged", "built", "subtracted", "passed")
    return Binned(*(facts.get(f"boost_{name}", 0.0) for name in names))


def bins(rows: int, most: int, facts: dict[str, Any]) -> float:
    """Bins of a feature: those that the library has made, or not more than it has distinct values, of a sparse matrix
    those that are stored and zero."""
    if known := facts.get("data_bins"):
        return float(min(most, known))
    X = facts.get("X")
    if isinstance(X, TensorSpec) and X.nnz is not None:
        return min(most, rows * X.nnz / max(X.numel, 1) + 1)
    seen = columns(X, facts.get("probes", ())) if isinstance(X, TensorSpec) and X.nnz is None else Columns()
    return min(most, rows) if seen.is_plain else min(most, seen.values(rows)[0])


def gapped(facts: dict[str, Any]) -> float:
    """The share of features with missing values, which are walked through from both ends."""
    shares = [sizes[0] / 1000 for name, *sizes, _ in facts.get("probes", ()) if name == "columns" and sizes]
    return max(shares, default=0.0)


def answered(out: tuple[TensorSpec, ...], facts: dict[str, Any]) -> int:
    """Rows that a prediction was made for."""
    return out[0].shape[0] if out and out[0].shape else shape(facts)[0]


def rounds(facts: dict[str, Any]) -> tuple[float, float]:
    """Rounds of this training, and those of the model that it went on from."""
    kept = facts.get("boost_rounds", 0)
    new = seen(facts, "round") or kept
    return new, max(kept - new, 0)


def seen(facts: dict[str, Any], what: str) -> int:
    """How often a training did something."""
    return sum(times for name, *_, times in facts.get("probes", ()) if name == what)


def samples(facts: dict[str, Any], what: str) -> int:
    """Rows of all sets that something was done with, each time anew."""
    return sum(sizes[0] * times for name, *sizes, times in facts.get("probes", ()) if name == what)


def on_processor(facts: dict[str, Any]) -> None:
    """Trees grown on a GPU have histograms of fixed-point integers, and another search: no rule speaks for them."""
    device = str(facts.get("boost_device") or facts.get("task_type") or "cpu").lower()
    if device != "cpu":
        raise ValueError(f"it was trained on {device}, where other algorithms run")


def used(facts: dict[str, Any], begin: int, end: int) -> float:
    """Trees of the rounds from `begin` to before `end` (0: all, or those up to the best)."""
    total = facts.get("boost_rounds", 0)
    last = min(end, total) if end > 0 else facts.get("boost_best", total)
    return float(facts.get("boost_trees", 0) * max(last - begin, 0) / max(total, 1))


def explained(*asked: Any) -> None:
    """Contributions of features walk through every path of every tree, which facts do not tell."""
    if any(asked):
        raise ValueError("contributions of features (SHAP values) depend on all paths of all trees")
