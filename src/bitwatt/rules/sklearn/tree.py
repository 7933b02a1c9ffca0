"""sklearn.tree."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.inside import Probes, logarithms_of, looked_at
from bitwatt.formulas.trees import Columns, Growth, best_splits, constrained, criterion, random_splits
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule

TREES = tuple(
    f"sklearn.tree.{name}{kind}" for name in ("DecisionTree", "ExtraTree") for kind in ("Classifier", "Regressor")
)


def _uncut(facts: dict[str, Any]) -> dict[str, Any]:
    """Sums over trees before they were cut back, where some were."""
    cut = [(dict(items), times) for name, *items, times in facts.get("probes", ()) if name == "pruned" and items]
    if not cut:
        return facts
    found = dict(cut[0][0])
    for name, value in found.items():
        if isinstance(value, int) and name not in ("tree_features", "tree_min_leaf"):
            found[name] = sum(other[name] * times for other, times in cut)
    found["tree_searched"] = tuple((n * t, s * t) for other, t in cut for n, s in other["tree_searched"])
    return facts | found


def growth(facts: dict[str, Any]) -> Growth:
    names = ("count", "nodes", "samples", "splits", "descents", "left", "smaller", "present", "searched")
    return Growth(*(facts[f"tree_{name}"] for name in names))


def columns(X: TensorSpec, probes: tuple[tuple[Any, ...], ...]) -> Columns:
    """What was seen of the values of X: ties and gaps."""
    if X.nnz is not None:
        return Columns(density=min(X.nnz / max(X.numel, 1), 0.999), width=X.shape[1])
    for name, *seen in probes:
        if name == "columns" and len(seen) > 3:
            gapped, gaps, *blocks = (value for value in seen[:-1] if not isinstance(value, tuple))
            kinds = next((value for value in seen if isinstance(value, tuple)), ())
            present = 1 - gapped / 1000 * gaps / 1000
            alike = tuple((count, Columns(_distinct(parts), present=present)) for count, *parts in kinds)
            return Columns(
                _distinct(blocks), gapped / 1000, gaps / 1000, width=X.shape[1], kinds=alike, present=present
            )
    return Columns()


def _distinct(blocks: list[int]) -> tuple[tuple[int, float, float], ...]:
    """Rows, distinct values, share with two or more; those two in thousandths."""
    looked = zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True)
    return tuple(sorted((rows, values / 1000, share / 1000) for rows, values, share in looked))


def part_of(work: Work, some: int, all_: int) -> Work:
    """Of so many trees that are alike, the work of some."""
    if some == all_:
        return work
    return replace(work, ops=tuple((kind, precision, part, n * some // all_) for kind, precision, part, n in work.ops))


def grown(X: TensorSpec, facts: dict[str, Any]) -> Work:
    """The arithmetic of all splits that were looked for."""
    facts = _uncut(facts)
    found = growth(facts)
    classes = facts.get("n_classes_", 0)
    outputs = facts.get("n_outputs_") or 1
    total = sum(classes) if isinstance(classes, tuple) else classes
    kind = criterion(facts["tree_criterion"], outputs, total)
    features, seen = facts["tree_features"], columns(X, facts.get("probes", ()))
    share = _monotonic(facts.get("monotonic_cst"))
    if share:
        kind = constrained(kind, share, outputs, total)
    if facts["tree_splitter"] == "random":
        return random_splits(found, kind, features, seen)
    work = best_splits(found, kind, features, seen, facts["tree_min_leaf"])
    return replace(work, estimated=work.estimated or bool(share))


def _monotonic(signs: Any) -> float:
    """The share of features that must go up or down."""
    return sum(map(bool, signs)) / len(signs) if isinstance(signs, tuple | list) and signs else 0.0


def checked(X: TensorSpec) -> Work:
    """The finiteness check of X, which trees take as float32."""
    return validated(X, SINGLE)


def targets(y: Any) -> Work:
    return validated(y) if isinstance(y, TensorSpec) else Work()


@rule(*(f"{tree}.fit" for tree in TREES), family="tree")
def tree_fit(X: TensorSpec, y: Any = None, check_input: bool = True, **facts: Any) -> Work:
    """The finiteness checks, the sum of weights, and every split that was looked for: m features of each node, whose
    samples are moved from right to left one by one and judged at each position between distinct values."""
    work = grown(X, facts) + arithmetic(0, DOUBLE, add=X.shape[0])
    if check_input:
        work += checked(X) + targets(y)
    if facts.get("sample_weight") is not None or facts.get("class_weight") is not None:
        work += arithmetic(0, DOUBLE, add=2 * X.shape[0])
    return work


def descended(X: TensorSpec, facts: dict[str, Any]) -> Work:
    """Compares of the ways from the roots to the leaves: as long as those of the training samples on average."""
    steps = X.shape[0] * facts["tree_count"] * facts["tree_descents"] / max(facts["tree_fitted"], 1)
    return arithmetic(0, SINGLE, compare=2 * steps)


@rule(
    *(f"{tree}.{method}" for tree in TREES for method in ("predict", "apply", "decision_path")),
    "sklearn.tree.DecisionTreeClassifier.predict_proba",
    "sklearn.tree.ExtraTreeClassifier.predict_proba",
    family="tree",
)
def tree_predict(X: TensorSpec, check_input: bool = True, **facts: Any) -> Work:
    """The finiteness check; descending a tree compares."""
    return (checked(X) if check_input else Work()) + descended(X, facts)


@rule(
    "sklearn.tree.DecisionTreeClassifier.predict_log_proba",
    "sklearn.tree.ExtraTreeClassifier.predict_log_proba",
    family="tree",
)
def tree_predict_log_proba(
    out: tuple[TensorSpec, ...] = (), tree_unsure: float = 1.0, probes: Probes = (), **_: Any
) -> Work:
    """The logarithm of predict_proba, which is counted. That of 1 is known, and that of 0 is a division: where nobody
    looked, how many there are is taken from the samples that the tree was grown on."""
    if looked_at(probes, "logarithms"):
        return logarithms_of(0, DOUBLE, probes)
    work = Work()
    for spec in out:
        unsure = tree_unsure * spec.numel
        none = (spec.numel - unsure) * (1 - 1 / max(spec.shape[-1], 1))
        work += arithmetic(23 * unsure, DOUBLE, div=none)
    return replace(work, estimated=True)
