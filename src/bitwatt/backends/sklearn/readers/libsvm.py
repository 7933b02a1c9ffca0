"""libsvm: what a fit tells of each pair of classes it trained on."""

from __future__ import annotations

from typing import Any

from numpy import count_nonzero, ndarray

from bitwatt.backends.sklearn.probes import probe


def _dense(coefficients: Any) -> Any:
    return coefficients.toarray() if hasattr(coefficients, "toarray") else coefficients


def _bound(estimator: Any, coefficients: Any, weights: Any) -> Any:
    """The largest value of each support vector's coefficient: C times its weights, or what the largest one has where C
    is not what bounds them."""
    import numpy as np

    support = estimator.support_
    if estimator._impl in ("nu_svc", "one_class"):
        return np.full(len(support), coefficients.max(initial=0.0))
    bound = np.full(len(support), float(estimator.C))
    if weights.size:
        bound *= weights[support]
    if estimator._impl == "c_svc":
        bound *= np.repeat(estimator.class_weight_, estimator._n_support)
    return bound


def _by_class(which: Any, ends: Any) -> Any:
    """For each row of coefficients and each class: how many of its support vectors."""
    import numpy as np

    sums = np.zeros((which.shape[0], which.shape[1] + 1), dtype=int)
    np.cumsum(which, axis=1, out=sums[:, 1:])
    return np.diff(sums[:, ends], axis=1).tolist()


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
    iterations = [int(steps) for steps in np.ravel(estimator._num_iter)]
    stored = int(X.nnz) if hasattr(X, "tocsr") else -1
    classes = len(estimator._n_support) if estimator._impl in ("c_svc", "nu_svc") else 1
    if classes < 2:
        used = int((coefficients > 0).sum())
        problems: Any = ((int(X.shape[0]), sum(iterations), used, int((coefficients >= bound).sum())),)
        return (int(X.shape[0]), int(X.shape[1]), stored, problems)
    rows = np.bincount(np.asarray(y).astype(int), minlength=classes)
    ends = np.concatenate([[0], np.cumsum(estimator._n_support)])
    used, at_bound = _by_class(coefficients > 0, ends), _by_class(coefficients >= bound, ends)
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    iterations += [0] * (len(pairs) - len(iterations))
    problems = [
        (int(rows[i] + rows[j]), steps, used[j - 1][i] + used[i][j], at_bound[j - 1][i] + at_bound[i][j])
        for (i, j), steps in zip(pairs, iterations, strict=False)
    ]
    return (int(X.shape[0]), int(X.shape[1]), stored, tuple(problems))


for _name in ("_dense_fit", "_sparse_fit"):
    probe(f"sklearn.svm._base:BaseLibSVM.{_name}", "libsvm", _trained)
