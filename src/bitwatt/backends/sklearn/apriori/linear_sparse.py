"""Models with few coefficients: coordinate descent, least angles, matching pursuit, with their cross-validated kin."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.linear import coefficients, iterations, sizes
from bitwatt.backends.sklearn.apriori.registry import assumes
from bitwatt.backends.sklearn.apriori.validation import count_of, folds, part
from bitwatt.records import TensorSpec


def _kept(call: Call, share: float = 0.8) -> int:
    return round(call.columns * float(call.assume("nonzero", share, "share of the coefficients")))


def _descend(call: Call, rows: int, sweeps: int, kept: int, times: int, *, gram: bool) -> None:
    tasks = call.outputs if "MultiTask" in type(call.estimator).__name__ else 0
    f, bits = call.columns, call.bits
    if tasks:
        call.probe("linear_task_descent", rows, f, -1, bits, sweeps, kept, tasks, times=times)
    elif call.stored >= 0:
        stored = part(call.X, rows).nnz
        centred = int(bool(call.get("fit_intercept", True)))
        call.probe("linear_sparse_descent", rows, f, stored, bits, sweeps, kept, centred, 0, times=times)
    else:
        call.probe("linear_gram_descent" if gram else "linear_descent", rows, f, -1, bits, sweeps, kept, 1, times=times)


@assumes("linear_model.ElasticNet", "linear_model.MultiTaskElasticNet")
def coordinate_descent(call: Call) -> dict[str, Any]:
    sweeps, kept = iterations(call, 6), _kept(call)
    is_task = "MultiTask" in type(call.estimator).__name__
    gram = call.get("precompute") is True
    _descend(call, call.rows, sweeps, kept, 1 if is_task else call.outputs, gram=gram)
    return coefficients(call) | {"n_iter_": sweeps}


_SINGLE = {"LassoCV": "Lasso", "ElasticNetCV": "ElasticNet", "MultiTaskLassoCV": "MultiTaskLasso",
           "MultiTaskElasticNetCV": "MultiTaskElasticNet"}  # fmt: skip


@assumes(*(f"linear_model.{name}" for name in _SINGLE))
def coordinate_descent_cv(call: Call) -> dict[str, Any]:
    """A path of penalties in each fold, then one descent over all rows."""
    import sklearn.linear_model as models

    alphas, ratios = call.get("alphas", 100), call.get("l1_ratio", 0.5)
    many = alphas if isinstance(alphas, int) else 100 if isinstance(alphas, str) else len(alphas)
    mixes = len(ratios) if isinstance(ratios, (list, tuple)) or hasattr(ratios, "__len__") else 1
    sweeps = int(call.assume("n_iter", 4, "sweeps for each penalty, warm-started"))
    kept = _kept(call, 0.6)
    gram = call.get("precompute", "auto") is True or (call.get("precompute", "auto") == "auto")
    for rows, _, times in folds(call.rows, call.get("cv")):
        _descend(call, rows, sweeps, kept, times * many * mixes, gram=gram and rows > call.columns)
    model = getattr(models, next(_SINGLE[kind.__name__] for kind in type(call.estimator).__mro__
                                 if kind.__name__ in _SINGLE))()  # fmt: skip
    call.ask(model, "fit", call.X, call.y)
    path: tuple[int, ...] = (many, count_of(call.get("cv"), call.rows))
    return coefficients(call) | {"mse_path_": TensorSpec((mixes, *path) if mixes > 1 else path, "float64")}


def _angles(call: Call, rows: int, steps: int, times: int = 1, *, given: bool, made: bool) -> None:
    call.probe("linear_lars", rows, call.columns, int(given), int(made), 0, call.bits, steps, steps, times=times)


def _steps(call: Call) -> int:
    limit = call.get("n_nonzero_coefs") or call.get("max_iter", 500)
    most = min(call.rows - 1, call.columns, int(limit) if limit != float("inf") else call.columns)
    return max(int(call.assume("n_iter_", most, "every column enters, as far as the limit allows")), 0)


@assumes("linear_model.Lars", "linear_model.LassoLars")
def least_angles(call: Call) -> dict[str, Any]:
    steps, tall = _steps(call), call.rows > call.columns
    given = call.get("precompute", "auto") in (True, "auto") and tall
    _angles(call, call.rows, steps, call.outputs, given=given, made=False)
    return coefficients(call) | {"n_iter_": steps}


@assumes("linear_model.LarsCV", "linear_model.LassoLarsCV")
def least_angles_cv(call: Call) -> dict[str, Any]:
    steps, count = _steps(call), count_of(call.get("cv"), call.rows)
    for rows, _, times in folds(call.rows, call.get("cv")):
        _angles(call, rows, min(steps, rows - 1), times, given=False, made=rows > call.columns)
    _angles(call, call.rows, steps, given=call.rows > call.columns, made=False)
    return coefficients(call) | {"n_iter_": steps, "mse_path_": TensorSpec((count * (steps + 1), count), "float64")}


@assumes("linear_model.LassoLarsIC")
def least_angles_criterion(call: Call) -> dict[str, Any]:
    from sklearn.linear_model import LinearRegression

    if call.get("noise_variance") is None:
        model = LinearRegression(fit_intercept=False)
        call.ask(model, "fit", call.X, call.y)
        call.ask(model, "predict", call.X)
    steps = _steps(call)
    _angles(call, call.rows, steps, given=False, made=call.rows > call.columns)
    return coefficients(call) | {"n_iter_": steps}


def _pursue(call: Call, rows: int, chosen: int, times: int, *, gram: bool) -> None:
    f = call.columns
    if gram:
        call.probe("linear_gram_pursuit", f, f, -1, call.bits, chosen, 0, times=times)
    else:
        call.probe("linear_pursuit", rows, f, -1, call.bits, chosen, 0, times=times)


@assumes("linear_model.OrthogonalMatchingPursuit")
def pursuit(call: Call) -> dict[str, Any]:
    chosen = call.get("n_nonzero_coefs")
    if chosen is None and call.get("tol") is None:
        chosen = max(int(0.1 * call.columns), 1)
    elif chosen is None:
        chosen = int(call.assume("n_iter_", max(call.columns // 2, 1), "half of the columns, to the tolerance"))
    gram = call.get("precompute", "auto")
    wants = gram is True or (gram == "auto" and call.rows > call.columns)
    _pursue(call, call.rows, int(chosen), call.outputs, gram=wants)
    return coefficients(call) | {"n_iter_": int(chosen), "n_nonzero_coefs_": int(chosen)}


@assumes("linear_model.OrthogonalMatchingPursuitCV")
def pursuit_cv(call: Call) -> dict[str, Any]:
    from sklearn.linear_model import OrthogonalMatchingPursuit

    most = call.get("max_iter") or min(max(int(0.1 * call.columns), 5), call.columns)
    for rows, _, times in folds(call.rows, call.get("cv")):
        _pursue(call, rows, most, times, gram=False)
    best = int(call.assume("n_nonzero_coefs_", most, "the best of the path"))
    call.ask(OrthogonalMatchingPursuit(n_nonzero_coefs=best), "fit", call.X, call.y)
    return coefficients(call) | {"n_iter_": best, "n_nonzero_coefs_": best}


#: Passes to the default tolerance, medians of the measured fits, and the share of samples that still move the weights.
_PASSES = {"SGDClassifier": 50, "SGDRegressor": 100, "SGDOneClassSVM": 11, "Perceptron": 11,
           "PassiveAggressiveClassifier": 10, "PassiveAggressiveRegressor": 20}  # fmt: skip
_MOVING = {"Perceptron": 0.25, "SGDOneClassSVM": 0.5, "SGDClassifier": 0.35, "PassiveAggressiveClassifier": 0.5}
_SMOOTH = ("log_loss", "squared_error", "huber")


@assumes("linear_model.BaseSGD", "linear_model.SGDOneClassSVM", methods=("fit", "partial_fit"))
def stochastic(call: Call) -> dict[str, Any]:
    kind = next((parent.__name__ for parent in type(call.estimator).__mro__ if parent.__name__ in _PASSES), "")
    passes = 1 if call.method == "partial_fit" else iterations(call, _PASSES.get(kind, 50))
    smooth = call.get("loss", "hinge") in _SMOOTH and kind.startswith("SGD") and kind != "SGDOneClassSVM"
    default = _MOVING.get(kind, 0.95)
    share = 1.0 if smooth else float(call.assume("moving", default, "share of samples that move the weights"))
    raw = 1 if kind == "SGDOneClassSVM" else call.one_for_each_class
    call.probe("linear_sgd", *sizes(call), passes, round(1000 * share), 0, 0, times=raw)
    return coefficients(call) | {"n_iter_": passes}


@assumes("svm.LinearSVC", "svm.LinearSVR")
def liblinear(call: Call) -> dict[str, Any]:
    is_classifier = "classes_" in call.known or hasattr(call.estimator, "multi_class")
    penalty = str(call.get("penalty", "l2"))
    loss = str(call.get("loss", "squared_hinge" if is_classifier else "epsilon_insensitive"))
    dual = call.get("dual", "auto")
    if dual == "auto":
        only_dual = not loss.startswith("squared")
        dual = only_dual or (call.rows < call.columns and penalty == "l2")
    steps = iterations(call, 100 if dual else 8)
    share = 1.0
    if loss == "squared_hinge" and not dual and penalty == "l2":
        share = float(call.assume("margin", 0.75, "share of samples inside the margin"))
    runs = ((steps, round(1000 * share), 1000, 10_000),) * (call.one_for_each_class if is_classifier else 1)
    intercept = int(bool(call.get("fit_intercept", True)))
    call.probe("linear_liblinear", call.rows, call.columns, call.elements, intercept, penalty, int(bool(dual)), loss,
               runs)  # fmt: skip
    return coefficients(call) | {"n_iter_": steps}
