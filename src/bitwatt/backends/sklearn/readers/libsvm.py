"""libsvm: what a fit tells of each pair of classes it trained on."""

from __future__ import annotations

import functools
from typing import Any

from numpy import count_nonzero, ndarray

from bitwatt.backends.sklearn.probes import probe


def _dense(coefficients: Any) -> Any:
    return coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients


def _bound(estimator: Any, coefficients: Any, weights: Any) -> Any:
    """The largest value of support vectors' coefficients, one for all where it can be: C times its weights, or what the
    largest one has where C is not what bounds them."""
    import numpy as np

    if estimator._impl in ("nu_svc", "one_class"):
        return coefficients.max(initial=0.0)
    bound: Any = float(estimator.C)
    if weights.size:
        bound = bound * weights[estimator.support_]
    if estimator._impl == "c_svc":
        of_classes = estimator.class_weight_
        alike = len({*of_classes.tolist()}) == 1
        bound = bound * (of_classes[0] if alike else np.repeat(of_classes, estimator._n_support))
    return bound


def _by_class(which: Any, sizes: Any) -> Any:
    """For each row of coefficients and each class: how many of its support vectors, which lie together."""
    import numpy as np

    ends = np.cumsum(sizes)
    if sizes.all():
        return np.add.reduceat(which, ends - sizes, axis=-1, dtype=int)
    sums = np.zeros((*which.shape[:-1], which.shape[-1] + 1), dtype=int)
    np.cumsum(which, axis=-1, out=sums[..., 1:])
    return np.diff(sums[..., [0, *ends]], axis=-1)


@functools.lru_cache(100)
def _pairs(classes: int) -> tuple[Any, Any]:
    import numpy as np

    return np.triu_indices(classes, 1)


def _pair(estimator: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The same for two classes without weights of samples, where C bounds all: most fits are short ones of this kind,
    and what looks at many classes at once takes longer."""
    X, coefficients = args[1], estimator.dual_coef_
    weighted = len(args) > 3 and len(args[3])
    if estimator._impl != "c_svc" or weighted or type(X) is not ndarray or len(estimator._n_support) != 2:
        return None
    first, (one, two) = int(estimator._n_support[0]), estimator.class_weight_
    values, bound = abs(coefficients[0]), float(estimator.C) * (1 - 1e-9)
    at_bound = count_nonzero(values[:first] >= bound * one) + count_nonzero(values[first:] >= bound * two)
    used = int(count_nonzero(values))
    return (*X.shape, -1, ((len(X), int(estimator._num_iter[0]), used, int(at_bound)),))


def _trained(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Rows, features, stored elements (-1: dense), and for each problem: rows, iterations, support vectors, those at
    their bound."""
    import numpy as np

    estimator, X, y = args[:3]
    if (pair := _pair(estimator, args)) is not None:
        return pair
    coefficients = np.abs(_dense(estimator.dual_coef_))
    bound = _bound(estimator, coefficients, np.asarray(args[3] if len(args) > 3 else ())) * (1 - 1e-9)
    iterations = np.ravel(estimator._num_iter).tolist()
    stored = int(X.nnz) if hasattr(X, "tocsr") else -1
    classes = len(estimator._n_support) if estimator._impl in ("c_svc", "nu_svc") else 1
    if classes < 2:
        used = int((coefficients > 0).sum())
        problems: Any = ((int(X.shape[0]), sum(iterations), used, int((coefficients >= bound).sum())),)
        return (int(X.shape[0]), int(X.shape[1]), stored, problems)
    rows, sizes = np.bincount(np.asarray(y).astype(int), minlength=classes), np.asarray(estimator._n_support)
    one, other = _pairs(classes)
    which = np.empty((2, *coefficients.shape), dtype=bool)
    np.greater(coefficients, 0, out=which[0])
    np.greater_equal(coefficients, bound, out=which[1])
    found = _by_class(which, sizes)
    used, at_bound = (found[:, other - 1, one] + found[:, one, other]).tolist()
    iterations += [0] * (len(one) - len(iterations))
    problems = tuple(zip((rows[one] + rows[other]).tolist(), iterations, used, at_bound, strict=False))
    return (int(X.shape[0]), int(X.shape[1]), stored, problems)


for _name in ("_dense_fit", "_sparse_fit"):
    probe(f"sklearn.svm._base:BaseLibSVM.{_name}", "libsvm", _trained)
