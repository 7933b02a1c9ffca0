"""ai.onnx.ml: estimators as single operators. Coefficients are lists of their attributes, read like tensors."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bitwatt.formulas.linalg import bias_add, matmul
from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.reduction import vector_norm
from bitwatt.formulas.softmax import softmax
from bitwatt.formulas.sort import search
from bitwatt.formulas.trees import descended
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._onnx import first
from bitwatt.rules._tables import Specs, each, idle, moved, size_of

SPACE = "onnx_ml"

idle(
    "ZipMap",
    "scores under the names of their classes: the tensor becomes dictionaries, nothing is computed",
    space=SPACE,
)
moved("FeatureVectorizer", "Columns joined.", space=SPACE)
each("Binarizer", "1 where x is above the threshold", space=SPACE, family="encoding", compare=1)
each("Imputer", "a value where it is missing", space=SPACE, family="imputation", compare=1)

#: Per element of the scores. The probit is the inverse of a distribution, one function.
_AFTER: Mapping[str, Mapping[str, int]] = {
    "NONE": {},
    "LOGISTIC": {"sigmoid": 1},
    "PROBIT": {"special": 1},
}


def _rows(X: TensorSpec) -> tuple[int, int]:
    """A vector is one row."""
    return (1, X.numel) if len(X.shape) < 2 else (X.shape[0], X.numel // max(X.shape[0], 1))


def _transformed(scores: TensorSpec, post_transform: str) -> Work:
    """What makes probabilities of scores."""
    if post_transform.startswith("SOFTMAX"):
        return softmax(scores.numel, scores.precision)
    return pointwise(scores, scores.numel, **_AFTER[post_transform])


def _labelled(scores: TensorSpec) -> Work:
    """The class with the largest score: 1 compare for each."""
    return pointwise(scores, scores.numel, compare=1)


def _linear(X: TensorSpec, coefficients: TensorSpec, intercepts: TensorSpec | None) -> Work:
    rows, features = _rows(X)
    width = coefficients.numel // max(features, 1)
    work = matmul(rows, features, width, X, coefficients)
    return work if intercepts is None else work + bias_add(rows * width, X.precision)


@rule("onnx_ml.LinearClassifier", family="linear")
def linear_classifier(
    X: TensorSpec,
    coefficients: TensorSpec,
    out: Specs,
    intercepts: TensorSpec | None = None,
    post_transform: str = "NONE",
    **_: Any,
) -> Work:
    """X·Wᵀ + b: rows·features·classes multiply-accumulates, an addition for each score, what makes probabilities of
    them, and a compare for each to find the label."""
    work = _linear(_as_float(X), coefficients, intercepts)
    return work + _transformed(out[1], post_transform) + _labelled(out[1])


@rule("onnx_ml.LinearRegressor", family="linear")
def linear_regressor(
    X: TensorSpec,
    coefficients: TensorSpec,
    out: Specs,
    intercepts: TensorSpec | None = None,
    post_transform: str = "NONE",
    **_: Any,
) -> Work:
    """X·Wᵀ + b: rows·features·targets multiply-accumulates and an addition for each result."""
    return _linear(_as_float(X), coefficients, intercepts) + _transformed(out[0], post_transform)


def _as_float(X: TensorSpec) -> TensorSpec:
    """These operators compute in single precision, whatever comes in."""
    return replace(X, dtype="float32") if X.precision.kind != "float" else X


#: What a kernel does to xᵀy or |x - y|², for each pair of a row and a support vector.
_KERNELS: Mapping[str, Mapping[str, int]] = {
    "LINEAR": {},
    "POLY": {"mul": 1, "add": 1, "pow": 1},
    "RBF": {"mul": 1, "exp": 1},
    "SIGMOID": {"mul": 1, "add": 1, "tanh": 1},
}


def _kernel(X: TensorSpec, vectors: int, features: int, kind: str) -> Work:
    """Each row with each support vector."""
    rows = _rows(X)[0]
    pairs = rows * vectors
    if kind == "RBF":  # the difference, squared and added up
        dots = pointwise(X, pairs * features, add=1) + matmul(rows * vectors, features, 1, X, X)
    else:
        dots = matmul(rows, features, vectors, X, X)
    return dots + pointwise(X, pairs, **_KERNELS[kind])


@rule("onnx_ml.SVMClassifier", family="libsvm")
def svm_classifier(
    X: TensorSpec,
    coefficients: TensorSpec,
    out: Specs,
    support_vectors: TensorSpec | None = None,
    classlabels_ints: TensorSpec | None = None,
    classlabels_strings: TensorSpec | None = None,
    prob_a: TensorSpec | None = None,
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    **_: Any,
) -> Work:
    """The kernel of each row with each support vector (features multiply-accumulates, and what makes the kernel of
    them), times classes - 1 coefficients, summed for each pair of classes and voted; probabilities are a sigmoid for
    each pair and some 65 operations for each class (Wu, Lin & Weng 2004). Without support vectors a linear model."""
    X = _as_float(X)
    rows, features = _rows(X)
    labels = next((s.numel for s in (classlabels_ints, classlabels_strings) if isinstance(s, TensorSpec)), 2)
    if support_vectors is None:
        return matmul(rows, features, coefficients.numel // max(features, 1), X, coefficients) + _labelled(out[1])
    vectors = support_vectors.numel // max(features, 1)
    pairs = labels * (labels - 1) // 2
    work = _kernel(X, vectors, features, kernel_type)
    work += matmul(rows, vectors, max(labels - 1, 1), X, coefficients)
    work += pointwise(X, rows * pairs, add=1, compare=1) + pointwise(X, rows * labels, compare=1)
    if prob_a is not None:
        made = pointwise(X, rows * pairs, mul=1, add=1, sigmoid=1, compare=2) + pointwise(
            X, rows * labels, add=32, mul=33
        )
        work += replace(made, estimated=True)  # they are found by iterations, which end sooner or later
    return work + _transformed(out[1], post_transform)


@rule("onnx_ml.SVMRegressor", family="libsvm")
def svm_regressor(
    X: TensorSpec,
    coefficients: TensorSpec,
    out: Specs,
    support_vectors: TensorSpec | None = None,
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    n_supports: int = 0,
    **_: Any,
) -> Work:
    """The kernel of each row with each support vector, times its coefficient, summed, plus rho."""
    X = _as_float(X)
    rows, features = _rows(X)
    if support_vectors is None or not n_supports:
        work = matmul(rows, features, 1, X, coefficients)
    else:
        work = _kernel(X, n_supports, features, kernel_type) + matmul(rows, n_supports, 1, X, coefficients)
    return work + bias_add(rows, X.precision) + _transformed(out[0], post_transform)


@rule("onnx_ml.TreeEnsemble", "onnx_ml.TreeEnsembleClassifier", "onnx_ml.TreeEnsembleRegressor", family="tree")
def trees(
    X: TensorSpec,
    out: Specs,
    trees: int,
    leaves: int,
    values: int,
    steps_millionths: int,
    nbytes: int,
    post_transform: Any = "NONE",
    aggregate_function: Any = "SUM",
    **_: Any,
) -> Work:
    """Each row walks down every tree: 1 compare and 1 index for each split it passes, then the values of its leaf are
    added (1 add each; 1 compare for a minimum or maximum), divided for a mean.

    How many splits a row passes is data, so this is an estimate: by the hit rates of the nodes where the model has
    them, else by the mean depth of the leaves, as if all of a tree's were equally likely.
    """
    X = _as_float(X)
    rows = _rows(X)[0]
    scores = out[-1]
    how = _AGGREGATES.get(aggregate_function, "SUM")
    added = rows * trees * max(values // max(leaves, 1), 1)
    walked = descended(rows * steps_millionths / 1e6, X.precision)
    gathered = pointwise(scores, added, **{"compare" if how in ("MIN", "MAX") else "add": 1})
    work = walked + gathered + pointwise(scores, scores.numel if how == "AVERAGE" else 0, div=1)
    work += _transformed(scores, _TRANSFORMS.get(post_transform, "NONE"))
    labelled = _labelled(scores) if len(out) > 1 else Work()
    return replace(work + labelled, bytes_read=X.nbytes + nbytes, estimated=True)


#: The newer operator numbers what the older ones name.
_AGGREGATES: Mapping[Any, str] = {0: "AVERAGE", 1: "SUM", 2: "MIN", 3: "MAX"} | {
    name: name for name in ("AVERAGE", "SUM", "MIN", "MAX")
}
_TRANSFORMS: Mapping[Any, str] = {0: "NONE", 1: "SOFTMAX", 2: "LOGISTIC", 3: "SOFTMAX_ZERO", 4: "PROBIT"} | {
    name: name for name in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
}


@rule("onnx_ml.Scaler", family="scaling")
def scaler(out: Specs, **_: Any) -> Work:
    """(x - offset)·scale: 1 add, 1 mul per element."""
    return pointwise(out[0], out[0].numel, add=1, mul=1)


@rule("onnx_ml.Normalizer", family="scaling")
def normalizer(X: TensorSpec, out: Specs, norm: str = "MAX", **_: Any) -> Work:
    """Each row over its norm: L2 1 mul, 1 add per element and 1 sqrt per row, L1 1 logic, 1 add, the largest 1 compare;
    then 1 div per element."""
    rows = _rows(X)[0]
    p = {"L2": 2, "L1": 1}.get(norm, float("inf"))
    return vector_norm(out[0], X.numel, rows, p) + pointwise(out[0], X.numel, div=1)


def _looked_up(X: TensorSpec, keys: TensorSpec | None) -> Work:
    """One step through a table of hashes for each element."""
    return replace(pointwise(X, X.numel, compare=1, index=1), bytes_read=X.nbytes + size_of(keys))


@rule("onnx_ml.OneHotEncoder", family="encoding")
def one_hot(X: TensorSpec, **categories: Any) -> Work:
    """Each value looked up among the categories: 1 compare, 1 index; the rest is filled with zeros."""
    return _looked_up(X, categories.get("cats_int64s") or categories.get("cats_strings"))


@rule("onnx_ml.LabelEncoder", "onnx_ml.CategoryMapper", family="encoding")
def label_encoder(X: TensorSpec, **tables: Any) -> Work:
    """Each value looked up and replaced: 1 compare, 1 index."""
    keys = [value for name, value in tables.items() if name != "out" and isinstance(value, TensorSpec)]
    return replace(pointwise(X, X.numel, compare=1, index=1), bytes_read=X.nbytes + size_of(tuple(keys)))


@rule("onnx_ml.ArrayFeatureExtractor", family="index")
def extracted(out: Specs, Y: TensorSpec, **_: Any) -> Work:
    """Columns by index: 1 index per result; only what is taken is read."""
    return pointwise(out[0], out[0].numel, index=1) + Work(bytes_read=out[0].nbytes + Y.nbytes)


@rule("onnx_ml.DictVectorizer", "onnx_ml.CastMap", family="encoding")
def dictionary(X: Any = None, out: Specs = (), **_: Any) -> Work:
    """Each place of the result looked up in a dictionary: log2 n compares; how many entries it has is data."""
    spec = first(out, X)
    return search(spec, spec.numel, spec.shape[-1] if spec.shape else 1)
