"""Kernel methods, Gaussian processes, labels that spread, covariances."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.distances import dot, euclidean, kernel
from bitwatt.backends.sklearn.apriori.linear import iterations
from bitwatt.backends.sklearn.apriori.registry import UnassumedError, assumes, calls, told_by_shapes
from bitwatt.records import TensorSpec


def _named(call: Call, name: str = "kernel", default: str = "linear") -> str:
    kind = call.get(name, default)
    if callable(kind):
        raise UnassumedError("the kernel is a function of your own")
    return str(kind)


@assumes("kernel_ridge.KernelRidge")
def ridge(call: Call) -> dict[str, Any]:
    call.checked(call.X, call.y)
    if _named(call) != "precomputed":
        kernel(call, _named(call), call.X, degree=float(call.get("degree", 3)))
    call.probe("scipy solve", call.rows, call.outputs, call.bits, "pos")
    shape = (call.rows, call.outputs) if call.outputs > 1 else (call.rows,)
    return {"dual_coef_": TensorSpec(shape, "float64"), "X_fit_": call.X, "_fit": call.X, "_outputs": call.outputs}


@assumes("kernel_ridge.KernelRidge", methods=("predict",))
def ridge_says(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    if _named(call) != "precomputed":
        kernel(call, _named(call), call.X, call.known["_fit"], float(call.get("degree", 3)))
    return {}


@assumes("kernel_approximation.Nystroem")
def nystroem(call: Call) -> dict[str, Any]:
    width = min(int(call.get("n_components", 100)), call.rows)
    basis = TensorSpec((width, call.columns), call.X.dtype)
    call.checked(call.X)
    kernel(call, _named(call, default="rbf"), basis, degree=float(call.get("degree", 3)))
    return {"components_": basis, "_width": width, "_kept": None}


@assumes("kernel_approximation.Nystroem", methods=("transform",))
def nystroem_transform(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    kernel(call, _named(call, default="rbf"), call.X, call.known["components_"], float(call.get("degree", 3)))
    return {}


@assumes("kernel_approximation.")
def sampler(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    steps = int(call.get("sample_steps", 2))
    chi2 = type(call.estimator).__name__ == "AdditiveChi2Sampler"
    return {"_width": call.columns * (2 * steps - 1) if chi2 else int(call.get("n_components", 100)), "_kept": None}


@assumes("kernel_approximation.", methods=("transform",))
def sampled(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    if type(call.estimator).__name__ in ("RBFSampler", "SkewedChi2Sampler"):
        dot(call, call.rows, call.columns, int(call.get("n_components", 100)), a=call.stored)
    return {}


@assumes("semi_supervised.BaseLabelPropagation")
def spread(call: Call) -> dict[str, Any]:
    n, classes = call.rows, call.classes
    spreading = "Spreading" in type(call.estimator).__name__
    steps = iterations(call, 7 if spreading else 50)
    call.checked(call.X)
    if _named(call, default="rbf") == "knn":
        model = _neighbours(call)
        call.ask(model, "fit", call.X)
        call.ask(model, "kneighbors_graph", call.X)
        dot(call, n, n, classes, a=n * int(call.get("n_neighbors", 7)), times=steps)
        told: dict[str, Any] = {"_model": model}
    else:
        call.checked(call.X, times=2)
        euclidean(call, call.X)
        call.probe("kernel rbf", n, n, call.columns, call.bits, 8)
        dot(call, n, n, classes, times=steps)
        told = {}
    return told | {"n_iter_": steps, "label_distributions_": TensorSpec((n, classes), "float64"), "_fit": call.X}


def _neighbours(call: Call) -> Any:
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=int(call.get("n_neighbors", 7)))


@assumes("semi_supervised.BaseLabelPropagation", methods=("predict_proba",))
def spread_to(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    if "_model" in call.known:
        call.ask(call.known["_model"], "kneighbors", call.X)
        return {}
    seen: TensorSpec = call.known["_fit"]
    call.checked(call.X, seen)
    euclidean(call, call.X, seen)
    call.probe("kernel rbf", seen.shape[0], call.rows, call.columns, call.bits, 8)
    dot(call, call.rows, seen.shape[0], call.classes)
    return {}


calls("semi_supervised.BaseLabelPropagation", "predict", "predict_proba")


def _process_kernels(call: Call, derivatives: bool) -> int:
    """The matrix of all pairs under each part of the kernel; returns how many parameters are learnt."""
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    asked = call.get("kernel")
    whole = ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed") if asked is None else asked
    _evaluate(call, whole, call.rows, -1, derivatives)
    return len(whole.theta)


def _evaluate(call: Call, one: Any, rows: int, other: int, derivatives: bool) -> None:
    for part in ("k1", "k2", "kernel"):
        if hasattr(one, part):
            _evaluate(call, getattr(one, part), rows, other, derivatives)
    name, slopes = type(one).__name__, len(one.theta) if derivatives else 0
    shape = {"Matern": "nu", "RationalQuadratic": "alpha", "Exponentiation": "exponent"}.get(name, "")
    smoothness = float(getattr(one, shape, 0.0))
    if shape == "alpha":
        smoothness = 1.0 if smoothness == 1.0 else 0.0
    call.probe("process kernel", name, rows, other, call.columns, slopes, smoothness, 0)
    if name in ("RBF", "Matern", "RationalQuadratic", "ExpSineSquared"):
        metric = "sqeuclidean" if name in ("RBF", "RationalQuadratic") else "euclidean"
        pairs = (rows * (rows - 1) // 2, 1) if other < 0 else (rows, other)
        call.probe("cdist", *pairs, call.columns, metric, 2.0)


def _evidence(call: Call, derivatives: bool) -> None:
    n = call.rows
    _process_kernels(call, derivatives)
    call.probe("scipy cholesky", n, 64)
    call.probe("scipy cho_solve", n, 1, 64)
    if derivatives:
        call.probe("scipy cho_solve", n, n, 64)


@assumes("gaussian_process.GaussianProcessRegressor")
def process(call: Call) -> dict[str, Any]:
    call.checked(call.X, call.y)
    learnt = _process_kernels(call, False) if call.get("optimizer") is not None else 0
    call.probes.clear()
    call.checked(call.X, call.y)
    if learnt:
        tries = 1 + int(call.get("n_restarts_optimizer", 0))
        times = int(call.assume("n_evaluations", 15, "of the likelihood, by L-BFGS"))
        call.again("log_marginal_likelihood", times=times * tries)
    call.walk.fitted[id(call.estimator)] = {"_last": True}
    call.again("log_marginal_likelihood")
    _evidence(call, False)
    shape = (call.rows, call.outputs) if call.outputs > 1 else (call.rows,)
    return {"alpha_": TensorSpec(shape, "float64"), "X_train_": call.X, "_last": False, "_outputs": call.outputs}


@assumes("gaussian_process.GaussianProcessRegressor", methods=("log_marginal_likelihood",))
def likelihood(call: Call) -> dict[str, Any]:
    _evidence(call, not call.known.get("_last", False))
    return {}


@assumes("gaussian_process.GaussianProcessRegressor", methods=("predict",))
def process_says(call: Call) -> dict[str, Any]:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    call.checked(call.X)
    asked = call.get("kernel")
    whole = ConstantKernel(1.0) * RBF(1.0) if asked is None else asked
    _evaluate(call, whole, call.rows, call.known["alpha_"].shape[0], False)
    return {}


@assumes("covariance.EmpiricalCovariance")
def covariance(call: Call) -> dict[str, Any]:
    kind = type(call.estimator).__name__
    if kind not in ("EmpiricalCovariance", "ShrunkCovariance", "LedoitWolf", "OAS"):
        raise UnassumedError("how many steps it takes depends on the data")
    f = call.columns
    square = TensorSpec((f, f), "float64")
    call.checked(call.X, times=2 if kind == "LedoitWolf" else 1)
    if call.get("store_precision", True):
        call.checked(square, times=2 if kind == "ShrunkCovariance" else 1)
        call.probe("scipy pinvh", f, call.bits)
    elif kind == "ShrunkCovariance":
        call.checked(square)
    return {"covariance_": square, "location_": TensorSpec((f,), "float64"), "precision_": square}


told_by_shapes("covariance.EmpiricalCovariance", "get_precision")


@assumes("covariance.MinCovDet")
def robust(call: Call) -> dict[str, Any]:
    """Concentration steps from many drawn starts, then from the best; large samples in parts of some 300."""
    n, f = call.rows, call.columns
    share = call.get("support_fraction")
    support = int((share if share is not None else 0.5 * (n + f + 1) / n) * n)
    if f == 1:
        raise UnassumedError("one column is sorted, not searched")
    call.checked(call.X, times=2)
    steps = float(call.assume("steps", 5.0, "of the best starts, until they stay"))
    if n <= 500:
        sizes, best = [(n, support, 2, 30)], 10
    else:
        parts = n // 300
        sizes, best = [(n // parts, support // parts, 2, 500)], 20
        if n > 1500:
            sizes.append((1500, int(1500 * support / n), 2, 10 * parts))
    for rows, few, most, times in sizes:
        call.probe("concentration", rows, f, few, most, times=times)
    call.probe("concentration", n, f, support, 30, times=best)
    total = sum(times * most for *_, most, times in sizes) + best * steps
    call.probe("scipy pinvh", f, 64, times=total)
    call.probe("logdet", f, 64, times=total + sum(times for *_, times in sizes))
    call.probe("scipy svd", f, f, 64, True, False)
    for method in ("correct_covariance", "reweight_covariance"):
        call.again(method)
    square = TensorSpec((f, f), "float64")
    return {"covariance_": square, "location_": TensorSpec((f,), "float64"), "precision_": square}


@assumes("covariance.MinCovDet", methods=("reweight_covariance",))
def reweighted(call: Call) -> dict[str, Any]:
    call.again("get_precision")
    call.probe("finite", 64, call.columns**2)
    call.probe("scipy pinvh", call.columns, 64)
    return {}


told_by_shapes("covariance.MinCovDet", "correct_covariance", "get_precision")


@assumes("covariance.EmpiricalCovariance", methods=("mahalanobis",))
def distances(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    call.again("get_precision")
    call.probe("cdist", call.rows, 1, call.columns, "mahalanobis", 2.0)
    return {}


calls("covariance.EllipticEnvelope", "score_samples", "mahalanobis")
calls("covariance.EllipticEnvelope", "decision_function", "score_samples")
calls("covariance.EllipticEnvelope", "predict", "decision_function")
told_by_shapes("covariance.EllipticEnvelope", "decision_function", "predict", "score_samples")
