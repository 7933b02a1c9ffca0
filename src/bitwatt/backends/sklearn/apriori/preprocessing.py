"""Scalers, encoders, feature maps, imputers, selectors: what shapes tell, and how wide the result is."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.registry import UnassumedError, assumes, calls, told_by_shapes
from bitwatt.records import TensorSpec

_MAPS = ("transform", "inverse_transform")
told_by_shapes("preprocessing. random_projection. isotonic.", "fit", "partial_fit", "fit_transform", "predict", *_MAPS)
told_by_shapes("impute.SimpleImputer impute.MissingIndicator impute.KNNImputer", "fit", "fit_transform", *_MAPS)
told_by_shapes("feature_selection.", *_MAPS)
calls("preprocessing.StandardScaler preprocessing.MinMaxScaler preprocessing.MaxAbsScaler", "fit", "partial_fit")
calls("preprocessing.LabelBinarizer", "fit_transform", "fit", "transform")


@assumes("preprocessing.PolynomialFeatures")
def polynomial(call: Call) -> dict[str, Any]:
    degree, f = call.get("degree", 2), call.columns
    low, high = (0, degree) if isinstance(degree, int) else degree
    if call.get("interaction_only"):
        width = sum(math.comb(f, d) for d in range(max(low, 1), min(high, f) + 1))
    else:
        width = math.comb(f + high, high) - (math.comb(f + low - 1, low - 1) if low > 1 else 1)
    width += int(bool(call.get("include_bias", True)))
    if call.stored < 0:
        return {"_width": width}
    each = call.stored / max(call.rows, 1)  # products of stored values alone are stored
    return {"_width": width, "_kept": sum(each**d / math.factorial(d) for d in range(max(low, 0), high + 1))}


@assumes("preprocessing.SplineTransformer")
def splines(call: Call) -> dict[str, Any]:
    knots, degree = call.get("n_knots", 5), int(call.get("degree", 3))
    each = int(knots) + degree - 1 - int(not call.get("include_bias", True))
    each -= degree if call.get("extrapolation") == "periodic" else 0
    return {"_width": each * call.columns, "_kept": None}


def _categories(call: Call) -> tuple[int, ...]:
    """How many each column has: as given, else assumed."""
    given = call.get("categories", "auto")
    if isinstance(given, (list, tuple)):
        return tuple(len(one) for one in given)
    return (int(call.assume("categories", 10, "of a column")),) * call.columns


@assumes("preprocessing.OneHotEncoder")
def one_hot(call: Call) -> dict[str, Any]:
    many = _categories(call)
    dropped = call.get("drop")
    less = 0 if dropped is None else len(many) if dropped != "if_binary" else sum(n == 2 for n in many)
    sparse = call.get("sparse_output", True)
    share = 1.0 if less == 0 else 1 - less / max(sum(many), 1)
    return {"_width": sum(many) - less, "_kept": call.columns * share if sparse else None, "_dtype": "float64"}


@assumes("preprocessing.OrdinalEncoder")
def ordinal(call: Call) -> dict[str, Any]:
    return {"_dtype": "float64"}


@assumes("preprocessing.TargetEncoder", methods=("fit", "fit_transform"))
def target(call: Call) -> dict[str, Any]:
    from sklearn.preprocessing import LabelEncoder

    many, classes = _categories(call), 0
    if call.y is not None and not call.y.dtype.startswith("float"):
        call.ask(LabelEncoder(), "fit_transform", call.y)
        classes = call.walk.classes or 2
    width = call.columns * (classes if classes > 2 else 1)
    told = {"categories_": tuple(TensorSpec((n,), "int64") for n in many), "_width": width, "_dtype": "float64"}
    return told | ({"classes_": tuple(range(classes))} if classes else {})


@assumes("preprocessing.KBinsDiscretizer")
def bins(call: Call) -> dict[str, Any]:
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import OneHotEncoder

    each, encode = call.get("n_bins", 5), call.get("encode", "onehot")
    if call.get("strategy", "quantile") == "kmeans":
        many = each if isinstance(each, int) else round(sum(each) / len(each))
        model = KMeans(n_clusters=many, init="random", n_init=1)
        call.ask(model, "fit", TensorSpec((call.rows, 1), call.X.dtype), times=call.columns)
    if encode == "ordinal":
        return {}
    categories = [range(many) for many in ([each] * call.columns if isinstance(each, int) else each)]
    encoder = OneHotEncoder(categories=categories, sparse_output=encode == "onehot")
    call.ask(encoder, "fit", TensorSpec((1, call.columns), "float64"))
    width = each * call.columns if isinstance(each, int) else sum(each)
    return {"_width": width, "_kept": call.columns if encode == "onehot" else None, "_encoder": encoder}


@assumes("preprocessing.KBinsDiscretizer", methods=("transform",))
def binned(call: Call) -> dict[str, Any]:
    if "_encoder" in call.known:
        call.ask(call.known["_encoder"], "transform", call.X)
    return {}


@assumes("preprocessing.QuantileTransformer")
def quantiles(call: Call) -> dict[str, Any]:
    return {"n_quantiles_": max(1, min(int(call.get("n_quantiles", 1000)), call.rows))}


@assumes("preprocessing.PowerTransformer", methods=("fit", "fit_transform"))
def power(call: Call) -> dict[str, Any]:
    each = int(call.assume("evaluations", 14, "of the likelihood, for each column"))
    call.probe("likelihood", times=each * call.columns)
    return {}


@assumes("preprocessing.LabelBinarizer", "preprocessing.MultiLabelBinarizer", "preprocessing.LabelEncoder")
def labels(call: Call) -> dict[str, Any]:
    classes = call.walk.classes or 2
    many = classes > 2 or "Multi" in type(call.estimator).__name__
    return {"classes_": tuple(range(min(classes, 64))), "_width": classes if many else 1, "_dtype": "int64"}


@assumes("preprocessing.FunctionTransformer", methods=("transform", "fit_transform", "inverse_transform"))
def function(call: Call) -> dict[str, Any]:
    call.assume("function", "as wide as X", "what a function returns is not known")
    return {}


def _projected(call: Call) -> int:
    asked = call.get("n_components", "auto")
    if asked != "auto":
        return int(asked)
    eps = float(call.get("eps", 0.1))  # Johnson and Lindenstrauss
    return int(4 * math.log(call.rows) / (eps**2 / 2 - eps**3 / 3))


@assumes("random_projection.BaseRandomProjection")
def projection(call: Call) -> dict[str, Any]:
    width = _projected(call)
    told: dict[str, Any] = {"n_components_": width, "_width": width, "_kept": None}
    kind = "float32" if call.bits == 32 else "float64"
    if "Sparse" not in type(call.estimator).__name__:
        return told | {"components_": TensorSpec((width, call.columns), kind)}
    density = call.get("density", "auto")
    share = 1 / math.sqrt(call.columns) if density == "auto" else float(density)
    held = TensorSpec((width, call.columns), kind, round(share * width * call.columns))
    return told | {"density_": share, "_kept": width if call.stored >= 0 else None, "components_": held}


@assumes("impute.KNNImputer", methods=("transform",))
def nearest_values(call: Call) -> dict[str, Any]:
    share = float(call.assume("gapped", 0.75, "share of rows with missing values"))
    seen = call.known.get("_rows", call.rows)
    call.probe("nan_distances", round(share * call.rows), seen)
    return {}


@assumes("impute.KNNImputer")
def nearest_values_fit(call: Call) -> dict[str, Any]:
    return {"_rows": call.rows}


@assumes("impute.IterativeImputer", methods=("fit_transform",))
def iterative(call: Call) -> dict[str, Any]:
    """Each column with gaps is regressed on the others, in rounds; rows with gaps are predicted."""
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import BayesianRidge

    rounds = int(call.assume("n_iter_", int(call.get("max_iter", 10)), "max_iter"))
    model, share = call.model("estimator", BayesianRidge), float(call.assume("missing", 0.1, "share of the values"))
    others = call.get("n_nearest_features") or call.columns - 1
    call.ask(SimpleImputer(), "fit_transform", call.X, name="initial_imputer")
    whole, gaps = round((1 - share) * call.rows), round(share * call.rows)
    y = TensorSpec((whole,), call.X.dtype)
    times = rounds * call.columns
    call.ask(model, "fit", TensorSpec((whole, others), call.X.dtype), y, times=times)
    call.ask(model, "predict", TensorSpec((gaps, others), call.X.dtype), times=times)
    return {"n_iter_": rounds, "_gaps": share}


calls("impute.IterativeImputer", "fit", "fit_transform")


@assumes("impute.IterativeImputer", methods=("transform",))
def iterative_transform(call: Call) -> dict[str, Any]:
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import BayesianRidge

    model, others = call.model("estimator", BayesianRidge), call.get("n_nearest_features") or call.columns - 1
    call.ask(SimpleImputer(), "transform", call.X, name="initial_imputer")
    gaps = max(round(float(call.known.get("_gaps", 0.1)) * call.rows), 1)
    times = call.known["n_iter_"] * call.columns
    call.ask(model, "predict", TensorSpec((gaps, others), call.X.dtype), times=times)
    return {}


def _kept(call: Call) -> int:
    f, kind = call.columns, type(call.estimator).__name__
    if kind == "SelectKBest":
        k = call.get("k", 10)
        return f if k == "all" else min(int(k), f)
    if kind == "SelectPercentile":
        return max(round(f * float(call.get("percentile", 10)) / 100), 1)
    if kind == "GenericUnivariateSelect" and call.get("mode", "percentile") == "k_best":
        return min(int(call.get("param", 1e-5)), f)
    return max(round(f * float(call.assume("selected", 0.5, "share of the columns"))), 1)


@assumes("feature_selection._BaseFilter")
def univariate(call: Call) -> dict[str, Any]:
    name = getattr(call.get("score_func"), "__name__", "f_classif")
    if name.startswith("mutual_info"):
        raise UnassumedError("mutual information looks for neighbours in every column, as values lie")
    if name == "f_classif":
        call.probe("groups", max(call.walk.classes_for(call), 2))
    elif name == "chi2":
        call.probe("groups", call.columns)
    return {"_width": _kept(call)}


@assumes("feature_selection.VarianceThreshold")
def variances(call: Call) -> dict[str, Any]:
    return {"_width": round(call.columns * float(call.assume("selected", 1.0, "share of the columns")))}
