"""Decompositions, preprocessing, text, mixtures, networks: what their attributes do not tell."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Any

from bitwatt.backends.sklearn.facts import facts
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.results import look


def _likelihood(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[int]:
    """Values that are neither zero nor missing: the functions of those take next to nothing."""
    return (_worth(args[1]),)


def _worth(values: Any) -> int:
    return int(((values != 0) & (values == values)).sum())


probe("scipy.stats._morestats:yeojohnson_llf", "likelihood", _likelihood)
probe("scipy.stats._morestats:boxcox_llf", "likelihood", _likelihood)
probe("scipy.stats._morestats:yeojohnson", "nonzero", lambda args, kwargs, result: (_worth(args[0]),))
probe("sklearn.preprocessing._data:PowerTransformer._yeo_johnson_inverse_transform", "nonzero", _likelihood)

#: Values that are looked at, evenly spread.
_LOOKED_AT = 1000
#: Where log1p needs no power of two to be taken out: below sqrt(2) - 1.
_SMALL = 2**0.5 - 1


def _worked_out(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[int, int, int]:
    """Per thousand: the values whose log1p, expm1 or logarithm takes a polynomial, those near to known ones, and those
    so small that log1p takes the polynomial alone."""
    import numpy as np  # here already, or nothing was transformed

    X, name = args[1], getattr(_given(args, kwargs, 2, "func"), "__name__", "")
    if type(X) is not np.ndarray or X.dtype.kind != "f" or not X.size or name not in ("log1p", "expm1", "log", "exp"):
        return 1000, 0, 0
    some = X.reshape(-1)[:: max(X.size // _LOOKED_AT, 1)] if X.flags.forc else X[: max(_LOOKED_AT // X.shape[-1], 1)]
    if name in ("log", "exp"):
        known = some == (1 if name == "log" else 0)
        return 1000 - round(1000 * float(np.mean(known))) if X.dtype == np.float64 else 1000, 0, 0
    zero = float(np.mean(some == 0))
    whole = float(np.mean((np.frexp(1 + some)[0] == 0.5) & (some != 0))) if name == "log1p" else 0.0
    small = (
        float(np.mean((np.abs(some) < _SMALL) & (some != 0))) if name == "log1p" and some.dtype.itemsize == 8 else 0.0
    )
    return round(1000 * (1 - zero - whole - small)), round(1000 * whole), round(1000 * small)


probe("sklearn.preprocessing._function_transformer:FunctionTransformer._transform", "nonzero function", _worked_out)

for _kind in ("_gaussian_mixture:GaussianMixture", "_bayesian_mixture:BayesianGaussianMixture"):
    probe(f"sklearn.mixture.{_kind}._m_step", "maximisation")
    probe(f"sklearn.mixture.{_kind}._initialize", "start")

probe("sklearn.neural_network._multilayer_perceptron:BaseMultilayerPerceptron._loss_grad_lbfgs", "network_loss")


def _drawn(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[int, bool]:
    """Values of one column that are drawn from a normal distribution, and whether that has bounds."""
    imputer, _, missing, column = args[:4]
    bounds = imputer._min_value[column], imputer._max_value[column]
    return int(missing[:, column].sum()), any(abs(bound) != float("inf") for bound in bounds)


probe(
    "sklearn.impute._iterative:IterativeImputer._impute_one_feature", "drawn", _drawn,
    before=lambda args: True if args[0].sample_posterior else None,
)  # fmt: skip
probe("sklearn.metrics.pairwise:pairwise_distances_chunked", "nan_distances", lambda args, kwargs, result: (
    int(args[0].shape[0]), int(args[1].shape[0])))  # fmt: skip


def _tokens(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[int, int]:
    """Characters (-1 where documents came from a stream, a file or a user's own objects) and tokens counted."""
    documents = args[1]
    is_read = isinstance(documents, (list, tuple)) and all(type(one) is str for one in documents)
    is_text = is_read and args[0].input == "content"
    return sum(map(len, documents)) if is_text else -1, int(result[1].data.sum())


def _limited(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[int, int]:
    """Stored counts that are added up by word, where they are floating-point numbers, and their bits."""
    counts = args[1]
    is_summed = _given(args, kwargs, 5, "limit") is not None and counts.dtype.kind == "f"
    return int(counts.nnz) if is_summed else 0, 8 * counts.dtype.itemsize


probe("sklearn.feature_extraction.text:CountVectorizer._count_vocab", "tokens", _tokens)
probe("sklearn.feature_extraction.text:CountVectorizer._limit_features", "limited", _limited)
probe("sklearn.naive_bayes:binarize", "binary", lambda args, kwargs, result: (int(getattr(result, "nnz", -1)),))
probe("sklearn.feature_extraction._hash:_hashing_transform", "hashes", lambda args, kwargs, result: (len(result[0]),))
probe("sklearn.feature_selection._univariate_selection:f_oneway", "groups", lambda args, kwargs, result: (len(args),))
probe(
    "sklearn.feature_selection._univariate_selection:_chisquare", "groups", lambda args, kwargs, result: (len(args[0]),)
)


@facts(
    "sklearn.feature_selection._rfe.RFE",
    "sklearn.feature_selection._from_model.SelectFromModel",
    "sklearn.feature_selection._sequential.SequentialFeatureSelector",
)
def _gaps(selector: Any) -> dict[str, Any]:
    """Whether the estimator inside takes missing values: then nothing is checked. And of one made of trees how many
    there are, their splits, and who puts them together: they tell what features are worth, each time anew."""
    from sklearn.utils import get_tags

    inner: Any = getattr(selector, "estimator_", getattr(selector, "estimator", None))
    trees = [tree for row in getattr(inner, "estimators_", (inner,)) for tree in getattr(row, "flat", (row,))]
    known = {"allow_nan": True} if get_tags(selector).input_tags.allow_nan else {}
    if not trees or not all(hasattr(tree, "tree_") for tree in trees):
        return known
    made = next((kind.__name__ for kind in type(inner).__mro__ if kind.__name__ in _ENSEMBLES), "")
    splits = sum(tree.tree_.node_count // 2 for tree in trees)
    return known | {"inner_trees": len(trees), "inner_splits": splits, "inner_kind": made}


#: Each puts what its trees say together in another way.
_ENSEMBLES = ("BaseForest", "BaseGradientBoosting", "BaseWeightBoosting")


def _later(pca: Any, args: tuple[Any, ...], _: Any) -> tuple[Any, ...] | None:
    """The first batch is cheaper than the others, which are alike: how many samples there were is news each time. It is
    told where the batch came by name, and nobody knows here how many are its own."""
    seen = int(pca.n_samples_seen_)
    if not args:
        return (seen,)
    X = args[0]
    return () if seen > (X.shape[0] if hasattr(X, "shape") else len(X)) else None


look("partial_fit", "batches before", _later, "sklearn.decomposition._incremental_pca.IncrementalPCA")


@facts("sklearn.preprocessing._discretization.KBinsDiscretizer")
def _flat(discretizer: Any) -> dict[str, Any]:
    """Columns of one value, whose only bin has no ends."""
    flat = sum(bool(edges[0] == -float("inf")) for edges in getattr(discretizer, "bin_edges_", ()))
    return {"bins_flat": flat} if flat else {}


@facts("sklearn.preprocessing._polynomial.SplineTransformer")
def _coinciding(transformer: Any) -> dict[str, Any]:
    """How much of de Boor's recursion is left where knots coincide, at values like the knots, and columns of one value:
    nothing is said where there are no such knots."""
    import numpy as np

    live, flat = [], 0
    for spline in getattr(transformer, "bsplines_", ()):
        t, k = spline.t, spline.k
        inner = t[k : len(t) - k]
        if inner[0] == inner[-1]:
            flat += 1
        elif k and (np.diff(inner) == 0).any():
            places = [min(max(np.searchsorted(t, x, "right") - 1, k), len(t) - k - 2) for x in inner]
            live.append(sum(_left_of(t, k, place) for place in places) / len(places))
        else:
            live.append(1.0)
    share = round(sum(live) / max(len(live), 1), 3)
    return {"spline_live": share, "spline_flat": flat} if share < 1 or flat else {}


def _left_of(t: Any, k: int, place: int) -> float:
    pairs = [(place + n, place + n - j) for j in range(1, k + 1) for n in range(1, j + 1)]
    return sum(bool(t[last] != t[first]) for last, first in pairs) / len(pairs)


@facts("sklearn.decomposition._pca.PCA")
def _solver(pca: Any) -> dict[str, Any]:
    """What `svd_solver="auto"` came to."""
    return {"solver": str(getattr(pca, "_fit_svd_solver", "full"))}


probe("sklearn.decomposition._fastica:_gs_decorrelation", "deflation step")
probe("sklearn.decomposition._dict_learning:_update_dict", "atoms")
_NMF = "sklearn.decomposition._nmf"


def _factored(X: Any, k: int) -> tuple[int, int, int, int, int]:
    """Rows, columns, parts, stored elements (-1 where X is dense), bits."""
    stored = int(X.nnz) if hasattr(X, "tocsr") else -1
    return int(X.shape[0]), int(X.shape[1]), k, stored, 8 * X.dtype.itemsize


def _loss(value: Any) -> float:
    return float({"frobenius": 2, "kullback-leibler": 1, "itakura-saito": 0}.get(value, value))


def _given(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str) -> Any:
    return args[place] if len(args) > place else kwargs.get(name)


def _updated(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    return *_factored(args[0], int(args[1].shape[1])), _loss(_given(args, kwargs, 3, "beta_loss"))


def _descended(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """Sizes, then sweeps over each factor, and whether there were any over the second."""
    return *_factored(args[0], int(args[1].shape[1])), int(result[2]), int(kwargs.get("update_H", True))


def _multiplied(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """Sizes and the loss, then updates of each factor, whether of the second too, and distances from X."""
    taken, both = int(result[2]), int(_given(args, kwargs, 10, "update_H"))
    looks = 1 + (taken // 10 if _given(args, kwargs, 5, "tol") else 0)
    return *_updated(args, kwargs, result), taken, both, looks


probe(f"{_NMF}:_fit_coordinate_descent", "factor descent", _descended)
probe(f"{_NMF}:_fit_multiplicative_update", "factor updates", _multiplied)
probe(f"{_NMF}:_multiplicative_update_w", "factor w", lambda args, kwargs, result: (
    *_updated(args, kwargs, result), int(_given(args, kwargs, 9, "XHt") is not None)))  # fmt: skip
probe(f"{_NMF}:_multiplicative_update_h", "factor h", _updated)
probe(f"{_NMF}:_beta_divergence", "divergence", _updated)

_LDA = "sklearn.decomposition._lda"
probe("sklearn.decomposition._kernel_pca:eigh", "scipy eigh", lambda args, kwargs, result: (
    int(args[0].shape[0]), 8 * args[0].dtype.itemsize, "evr", False, int(result[1].shape[1])))  # fmt: skip
probe("sklearn.decomposition._kernel_pca:eigsh", "eigsh", lambda args, kwargs, result: (
    int(args[0].shape[0]), 8 * args[0].dtype.itemsize, -1, False))  # fmt: skip


class _Steps:
    """Documents go through their steps in a loop that calls one compiled function for each: this stands in its place
    while topics are looked for, and counts them for the call of each thread."""

    def __init__(self, functions: Any) -> None:
        self.functions = functions
        self.counters: dict[int, itertools.count[int]] = {}

    def __getitem__(self, kind: str) -> Any:
        function, tick = self.functions[kind], self.counters[threading.get_ident()].__next__

        def stepped(last: Any, now: Any) -> Any:
            tick()
            return function(last, now)

        return stepped


def _count_steps(_: tuple[Any, ...]) -> _Steps:
    module: Any = sys.modules[_LDA]
    if not isinstance(module.cy_mean_change, _Steps):
        module.cy_mean_change = _Steps(module.cy_mean_change)
    steps: _Steps = module.cy_mean_change
    steps.counters[threading.get_ident()] = itertools.count()
    return steps


def _topics(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """Documents, stored counts, whether statistics are made and topics drawn, steps of all documents, bits."""
    X, steps = args[0], kwargs["before"]
    module: Any = sys.modules[_LDA]
    taken = next(steps.counters.pop(threading.get_ident()))
    if not steps.counters and module.cy_mean_change is steps:
        module.cy_mean_change = steps.functions
    words = int(X.nnz) if hasattr(X, "tocsr") else int((X != 0).sum())
    return int(X.shape[0]), words, int(bool(args[5])), int(args[6] is not None), taken, 8 * X.dtype.itemsize


probe(f"{_LDA}:_update_doc_distribution", "topics", _topics, before=_count_steps)

for _name in ("minimize", "minimize_scalar"):
    probe(f"sklearn.calibration:{_name}", "calibration", lambda args, kwargs, result: (int(result.nfev),))
