"""ai.onnx.ml: what comes out of each operator, which onnx's inference mostly leaves open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx

from bitwatt.backends.onnx.values import Dims, Value

_FLOAT, _INT, _TEXT = (int(getattr(onnx.TensorProto, name)) for name in ("FLOAT", "INT64", "STRING"))


def outputs(node: onnx.NodeProto, inputs: Sequence[Value | None]) -> list[Value]:
    options = {a.name: a for a in node.attribute}
    x = inputs[0] or Value()
    if x.dims is None:
        return [Value(why=x.why or "the shape of its input is not known") for _ in node.output]
    rows = _rows(x.dims)
    match node.op_type:
        case "LinearClassifier" | "SVMClassifier" | "TreeEnsembleClassifier":
            labels = _labels(options)
            text = bool(_length(options, "classlabels_strings"))
            return [
                Value(_TEXT if text else _INT, (rows,)),
                Value(_FLOAT, (rows, _columns(node.op_type, options, labels))),
            ]
        case "LinearRegressor":
            return [Value(_FLOAT, (rows, _number(options, "targets", 1)))]
        case "SVMRegressor":
            return [Value(_FLOAT, (rows, 1))]
        case "TreeEnsembleRegressor" | "TreeEnsemble":
            elem = x.elem if node.op_type == "TreeEnsemble" else _FLOAT
            return [Value(elem, (rows, _number(options, "n_targets", 1)))]
        case "Scaler" | "Normalizer":
            return [Value(_FLOAT, x.dims)]
        case "Binarizer" | "Imputer":
            return [Value(x.elem, x.dims)]
        case "LabelEncoder" | "CategoryMapper":
            return [Value(_mapped(options, x), x.dims)]
        case "OneHotEncoder":
            return [Value(_FLOAT, (*x.dims, _length(options, "cats_int64s") or _length(options, "cats_strings")))]
        case "ArrayFeatureExtractor":
            taken = inputs[1].spec if len(inputs) > 1 and inputs[1] is not None else None
            outer = x.dims[:-1] if len(x.dims) > 1 else (1,)
            return [Value(x.elem, (*outer, taken.numel if taken else None))]
        case "FeatureVectorizer":
            return [
                Value(_FLOAT, (rows, sum(options["inputdimensions"].ints) if "inputdimensions" in options else None))
            ]
        case "ZipMap":
            return [Value()]
    return [Value(why="how many entries a dictionary has depends on data") for _ in node.output]


def _rows(dims: Dims) -> int | None:
    """A vector is one row."""
    return dims[0] if len(dims) > 1 else 1


def _length(options: dict[str, Any], name: str) -> int:
    if name not in options:
        return 0
    held = options[name]
    return (
        math.prod(map(int, held.t.dims))
        if held.HasField("t")
        else len(held.floats) or len(held.ints) or len(held.strings)
    )


def _number(options: dict[str, Any], name: str, default: int) -> int:
    return int(options[name].i) if name in options else default


def _labels(options: dict[str, Any]) -> int:
    names = ("classlabels_strings", "classlabels_ints", "classlabels_int64s")
    return max(_length(options, name) for name in names)


def _columns(kind: str, options: dict[str, Any], labels: int) -> int:
    """Scores of each row: one for each class; of machines without probabilities one for each pair."""
    if kind == "SVMClassifier" and not _length(options, "prob_a") and _length(options, "support_vectors"):
        return max(labels * (labels - 1) // 2, 1) if labels > 2 else 2
    if kind == "LinearClassifier":
        return max(labels, _length(options, "intercepts"), 1)
    return max(labels, 1)


def _mapped(options: dict[str, Any], x: Value) -> int:
    for name, elem in (("values_floats", _FLOAT), ("values_int64s", _INT), ("values_strings", _TEXT)):
        if _length(options, name):
            return elem
    if "values_tensor" in options:
        return int(options["values_tensor"].t.data_type)
    return _INT if x.elem == _TEXT else _TEXT
