"""Values on which the cost of a call depends: of logarithms and cosines, which take one way for all only as vectors of
single precision, of tails of distributions, of interpolations, and where sparse rows meet."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.facts import facts
from bitwatt.backends.sklearn.results import look

#: Values that are looked at, evenly spread.
_LOOKED_AT = 4096
#: Logarithms of what the C library takes as near to one: between 1 - 1/16 and 1 + 0.0647.
_NEAR = (-0.0645, 0.0627)
#: From where on the C library turns the argument of a cosine to a sine, and divides it by π/2; how near to a zero of
#: the cosine a short polynomial is enough.
_TURNED, _DIVIDED, _SHORT = 0.855469, 2.426265, 0.126


#: Normal distributions: beyond the first scikit-learn cuts them off; beyond the second scipy takes other polynomials
#: for quantiles, those of shares below exp(-2); beyond the third for shares.
_END, _TAIL, _FAR = 5.19, 1.1015, 2**0.5


def _some(values: Any) -> Any:
    """Whole rows, as a step through all values might meet some columns only."""
    return values[:: max(values.size // _LOOKED_AT, 1)].reshape(-1)


def _per_thousand(*found: Any) -> tuple[int, ...]:
    return tuple(round(1000 * float(one.mean())) for one in found)


def logarithms_near_one(logarithms: Any) -> tuple[int, ...]:
    """Per thousand: those of values near to one, of one itself, of zero."""
    near = (logarithms > _NEAR[0]) & (logarithms < _NEAR[1])
    one = logarithms == 0
    return _per_thousand(near & ~one, one, logarithms == -float("inf"))


def _log_probabilities(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """How many there are (a list where there are several outputs), and what they are near to."""
    import numpy as np  # here already, or nothing was predicted

    parts = [part for part in (result if isinstance(result, list) else [result]) if part.dtype.char == "d"]
    if not parts:
        return None
    return sum(part.size for part in parts), *logarithms_near_one(np.concatenate([_some(part) for part in parts]))


look(
    "predict_log_proba", "logarithms", _log_probabilities, "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.linear_model._stochastic_gradient.SGDClassifier", "sklearn.ensemble._forest.ForestClassifier",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis", "sklearn.ensemble._weight_boosting.AdaBoostClassifier",
    "sklearn.ensemble._gb.GradientBoostingClassifier", "sklearn.tree._classes.DecisionTreeClassifier",
    "sklearn.neural_network._multilayer_perceptron.MLPClassifier", "sklearn.multioutput.ClassifierChain",
    "sklearn.dummy.DummyClassifier", "sklearn.svm._base.BaseSVC",
)  # fmt: skip


#: Exponentials below the first are zero; log(1 + x) of x below the second is x, but for what is too small to see.
_VANISHED, _SURE = -745.13, 2e-9


def _sure(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """Per thousand: log-probabilities whose exponential vanished, samples whose class is sure."""
    if result.dtype.char != "d":
        return None
    some = result[:: max(result.size // _LOOKED_AT, 1)]
    return _per_thousand(some < _VANISHED, some.max(axis=1) > -_SURE)


def _known(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """Per thousand: probabilities of zero and of one, whose exponentials are known."""
    return _per_thousand((some := _some(result)) == 0, some == 1) if result.dtype.char == "d" else None


look("predict_log_proba", "sure", _sure, "sklearn.naive_bayes._BaseNB")
look("predict_proba", "known", _known, "sklearn.naive_bayes._BaseNB")


def _logits(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...]:
    """Whether scores are probabilities, of which logarithms are taken; per thousand: results that vanished, and
    logarithms of what is near to one."""
    import numpy as np

    some = _some(np.asarray(args[0]))
    are_shares = np.ndim(args[0]) == 2 and some.min() >= 0 and some.max() <= 1
    return int(are_shares), *_per_thousand(_some(result) == 0, some > 1 + _NEAR[0])


look("predict", "logits", _logits, "sklearn.calibration._TemperatureScaling")


def _votes(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...]:
    """Hundredths, of one log-probability: sums that took an exponential and a logarithm. Where trees are sure, what
    comes out is a whole number of their votes, of which the first two need none. Per thousand: without a vote."""
    import numpy as np

    members = len(estimator.estimators_)
    votes = np.exp(_some(result)) * members
    are_whole = np.abs(votes - np.round(votes)) < 1e-6
    summed = np.where(are_whole, np.maximum(votes - 2, 0), members - 1)
    return round(100 * float(summed.mean())), *_per_thousand(votes == 0)


look("predict_log_proba", "votes", _votes, "sklearn.ensemble._bagging.BaggingClassifier")


def _scores(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...]:
    """Per thousand: statistics below their mean, if features told nothing."""
    return _per_thousand(estimator.scores_ < 1)


look("fit", "scores", _scores, "sklearn.feature_selection._univariate_selection._BaseFilter")


def _counts_of_one(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """Per thousand: counts whose logarithm is known. The result stores what was counted."""
    import numpy as np

    if not estimator.sublinear_tf or result.dtype.char != "d":
        return None
    X = args[0]
    values = X.data if hasattr(X, "tocsr") else X[X != 0]
    if np.shares_memory(values, result.data):
        return _least_of_rows(estimator, result)
    return _per_thousand(_some(values) == 1)


def _least_of_rows(estimator: Any, result: Any) -> tuple[Any, ...] | None:
    """The same where counts were written over: one is the least of a row, before it got its weight."""
    import numpy as np

    rows = result[:: max(result.nnz // _LOOKED_AT, 1)]
    sizes = np.diff(rows.indptr)
    if not len(rows.data):
        return None
    terms = rows.data / (estimator.idf_[rows.indices] if estimator.use_idf else 1.0)
    least = np.minimum.reduceat(terms, rows.indptr[:-1][sizes > 0])
    return _per_thousand(terms <= np.repeat(least, sizes[sizes > 0]) * (1 + 1e-9))


look("transform", "counts of one", _counts_of_one, "sklearn.feature_extraction.text.TfidfTransformer")


def _meeting(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """Elements of rows and of support vectors that meet, of all pairs of both; pairs of which neither has any. Of dense
    rows how large the arguments of the kernel's exponential or tangent are."""
    import numpy as np

    X, vectors = args[0], estimator.support_vectors_
    if not hasattr(X, "tocsr") or not hasattr(vectors, "tocsr"):
        return None if hasattr(vectors, "tocsr") else _arguments(estimator, np.asarray(X), vectors)
    rows = X.tocsr(), vectors.tocsr()
    ours, theirs = (np.bincount(one.indices, minlength=one.shape[1]).astype(np.int64) for one in rows)
    empty, other = (one.shape[0] - int(np.count_nonzero(np.diff(one.indptr))) for one in rows)
    return int(ours @ theirs), empty * other


#: Exponentials below the first are zero at once; arguments of a tangent between which the C library takes other ways.
_LOST, _BENDS = -1024.0, (0.17328, 0.51986, 22.0)


def _arguments(estimator: Any, X: Any, vectors: Any) -> tuple[Any, ...] | None:
    """Per thousand, of 16 rows and 64 support vectors: exponentials that are lost; or arguments of the hyperbolic
    tangent by their size. Few pairs are not looked at: it would take as long as they do."""
    import numpy as np

    if estimator.kernel not in ("rbf", "sigmoid") or len(X) * len(vectors) < _LOOKED_AT:
        return None
    rows, some = X[:: -(-len(X) // 16)].astype(float), vectors[:: -(-len(vectors) // 64)]
    gamma = estimator._gamma
    if estimator.kernel == "rbf" and -2 * gamma * (np.vdot(rows, rows) + np.vdot(some, some)) > _LOST:
        return (0,)  # no two of them can be so far from each other
    products = rows @ some.T
    if estimator.kernel == "rbf":
        squares = np.square(rows).sum(axis=1)[:, None] + np.square(some).sum(axis=1)
        return _per_thousand(gamma * (2 * products - squares) < _LOST)
    sizes = np.abs(gamma * products + estimator.coef0)
    return _per_thousand(*(sizes < bend for bend in _BENDS))


for _method in ("fit", "predict", "decision_function"):
    look(_method, "meeting", _meeting, "sklearn.svm._base.BaseLibSVM")


def _at_knots(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """Per thousand: values that are quantiles themselves, between which nothing is interpolated; of a normal
    distribution also those at its ends, which have no quantile to compute, and those in its tails."""
    import numpy as np

    X, found, quantiles = np.asarray(args[0]), np.asarray(result), estimator.quantiles_
    step = max(X.shape[0] * X.shape[1] // _LOOKED_AT, 1)
    some, sizes = X[::step], np.abs(found[::step])
    known = np.stack([np.isin(some[:, j], quantiles[:, j]) for j in range(X.shape[1])])
    if estimator.output_distribution == "uniform":
        return _per_thousand(known)
    return _per_thousand(known, sizes > _END, (sizes > _TAIL) & (sizes <= _END))


look("transform", "at knots", _at_knots, "sklearn.preprocessing._data.QuantileTransformer")


def _at_references(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """Per thousand: shares that quantiles stand for themselves. Those of a normal distribution are computed first, and
    hardly ever are ones; of its values those in the tails."""
    import numpy as np

    some = _some(np.asarray(args[0]))
    if estimator.output_distribution == "uniform":
        return _per_thousand(np.isin(some, estimator.references_))
    return 0, *_per_thousand(np.abs(some) > _FAR)


look("inverse_transform", "at knots", _at_references, "sklearn.preprocessing._data.QuantileTransformer")


def _angles(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """Per thousand of the cosines: small arguments, turned ones, those of them near to a zero, divided ones near to a
    zero; then as for logarithms, where there were any before."""
    import numpy as np

    if result.dtype.char != "d":
        return None
    X, weights = args[0], estimator.random_weights_
    rows = X[:: max(X.shape[0] // max(_LOOKED_AT // weights.shape[1], 1), 1)]
    logarithms: tuple[int, ...] = ()
    if hasattr(estimator, "skewedness"):
        rows = np.log(np.asarray(rows) + estimator.skewedness)
        logarithms = logarithms_near_one(rows)
    angles = np.abs(np.asarray(rows @ weights) + estimator.random_offset_)
    small, divided = angles < _TURNED, angles >= _DIVIDED
    zero = np.abs(np.remainder(angles, np.pi) - np.pi / 2) < _SHORT
    turned = ~small & ~divided
    return *_per_thousand(small, turned, turned & zero, divided & zero), *logarithms


look("transform", "angles", _angles, "sklearn.kernel_approximation.RBFSampler",
     "sklearn.kernel_approximation.SkewedChi2Sampler")  # fmt: skip


def _negative(estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """Per thousand: stored elements below zero, on which the extremes of sparse rows depend."""
    return _per_thousand(_some(result.data) < 0) if estimator.norm == "max" and hasattr(result, "tocsr") else None


look("transform", "negative", _negative, "sklearn.preprocessing._data.Normalizer")


@facts("sklearn.dummy.DummyClassifier")
def _shares(estimator: Any) -> dict[str, Any]:
    """Per thousand: samples of each class, from which `stratified` draws."""
    prior = estimator.class_prior_
    return {"shares": _per_thousand(*prior)} if estimator.strategy == "stratified" and len(prior) <= _CLASSES else {}


#: Of more classes nobody tells the shares.
_CLASSES = 64
