"""Whether a model and rows fit each other; if not, why, in a sentence."""

from __future__ import annotations

import warnings
from typing import Any

from bitwatt.deploy.amounts import amount
from bitwatt.deploy.given import estimators
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.given.datafiles import TARGETS
from bitwatt.errors import BitwattError

#: Rows on which the model is tried before anything is measured.
FEW = 64
#: And those on which its scores are held against its predictions.
MANY = 4096


def suited(model: Any, data: Any, y: Any) -> tuple[Any, Any]:
    """Rows in the form the estimator was trained on: columns by name in its order, texts, or an array."""
    data = rows_of.one_kind(data)
    if not rows_of.is_frame(data):
        return (rows_of.on_host(data), _array(y))
    names = getattr(model, "feature_names_in_", None)
    texts = any(
        estimators.is_a(part, "CountVectorizer", "TfidfVectorizer", "HashingVectorizer")
        for part in estimators.parts(model)
    )
    if names is None:
        if y is None:
            data, y = _split(data, [name for name in data.columns if str(name).lower() in TARGETS])
        if texts and data.shape[1] == 1:
            return [str(text) for text in data.iloc[:, 0]], _array(y)
        return data if _texts(data) else data.to_numpy(), _array(y)
    missing = [str(name) for name in names if name not in data.columns]
    if missing:
        raise BitwattError(f"the model was trained on {', '.join(missing[:8])}, which the data does not have")
    if y is None:
        rest = [name for name in data.columns if name not in set(names) and str(name).lower() in TARGETS]
        y = data[rest[0]].to_numpy() if len(rest) == 1 else None
    return data[list(names)], _array(y)


def unused(data: Any, inputs: Any, y: Any) -> tuple[str, ...]:
    """Columns that might be the targets, where nobody said so."""
    if y is not None or not rows_of.is_frame(data) or not rows_of.is_frame(inputs):
        return ()
    rest = [str(name) for name in data.columns if name not in set(inputs.columns)]
    return (f"no targets: {', '.join(rest[:8])} is not used; --target names them",) if rest else ()


def _split(data: Any, goals: list[Any]) -> tuple[Any, Any]:
    return (data, None) if len(goals) != 1 else (data.drop(columns=goals[0]), data[goals[0]].to_numpy())


def _texts(frame: Any) -> list[str]:
    """Columns that hold no numbers."""
    return [str(name) for name, kind in frame.dtypes.items() if getattr(kind, "kind", "O") not in "fiub"]


def _array(y: Any) -> Any:
    import numpy as np

    return None if y is None else rows_of.column(np.asarray(rows_of.on_host(y)))


def classes(model: Any) -> tuple[Any, ...] | None:
    """Labels in the order of the scores' columns."""
    found = getattr(model, "classes_", None)
    if found is None:
        final = estimators.last(model)
        found = getattr(final, "classes_", None)
        if found is None and hasattr(final, "cluster_centers_"):
            found = range(len(final.cluster_centers_))
        if found is None and estimators.is_a(final, "OutlierMixin"):
            found = (-1, 1)
    if isinstance(found, list):  # several outputs, each with its own
        return None
    return None if found is None else tuple(label.item() if hasattr(label, "item") else label for label in found)


def sizes(model: Any, inputs: Any, y: Any) -> None:
    rows = rows_of.count(inputs)
    if not rows:
        raise BitwattError("the data has no rows")
    if y is not None and len(y) != rows:
        raise BitwattError(f"{amount(rows, 'row')} and {amount(len(y), 'target')} do not go together")
    expected, given = getattr(model, "n_features_in_", None), rows_of.features(inputs)
    if expected and given is not None and given != expected:
        raise BitwattError(f"the model takes {amount(expected, 'feature')}, the data has {given}")


def tried(model: Any, framework: str, inputs: Any, method: str) -> Any:
    """What the model says of a few rows, those with missing values among them."""
    import numpy as np

    blank = _blank(inputs)
    odd = np.flatnonzero(blank | _infinite(inputs))[:FEW]
    where = np.unique(np.concatenate([np.arange(min(FEW, rows_of.count(inputs))), odd]))
    few = rows_of.take(inputs, where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong with the rows is told below
            if framework == "torch":
                from bitwatt.deploy.given import modules

                return modules.answer(model, few)
            return estimators.answer(model, method, few)
    except Exception as error:
        raise BitwattError(_why(model, inputs, blank, error)) from error


def _some(rows: Any) -> str:
    return f"{int(rows.sum())} of {amount(len(rows), 'row')} {'has' if rows.sum() == 1 else 'have'}"


def _why(model: Any, inputs: Any, blank: Any, error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    said = f"{type(error).__name__}: {lines[0]}"
    name = type(model).__name__
    if type(error).__name__ == "NotFittedError" or "not fitted" in str(error):
        return f"this {name} is not fitted: train it before it is saved"
    if isinstance(error, AttributeError):
        return f"this {name} lacks something ({said}): was it saved by another version of its library?"
    if blank.any():
        some = f"{_some(blank)} missing values (NaN)"
        return f"{some}, which this {name} does not take ({said})"
    if (infinite := _infinite(inputs)).any():
        some = f"{_some(infinite)} infinite values"
        return f"{some}, which this {name} does not take ({said})"
    if rows_of.is_frame(inputs) and (texts := _texts(inputs)):
        return f"the columns {', '.join(texts[:8])} hold no numbers, and this {name} does not take them ({said})"
    if getattr(getattr(inputs, "dtype", None), "kind", "") == "O":
        return f"the rows are Python objects, not numbers, and this {name} does not take them ({said})"
    shapes = [
        tuple(part.shape) for part in (inputs if isinstance(inputs, tuple) else (inputs,)) if hasattr(part, "shape")
    ]
    return f"this {name} does not take rows of the shape {', '.join(map(str, shapes)) or 'given'} ({said})"


def _blank(inputs: Any) -> Any:
    """Which rows have missing values."""
    import numpy as np

    if rows_of.is_frame(inputs):
        return inputs.isna().any(axis=1).to_numpy()
    dense = getattr(getattr(inputs, "dtype", None), "kind", "") == "f" and not rows_of.is_sparse(inputs)
    if not dense:
        return np.zeros(rows_of.count(inputs), dtype=bool)
    return np.isnan(inputs.reshape(len(inputs), -1)).any(axis=1)


def _infinite(inputs: Any) -> Any:
    """Which rows have values without bound."""
    import numpy as np

    found = np.zeros(rows_of.count(inputs), dtype=bool)
    if rows_of.is_frame(inputs):
        for name, kind in inputs.dtypes.items():
            if getattr(kind, "kind", "O") == "f":
                found |= np.isinf(inputs[name].to_numpy(dtype=float, na_value=np.nan))
        return found
    if getattr(getattr(inputs, "dtype", None), "kind", "") != "f" or rows_of.is_sparse(inputs):
        return found
    return np.isinf(inputs.reshape(len(inputs), -1)).any(axis=1)


def question(model: Any, inputs: Any, classes: tuple[Any, ...] | None) -> str:
    """Scores, where the highest of them is what the model predicts: thresholds and Platt's scores of an SVC differ."""
    import numpy as np

    asked = rows_of.take(inputs, slice(0, min(MANY, rows_of.count(inputs))))
    try:
        said = np.asarray(estimators.answer(model, "predict", asked))
    except Exception as error:
        raise BitwattError(_why(model, inputs, _blank(inputs), error)) from error
    if said.ndim > 1 and said.shape[1] > 1 and (classes is not None or hasattr(model, "predict_proba")):
        raise BitwattError(f"this {type(model).__name__} predicts several labels for each row; the lab takes one")
    if classes is None or not hasattr(model, "predict_proba"):
        return "predict"
    scores = np.asarray(estimators.answer(model, "predict_proba", asked))
    if scores.ndim != 2 or scores.shape[1] != len(classes):
        return "predict"
    likeliest = np.asarray([str(label) for label in np.asarray(classes)[scores.argmax(axis=1)]])
    return "predict_proba" if (likeliest == np.asarray([str(label) for label in said.ravel()])).all() else "predict"


def targets(classes: tuple[Any, ...] | None, y: Any, output: Any) -> None:
    """`output` is what the model says of some rows."""
    import numpy as np

    if y is None:
        return
    if classes is not None and y.ndim != 1:
        raise BitwattError(f"the targets have {y.shape[1]} columns, and the model predicts one label for each row")
    if classes is None and y.dtype.kind in "OUST" and output.dtype.kind in "fiub":
        raise BitwattError(f"the targets are no numbers ({y.ravel()[0]!r}, ...), and the model predicts numbers")
    scored = y.ndim == 1 and output.ndim == 2  # labels beside scores, as torch modules have them
    numbers = classes is None and y.dtype.kind in "fiub" and output.ndim <= 2
    if numbers and not scored and output.shape[1:] != y.shape[1:]:
        told = " x ".join(map(str, output.shape[1:])) or "one value"
        raise BitwattError(f"the targets have the shape {y.shape}, and the model predicts {told} for each row")
    if y.ndim == 1 and y.dtype.kind == "f" and np.isnan(y).any():
        raise BitwattError(f"{int(np.isnan(y).sum())} of {len(y)} targets are missing (NaN)")
    if classes is None or y.ndim != 1:
        return
    unknown = sorted({str(label) for label in np.unique(y).tolist() if label not in classes})
    if unknown:
        known = ", ".join(str(label) for label in classes[:8])
        raise BitwattError(
            f"the targets have {', '.join(unknown[:8])}, which the model does not know; it knows {known}"
        )


def narrow(train: Any, inputs: Any) -> None:
    if train is None:
        return
    there, here = rows_of.features(train), rows_of.features(inputs)
    if there is not None and there != here:
        raise BitwattError(f"the training rows have {amount(there, 'feature')}, the data has {here}")
