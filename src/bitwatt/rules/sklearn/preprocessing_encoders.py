"""sklearn.preprocessing: categories, labels and bins. Most of their work is looking up; what arithmetic there is checks
values and keeps the books of np.unique."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.formulas.arrays import checked, distinct, floats, stored
from bitwatt.formulas.vector import DOUBLE, arithmetic, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_NAME = "sklearn.preprocessing."

free(
    *(f"{_NAME}MultiLabelBinarizer.{method}" for method in ("fit", "fit_transform", "transform", "inverse_transform")),
    reason="looks labels up in a dictionary: no arithmetic",
)
free(f"{_NAME}LabelEncoder.inverse_transform", reason="looks labels up by index: no arithmetic")


def length(value: Any) -> int:
    """How many samples a one-dimensional argument has; short arrays of integers arrive as tuples."""
    if isinstance(value, TensorSpec):
        return value.shape[0]
    return len(value) if isinstance(value, tuple) else 0


def _columns(X: Any) -> int:
    return X.shape[1] if isinstance(X, TensorSpec) and len(X.shape) > 1 else 1


def _distinct(X: TensorSpec) -> Work:
    """The distinct values of each column. Those of few bits are sorted by counting, with 2 operations of bookkeeping;
    truth values are not sorted at all."""
    bits = X.precision.bits
    return distinct(_columns(X)) if bits > 16 else arithmetic(2 * _columns(X) * (bits > 1), DOUBLE)


def _looked_up(X: TensorSpec, columns: int) -> Work:
    """Finding the categories of floating-point columns sorts them and compares with nan: 89 operations a column; of
    integers as many as finding them first."""
    sorting = Work.of(floats(X), compare=round(stored(X) * math.log2(max(X.shape[0], 2))))
    return (arithmetic(89 * columns, DOUBLE) if X.precision.kind == "float" else _distinct(X)) + sorting


@rule(f"{_NAME}OneHotEncoder.fit", f"{_NAME}OrdinalEncoder.fit", family="encoding")
def encoder_fit(
    X: TensorSpec, categories: Any = "auto", categories_: Any = (), max_categories: Any = None,
    min_frequency: Any = None, **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check and the distinct values of each column; known categories need none. Where rare ones are put
    together they are sorted by how often they occur, and looked up: 60."""
    least = min_frequency * X.shape[0] if isinstance(min_frequency, float) else min_frequency or 0
    sizes = [length(one) for one in categories_] if isinstance(categories_, tuple) else []
    rare = sum(size > (max_categories or size) or size * least > X.shape[0] for size in sizes)
    return validated(X) + (_distinct(X) if categories == "auto" else Work()) + arithmetic(60 * rare, DOUBLE)


@rule(f"{_NAME}OneHotEncoder.transform", family="encoding")
def one_hot(
    X: TensorSpec, sparse_output: bool = True, drop: Any = None, out: tuple[TensorSpec, ...] = (), **_: Any
) -> Work:
    """The finiteness check and looking up; where the result is dense, each one is added into zeros; those of a dropped
    category are not, of which there are as many as of others."""
    work = validated(X) + _looked_up(X, _columns(X))
    if sparse_output or not out:
        return work
    kept = out[0].shape[1] / (out[0].shape[1] + _columns(X)) if drop is not None else 1.0
    return work + arithmetic(0, floats(out[0]), add=X.numel * kept)


@rule(f"{_NAME}OneHotEncoder.inverse_transform", family="encoding")
def one_hot_back(X: TensorSpec, n_features_in_: int = 1, drop: Any = None, **_: Any) -> Work:
    """The finiteness check, the largest of each feature's columns, and their sum, to see whether there is a one: of a
    sparse matrix that of its ones."""
    found = X.shape[0] * n_features_in_ if X.nnz is not None else X.numel
    return validated(X) + Work.of(floats(X), add=found, compare=stored(X))


@rule(f"{_NAME}OrdinalEncoder.transform", family="encoding")
def ordinal(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check and looking up."""
    return validated(X) + _looked_up(X, _columns(X))


@rule(f"{_NAME}OrdinalEncoder.inverse_transform", family="encoding")
def ordinal_back(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check; categories are looked up by index."""
    return validated(X)


@rule(*(f"{_NAME}LabelEncoder.{method}" for method in ("fit", "fit_transform", "transform")), family="encoding")
def labels(y: Any = None, **_: Any) -> Work:
    """The distinct labels, or looking them up; floating-point ones are checked too."""
    return distinct(1) + (validated(y) if isinstance(y, TensorSpec) else Work())


@rule(f"{_NAME}LabelBinarizer.fit", family="encoding")
def label_binarizer_fit(y: Any = None, **_: Any) -> Work:
    """The kind of target and its distinct labels: np.unique twice."""
    return distinct(2)


@rule(f"{_NAME}LabelBinarizer.transform", family="encoding")
def label_binarizer(y: Any = None, **_: Any) -> Work:
    """The kind of target and its distinct labels, and one element set for each sample."""
    return distinct(2) + Work.of(DOUBLE, index=length(y))


free(f"{_NAME}LabelBinarizer.fit_transform", reason="calls fit and transform, which are counted")


@rule(f"{_NAME}LabelBinarizer.inverse_transform", family="encoding")
def label_binarizer_back(Y: Any = None, **_: Any) -> Work:
    """The largest column of each row, or a comparison with the threshold."""
    return Work.of(DOUBLE, compare=Y.numel if isinstance(Y, TensorSpec) else length(Y))


def _classes(classes_: Any) -> int:
    """How many columns of encodings the target asks for: one for each class of more than two."""
    count = length(classes_)
    return count if count > 2 else 1


def _encoded(X: TensorSpec, rows: float, categories: float, smooth: Any) -> Work:
    """Means of the target by category: a sum for each value, then, where the smoothing follows from the variances,
    a squared deviation (3 more) and some 10 operations for each category."""
    each, end = (4, 10) if smooth == "auto" else (2, 3)
    return arithmetic(each * rows * _columns(X) + end * categories, DOUBLE)


@rule(f"{_NAME}TargetEncoder.fit", family="encoding")
def target_encoder_fit(
    X: TensorSpec, y: Any = None, smooth: Any = "auto", classes_: Any = None, categories_: Any = (), **_: Any
) -> Work:
    """Categories are found and looked up; for each class of a target of more than two, the mean of the target, its
    variance where smoothing follows from it, then its mean by category, drawn towards the whole mean."""
    columns = _columns(X)
    known = sum(length(one) for one in categories_) if isinstance(categories_, tuple) else 10 * columns
    target = arithmetic((6 if smooth == "auto" else 1) * length(y) * _classes(classes_), DOUBLE)
    encoded = _encoded(X, X.shape[0], known, smooth) * _classes(classes_)
    return validated(X) * 2 + _distinct(X) + _looked_up(X, columns) + target + encoded


@rule(f"{_NAME}TargetEncoder.fit_transform", family="encoding")
def target_encoder_fit_transform(
    X: TensorSpec, y: Any = None, smooth: Any = "auto", classes_: Any = None, categories_: Any = (), cv: Any = 5,
    **_: Any,
) -> Work:  # fmt: skip
    """As fit, and once more for each fold on the samples of the others."""
    whole = target_encoder_fit(X, y, smooth, classes_, categories_)
    folds = cv if isinstance(cv, int) else 5
    known = sum(length(one) for one in categories_) if isinstance(categories_, tuple) else 10 * _columns(X)
    rows = X.shape[0] * (folds - 1) / max(folds, 1)
    means = arithmetic((5 if smooth == "auto" else 1) * rows, DOUBLE)
    fold = (_encoded(X, rows, known, smooth) + means) * _classes(classes_)
    return whole + fold * folds


@rule(f"{_NAME}TargetEncoder.transform", family="encoding")
def target_encoder(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check and looking up."""
    return validated(X) + _looked_up(X, _columns(X))


@rule(f"{_NAME}KBinsDiscretizer.fit", family="encoding")
def bins_fit(
    X: TensorSpec, n_bins: Any = 5, strategy: str = "quantile", quantile_method: str = "linear",
    encode: str = "onehot", sample_weight: Any = None, bins_flat: int = 0, **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check; for each column of more than one value equal bins (4 operations an edge, in the precision
    of the data), quantiles (19 a bin and 56; two more
    where neighbours are averaged; with weights their cumulative sum, 12 a bin and 36), or k-means in one dimension,
    which is counted as itself, with 12 operations a bin for its start and its edges. An encoder of flags sorts the bins
    of each column: 57."""
    bins = n_bins if isinstance(n_bins, int) else sum(n_bins) / len(n_bins) if isinstance(n_bins, tuple) else 5
    rows, weighted = X.shape[0], sample_weight is not None
    one = 12 * bins + 36 + rows if weighted else (21 if quantile_method.startswith("averaged") else 19) * bins + 56
    each = {"uniform": 4 * (bins + 1), "quantile": one, "kmeans": 12 * bins}[strategy]
    varied = X.shape[1] - bins_flat
    precision = floats(X) if strategy == "uniform" else DOUBLE
    work = checked(X) + arithmetic(each * varied, precision, compare=4 * X.numel)
    if encode != "ordinal":
        work += arithmetic(57 * X.shape[1], DOUBLE)
    return work + arithmetic(rows, DOUBLE) if weighted else work


@rule(f"{_NAME}KBinsDiscretizer.transform", family="encoding")
def bins(X: TensorSpec, n_bins: Any = 5, **_: Any) -> Work:
    """The finiteness check and a binary search for each value; the encoder that follows is counted as itself."""
    size = n_bins if isinstance(n_bins, int) else 5
    return checked(X) + Work.of(floats(X), compare=X.numel * math.ceil(math.log2(max(size, 2))))


@rule(f"{_NAME}KBinsDiscretizer.inverse_transform", family="encoding")
def bins_back(
    X: TensorSpec, n_features_in_: int = 1, n_bins: Any = 5, encode: str = "onehot", strategy: str = "quantile",
    **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check of the bins, which an encoder gives back in double, and their centres, 2 operations each, in
    double for quantiles. What was encoded is counted as the encoder's."""
    size = n_bins if isinstance(n_bins, int) else 5
    given = floats(X) if encode == "ordinal" else DOUBLE
    centres = arithmetic(2 * size * n_features_in_, DOUBLE if strategy == "quantile" else floats(X))
    return Work.of(given, add=X.shape[0] * n_features_in_) + centres
