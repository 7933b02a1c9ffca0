"""Linear models: what their solvers did, call by call.

Sizes come first as (samples, features, stored elements or -1 where X is dense, bits), then what the algorithm needs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numpy import count_nonzero, ndarray, where

from bitwatt.backends.sklearn.facts import Facts, facts
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.streams import sampled

_LOSS = "sklearn.linear_model._linear_loss:LinearModelLoss"
_DESCENT = "sklearn.linear_model._cd_fast"


def _of(X: Any) -> tuple[int, int, int, int]:
    if type(X) is ndarray:
        return X.shape[0], X.shape[1], -1, 8 * X.dtype.itemsize
    stored = getattr(X, "nnz", -1)
    return int(X.shape[0]), int(X.shape[1]), -1 if stored is None else int(stored), 8 * X.dtype.itemsize


def _given(args: tuple[Any, ...], kwargs: dict[str, Any], place: int, name: str) -> Any:
    return args[place] if len(args) > place else kwargs.get(name)


def _nonzero(w: Any) -> int:
    return int(count_nonzero(w)) if type(w) is ndarray else int(w.count_nonzero())  # or sparse


def _laid_out(X: Any) -> tuple[int, int, int, int]:
    """As `_of`, with -2 for a dense matrix whose columns lie together: products with it go another way."""
    rows, columns, stored, bits = _of(X)
    return rows, columns, -2 if stored < 0 and not X.flags.c_contiguous else stored, bits


def _loss(args: tuple[Any, ...], kwargs: dict[str, Any], _: Any) -> tuple[Any, ...]:
    """The loss, its classes (0 where it has one raw prediction), the weights, and whether predictions were known."""
    loss = args[0].base_loss
    X = _given(args, kwargs, 2, "X")
    weighted = _given(args, kwargs, 4, "sample_weight") is not None
    classes = int(loss.n_classes) if loss.is_multiclass else 0
    kind, compiled = type(loss).__name__, loss.closs
    if _has_power(compiled.__class__):
        kind += f":{compiled.power}"
    known = kwargs.get("raw_prediction") is not None
    return *_laid_out(X), kind, classes, int(weighted), int(known)


@functools.cache
def _has_power(kind: type) -> bool:
    """Of classes of scikit-learn; to ask each time for what is not there takes as long as all the rest."""
    return hasattr(kind, "power")


def _counted_products(result: Any, tick: Callable[..., None]) -> Any:
    gradient, product = result

    def counted(s: Any) -> Any:
        tick()
        return product(s)

    return gradient, counted


for _name in ("loss", "gradient", "loss_gradient", "gradient_hessian"):
    probe(f"{_LOSS}.{_name}", f"linear_{_name}", _loss, decide=(0, 2, 4))  # the loss, X and the sample weights
probe(f"{_LOSS}.gradient_hessian_product", "linear_hessian_product", _loss, handing=_counted_products)


def _minimised(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    bounded = kwargs.get("bounds") is not None
    sizes = int(result["x"].size), int(result["nit"]), int(result["nfev"])  # attributes of it take longer
    return *sizes, int(bounded), str(kwargs.get("method"))


probe("scipy.optimize:minimize", "linear_minimize", _minimised, calls=True)


def _descent(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """Samples, features, bits, sweeps, and the coefficients that are not zero in the end."""
    w: Any = kwargs.get("w", args[0] if args else None)
    X: Any = kwargs.get("X", args[3] if len(args) > 3 else None)
    return *_of(X), int(result[3]), _nonzero(w), 1


def _sparse_descent(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    w, y, data = kwargs["w"], kwargs["y"], kwargs["X_data"]
    centred = int(bool((kwargs["X_mean"] != 0).any()))
    weighted = int(kwargs.get("sample_weight") is not None)
    sizes = (int(y.shape[0]), int(w.shape[0]), int(data.shape[0]), 8 * w.dtype.itemsize)
    return *sizes, int(result[3]), _nonzero(w), centred, weighted


def _gram_descent(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """In the end whether the duality gap became as small as was asked for."""
    w, y = _given(args, kwargs, 0, "w"), _given(args, kwargs, 5, "y")
    sizes = (int(y.shape[0]), int(w.shape[0]), -1, 8 * w.dtype.itemsize)
    return *sizes, int(result[3]), _nonzero(w), int(result[1] <= result[2])


def _task_descent(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    W, Y = kwargs["W"], kwargs["Y"]
    stored = -1 if not kwargs.get("X_is_sparse") else int(kwargs["X_data"].shape[0])
    sizes = (int(Y.shape[0]), int(W.shape[1]), stored, 8 * W.dtype.itemsize)
    return *sizes, int(result[3]), int((W != 0).any(axis=0).sum()), int(W.shape[0])


probe(f"{_DESCENT}:enet_coordinate_descent", "linear_descent", _descent)
probe(f"{_DESCENT}:sparse_enet_coordinate_descent", "linear_sparse_descent", _sparse_descent)
probe(f"{_DESCENT}:enet_coordinate_descent_gram", "linear_gram_descent", _gram_descent)
probe(f"{_DESCENT}:enet_coordinate_descent_multi_task", "linear_task_descent", _task_descent)


def _sag(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """The loss, classes, passes, whether it is SAGA, has a proximal step, an intercept, and knows the largest norm; per
    thousand the weights whose gradient is beyond the penalty in the end."""
    X, y, loss = args[0], args[1], _given(args, kwargs, 3, "loss") or "log"
    classes = int(y.max()) + 1 if loss == "multinomial" else 1
    beta = _given(args, kwargs, 5, "beta") or 0.0
    is_saga = bool(_given(args, kwargs, 13, "is_saga"))
    knows = _given(args, kwargs, 11, "max_squared_sum") is not None
    intercept = int(result[2]["coef"].shape[0] == X.shape[1] + 1)
    passes, beyond = int(result[1]), 0
    if is_saga and beta > 0:
        state = result[2]
        beyond = round(1000 * float((abs(state["sum_gradient"]) >= beta / len(y) * state["num_seen"]).mean()))
    prox = int(is_saga and beta > 0)
    return *_of(X), str(loss), classes, passes, int(is_saga), prox, intercept, int(knows), beyond


probe("sklearn.linear_model._sag:sag_solver", "linear_sag", _sag)


def _operator(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    return int(args[0].shape[0]), int(args[0].shape[1])


probe("scipy.sparse.linalg._interface:LinearOperator.matvec", "linear_matvec", _operator)
probe("scipy.sparse.linalg._interface:LinearOperator.rmatvec", "linear_rmatvec", _operator)


def _nonnegative(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    return int(args[0].shape[0]), int(args[0].shape[1]), int((result[0] > 0).sum())


probe("scipy.optimize._nnls:nnls", "linear_nnls", _nonnegative)


def _lars(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """Samples, features, whether the Gram matrix was given, made or not used, bits, steps, active in the end."""
    X: Any = kwargs.get("X")
    Gram: Any = kwargs.get("Gram")
    Xy = kwargs.get("Xy")
    features = int(X.shape[1]) if X is not None else int(Gram.shape[0])
    samples = int(X.shape[0]) if X is not None else int(kwargs.get("n_samples") or 0)
    made = (Gram is True or (isinstance(Gram, str) and X is not None and samples > features)) + 0
    given = int(hasattr(Gram, "shape"))
    coefficients = result[2]
    returned = len(result) > 3
    last = len(result[1]) if coefficients.ndim == 1 else int(coefficients.shape[-1]) - 1  # only the last were kept
    steps = int(result[3]) if returned else last
    bits = 8 * (X if X is not None else Gram).dtype.itemsize
    return samples, features, given, made, int(Xy is not None), bits, steps, len(result[1])


probe("sklearn.linear_model._least_angle:_lars_path_solver", "linear_lars", _lars)


def _pursuit(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    return *_of(args[0]), len(result[1]), int(args[2 if len(args) > 2 else 0] is None)


probe("sklearn.linear_model._omp:_cholesky_omp", "linear_pursuit", _pursuit)
probe("sklearn.linear_model._omp:_gram_omp", "linear_gram_pursuit", _pursuit)


def _relevance(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    return int(args[1].shape[0]), int(args[1].shape[1]), int(args[4].sum()), 8 * args[1].dtype.itemsize


probe("sklearn.linear_model._bayes:ARDRegression._update_sigma", "linear_relevance", _relevance)
probe("sklearn.linear_model._bayes:ARDRegression._update_sigma_woodbury", "linear_relevance_wide", _relevance)


def _huber(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    return _of(args[1])


probe("sklearn.linear_model._huber:_huber_loss_and_gradient", "linear_huber", _huber)


#: Losses that leave the weights where they are for samples that are right by enough.
_MOVING = frozenset({"hinge", "squared_hinge", "perceptron", "epsilon_insensitive", "squared_epsilon_insensitive",
                     "modified_huber"})  # fmt: skip
_EPSILON = ("epsilon_insensitive", "squared_epsilon_insensitive")


#: Where the exponential of minus this is zero, and where the logarithm of 1 + exp(x) is x, or an exponential away.
_VANISHES, _KNOWN, _NEARLY, _TINY = 745.2, 33.3, 18.0, -37.0


def _descended(X: Any, y: Any, coef: Any, intercept: Any, loss: str, epsilon: float) -> tuple[int, int, int]:
    """Per thousand, under the final model, as in late passes: samples that still move the weights; those whose logistic
    loss is known at once, and those for which it is one exponential. Of two classes `y` says which samples are of the
    one that is looked for."""
    if loss not in _MOVING and loss != "log_loss":
        return 1000, 0, 0
    raw = X @ coef + intercept
    if loss not in _EPSILON:
        along = where(y, raw, -raw) if y.dtype.char == "?" else y * raw
    if loss == "log_loss":
        known, nearly = raw > _KNOWN, (raw > _NEARLY) | (raw <= _TINY)
        moving, counts = along < _VANISHES, (_nonzero(known), _nonzero(nearly & ~known))
        return round(1000 * _nonzero(moving) / raw.size), *(round(1000 * n / raw.size) for n in counts)
    if loss in ("hinge", "squared_hinge", "perceptron"):
        moving = along <= (0.0 if loss == "perceptron" else 1.0)
    elif loss in _EPSILON:
        moving = abs((y * 2.0 - 1.0 if y.dtype.char == "?" else y) - raw) > epsilon
    else:
        moving = along < 1.0
    return round(1000 * (_nonzero(moving) / int(moving.size))), 0, 0


def _loss_of(estimator: Any) -> str:
    loss = str(getattr(estimator, "loss", "hinge"))
    is_perceptron = loss == "perceptron" or (type(estimator).__name__ == "Perceptron")
    return "perceptron" if is_perceptron else loss


def _binary(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    estimator, place, X, y = args[:4]

    def look() -> tuple[int, int, int]:
        wanted, epsilon = y == estimator.classes_[place], getattr(estimator, "epsilon", 0.1)
        return _descended(X, wanted, result[0], result[1], _loss_of(estimator), epsilon)

    return *_of(X), int(result[2]), *sampled(estimator, place, look)


def _regressor(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    estimator, X, y = args[:3]

    def look() -> tuple[int, int, int]:
        loss = str(args[4] if len(args) > 4 else kwargs.get("loss", estimator.loss))
        epsilon = getattr(estimator, "epsilon", 0.1)
        return _descended(X, y, estimator.coef_, estimator.intercept_, loss, epsilon)

    return *_of(X), int(estimator.n_iter_), *sampled(estimator, "", look)


def _one_class(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    estimator, X = args[:2]

    def look() -> int:
        return round(1000 * float((X @ estimator.coef_ - estimator.offset_ <= 0).mean()))

    return *_of(X), int(estimator.n_iter_), sampled(estimator, "", look), 0, 0


_SGD = "sklearn.linear_model._stochastic_gradient"
probe(f"{_SGD}:fit_binary", "linear_sgd", _binary)
probe(f"{_SGD}:BaseSGDRegressor._fit_regressor", "linear_sgd", _regressor)
probe(f"{_SGD}:SGDOneClassSVM._fit_one_class", "linear_sgd", _one_class)


#: Samples that are looked at, evenly spread.
_LOOKED_AT = 1000


def _liblinear(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """Elements that are not zero, the intercept, penalty, dual form, loss, and for each class its iterations and, per
    thousand: the samples whose loss is not zero in the end, the weights that are not, and the dual form's way."""
    import numpy as np  # here already, or nothing was fitted

    X, y = args[0], args[1]
    stored = int(X.nnz) if hasattr(X, "nnz") else int(np.count_nonzero(X))
    loss = str(_given(args, kwargs, 13, "loss") or "logistic_regression")
    penalty, dual = str(args[6]), bool(args[7])
    coef, intercept, iterations = result
    if _given(args, kwargs, 12, "multi_class") == "crammer_singer":
        way = round(1000 * float(args[2]) * _mean_square(X[:: max(X.shape[0] // _LOOKED_AT, 1)]))
        run = int(iterations.ravel()[0]), len(coef), 1000, way
        return (
            int(X.shape[0]),
            int(X.shape[1]),
            stored,
            int(bool(args[3])),
            penalty,
            int(dual),
            "crammer_singer",
            (run,),
        )
    inside, error = [1000] * len(iterations), 1.0
    step = max(X.shape[0] // _LOOKED_AT, 1)
    some, y = X[::step], y[::step]
    if loss.endswith("epsilon_insensitive"):
        errors = np.abs(some @ coef[0] + intercept - y)
        inside = [round(1000 * float((errors > float(_given(args, kwargs, 14, "epsilon") or 0.0)).mean()))]
        error = float(errors.mean()) / 3 or 1.0  # it is smaller for those that are on their way
    elif loss == "squared_hinge":
        labels = np.unique(args[1])[-len(coef) :]  # of two classes the last; they may be strings
        raw = some @ coef.T + intercept
        low = [((y == label) * 2.0 - 1.0) * raw[:, place] < 1.0 for place, label in enumerate(labels)]
        inside = [round(1000 * float(one.mean())) for one in low]
    way = round(1000 * float(args[2]) * _mean_square(some) / error) if dual else 0
    kept = [round(1000 * float(np.mean(row != 0))) for row in coef]
    runs = tuple((int(n), one, two, way) for n, one, two in zip(iterations.ravel(), inside, kept, strict=False))
    return int(X.shape[0]), int(X.shape[1]), stored, int(bool(args[3])), penalty, int(dual), loss, runs


def _mean_square(X: Any) -> float:
    """Of the lengths of the rows."""
    import numpy as np

    values = X.data if hasattr(X, "nnz") else X
    total = float(np.square(values).sum())
    return total / int(max(X.shape[0], 1))


probe("sklearn.svm._base:_fit_liblinear", "linear_liblinear", _liblinear)


@facts("sklearn.linear_model._logistic.LogisticRegression")
def _zeros(estimator: Any) -> Facts:
    """Whether a strong penalty left no coefficient and no intercept."""
    held = estimator.__dict__
    coef = held.get("coef_")
    if type(coef) is ndarray and coef.size and coef.item(0):  # most of the time
        return {}
    known = [held[name] for name in ("coef_", "intercept_") if name in held]
    return {"all_zero": True} if known and not any(map(_nonzero, known)) else {}
