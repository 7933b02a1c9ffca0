"""Linear models as the two lines of numpy they are, scalers and projections before them included.

What scikit-learn adds to them at small batches is checking and dispatch. The result is proven equal to the native one
on the rows given, or there is no such scenario.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bitwatt.deploy.records import Artefact, Case, Loaded, Precision, UnfitError

FILE = "weights.npz"


class Linear:
    """Weights in this process."""

    def __init__(self, weights: dict[str, Any], head: str) -> None:
        import numpy as np

        self.np, self.head = np, HEADS[head]
        self.classes = weights.get("classes")
        self.coef, self.intercept = weights["coef"], weights["intercept"]
        self.steps = [(kind, weights[f"{at}{kind}"]) for at, kind in enumerate(weights["steps"].tolist())]

    def predict(self, rows: Any) -> Any:
        np = self.np
        x = rows.to_numpy() if hasattr(rows, "to_numpy") else np.asarray(rows)
        for kind, array in self.steps:
            if kind == "minus":
                x = x - array
            elif kind == "over":
                x = x / array
            elif kind == "times":
                x = x * array
            else:
                x = x @ array
        return self.head(np, x @ self.coef + self.intercept, self.classes)


def _sigmoid(np: Any, scores: Any, classes: Any) -> Any:
    second = 1 / (1 + np.exp(-scores[:, 0]))
    return np.stack([1 - second, second], axis=1)


def _softmax(np: Any, scores: Any, classes: Any) -> Any:
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


def _one_by_one(np: Any, scores: Any, classes: Any) -> Any:
    found = 1 / (1 + np.exp(-scores))
    return found / found.sum(axis=1, keepdims=True)


def _labels(np: Any, scores: Any, classes: Any) -> Any:
    return classes[(scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)]


def _values(np: Any, scores: Any, classes: Any) -> Any:
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _matrix(np: Any, scores: Any, classes: Any) -> Any:
    return scores


#: What may follow the products. Which of them a model has is found out by trying.
HEADS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "labels": _labels, "softmax": _softmax, "sigmoid": _sigmoid, "one-by-one": _one_by_one, "values": _values,
    "matrix": _matrix,
}  # fmt: skip


class Numpy:
    name, baseline, order = "numpy", "", 2

    def applies(self, case: Case) -> bool:
        from bitwatt.deploy.given import estimators, rows

        dense = not rows.is_texts(case.inputs) and not rows.is_sparse(case.inputs)
        return case.framework == "sklearn" and dense and weights(case.model, estimators.last(case.model)) is not None

    def build(self, case: Case, folder: Path) -> Artefact:
        import numpy as np

        from bitwatt.deploy.given import estimators
        from bitwatt.deploy.making import saving

        held = weights(case.model, estimators.last(case.model))
        if held is None:
            raise UnfitError("is no linear model")
        if case.classes is not None:
            held["classes"] = np.asarray(case.classes)
        native = estimators.answer(case.model, case.method, case.inputs)
        head = next((head for head in HEADS if equal(held, head, case.inputs, native)), None)
        if head is None:
            raise UnfitError("plain products do not give what the model gives")
        np.savez(folder / FILE, **held)
        return Artefact(
            self.name, self.name, str(folder), (FILE,), case.method, saving.size(folder, (FILE,)),
            Precision("fp64", evidence=f"{held['coef'].dtype} weights, equal to native on {len(native):,} rows"),
            ("numpy",), saving.versions("numpy"), options={"head": head},
        )  # fmt: skip

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        import numpy as np
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads)  # its pool is sized when numpy is first imported; this narrows it afterwards
        with np.load(Path(artefact.folder) / FILE) as held:
            return Linear(dict(held), artefact.options["head"])


RUNTIME = Numpy


def weights(model: Any, final: Any) -> dict[str, Any] | None:
    """Of the products and of the steps before them; None where something else is among them."""
    import numpy as np

    if not hasattr(final, "coef_") or not hasattr(final, "intercept_") or hasattr(final, "support_vectors_"):
        return None
    if hasattr(final, "coefs_") or rows_are_sparse(final.coef_):
        return None
    model = getattr(model, "best_estimator_", model)
    steps: list[tuple[str, Any]] = []
    for _, step in getattr(model, "steps", [("", final)])[:-1]:
        found = _affine(step)
        if found is None:
            return None
        steps += found
    coef = np.atleast_2d(final.coef_).T
    held = {
        "coef": np.ascontiguousarray(coef),
        "intercept": np.atleast_1d(final.intercept_),
        "steps": np.array([kind for kind, _ in steps], dtype=str),
    }
    return held | {f"{at}{kind}": array for at, (kind, array) in enumerate(steps)}


def rows_are_sparse(array: Any) -> bool:
    from bitwatt.deploy.given import rows

    return rows.is_sparse(array)


def _affine(step: Any) -> list[tuple[str, Any]] | None:
    """A step as products and sums, in its own order, so that the digits are its own too."""
    import numpy as np

    from bitwatt.deploy.given.estimators import is_a

    if step in (None, "passthrough"):
        return []
    if is_a(step, "StandardScaler", "RobustScaler"):
        center = step.center_ if is_a(step, "RobustScaler") else step.mean_ if step.with_mean else None
        shift = [] if center is None else [("minus", center)]
        return shift + ([] if step.scale_ is None else [("over", step.scale_)])
    if is_a(step, "MinMaxScaler") and not step.clip:
        return [("times", step.scale_), ("minus", -step.min_)]
    if is_a(step, "MaxAbsScaler"):
        return [("over", step.scale_)]
    if is_a(step, "PCA"):
        root = [("over", np.sqrt(step.explained_variance_))] if step.whiten else []
        return [("minus", step.mean_), ("project", np.ascontiguousarray(step.components_.T)), *root]
    return None


def equal(held: dict[str, Any], head: str, rows: Any, native: Any) -> bool:
    import numpy as np

    try:
        with np.errstate(all="ignore"):
            found = Linear(held, head).predict(rows)
    except (TypeError, ValueError, IndexError):
        return False
    if found.shape != native.shape:
        return False
    if native.dtype.kind != "f":
        return bool((found == native).all())
    size = np.abs(native).max(initial=0.0) or 1.0
    tolerance = 1e-5 if native.dtype == np.float32 or held["coef"].dtype == np.float32 else 1e-9
    return bool(np.abs(found - native).max(initial=0.0) <= tolerance * size)
