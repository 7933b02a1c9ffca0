"""Decompositions: exact where LAPACK decides, by typical iterations elsewhere."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.distances import kernel
from bitwatt.backends.sklearn.apriori.linear import iterations
from bitwatt.backends.sklearn.apriori.registry import assumes, calls, told_by_shapes
from bitwatt.records import TensorSpec

told_by_shapes("decomposition.", "transform", "inverse_transform", "get_covariance", "get_precision")
told_by_shapes("decomposition.PCA decomposition.FactorAnalysis", "score_samples")
calls("decomposition.PCA decomposition.FactorAnalysis", "score_samples", "get_precision")
calls("decomposition.PCA decomposition.FactorAnalysis", "score", "score_samples")
told_by_shapes("decomposition.PCA decomposition.FactorAnalysis", "score")


def components(call: Call, count: int, *, dtype: str | None = None) -> dict[str, Any]:
    kind = dtype or ("float32" if call.bits == 32 else "float64")
    told = TensorSpec((count, call.columns), kind)
    return {"components_": told, "n_components_": count, "_width": count, "_kept": None}


def wanted(call: Call, default: int) -> int:
    asked = call.get("n_components")
    if asked is None or asked == "auto":
        return default
    if isinstance(asked, int):
        return asked
    share = 0.5 if asked == "mle" else float(asked)
    return int(call.assume("n_components_", max(round(share * default), 1), "as many as the variance asks for"))


def random_range(call: Call, rows: int, columns: int, count: int, power: int | None = None, times: int = 1) -> None:
    """Halko's method: ten vectors more than wanted, four power iterations (seven for few components)."""
    vectors = min(count + 10, rows, columns)
    power = power if power is not None else 7 if count < 0.1 * min(rows, columns) else 4
    call.probe("random range", rows, columns, count + 10, power, call.bits, call.stored, times=times)
    call.probe("scipy qr", rows, vectors, call.bits, "economic", False, times=times)
    call.probe("scipy svd", vectors, columns, call.bits, False, True, times=times)


def lanczos(call: Call, size: int, count: int, steps: int | None = None) -> None:
    """ARPACK on a matrix of so many rows: a few more products than vectors that it keeps."""
    kept = min(size, max(2 * count + 1, 20))
    taken = steps if steps is not None else int(call.assume("n_steps", round(1.6 * kept), "Lanczos steps"))
    call.probe("arpack step", size, count, kept, 1, call.bits, times=taken)
    call.probe("arpack vectors", size, count, kept, 1, call.bits)
    call.probe("eigsh", size, call.bits, -1, False)


def pca_solver(call: Call) -> str:
    """What `svd_solver="auto"` comes to."""
    solver, (n, f) = str(call.get("svd_solver", "auto")), call.X.shape
    if solver != "auto":
        return solver
    if call.stored >= 0:
        return "arpack"
    if f <= 1000 and n >= 10 * f:
        return "covariance_eigh"
    count = call.get("n_components")
    if max(n, f) <= 500 or count == "mle":
        return "full"
    return "randomized" if isinstance(count, int) and 1 <= count < 0.8 * min(n, f) else "full"


@assumes("decomposition.PCA", methods=("fit", "fit_transform"))
def pca(call: Call) -> dict[str, Any]:
    solver, least = pca_solver(call), min(call.X.shape)
    count = wanted(call, least - 1 if solver == "arpack" else least)
    if solver == "randomized":
        power = call.get("iterated_power", "auto")
        random_range(call, call.rows, call.columns, count, None if power == "auto" else int(power))
    elif solver == "arpack":
        lanczos(call, least, count)
    return components(call, count) | {"solver": solver}


@assumes("decomposition.TruncatedSVD", methods=("fit_transform",))
def truncated(call: Call) -> dict[str, Any]:
    count = int(call.get("n_components", 2))
    if call.get("algorithm", "randomized") == "arpack":
        lanczos(call, min(call.X.shape), count)
    else:
        random_range(call, call.rows, call.columns, count, int(call.get("n_iter", 5)))
    return components(call, count)


calls("decomposition.TruncatedSVD decomposition.NMF decomposition.MiniBatchNMF decomposition.DictionaryLearning", "fit",
      "fit_transform")  # fmt: skip


@assumes("decomposition.IncrementalPCA")
def incremental(call: Call) -> dict[str, Any]:
    batch = call.get("batch_size") or 5 * call.columns
    count = wanted(call, min(call.X.shape))
    told = components(call, count)
    full, rest = divmod(call.rows, batch)
    for number, rows in enumerate([batch] * min(full, 2) + ([rest] if rest >= count else [])):
        times = full - 1 if number == 1 and full > 1 else 1
        seen = TensorSpec((rows, call.columns), call.X.dtype)
        state = {**told, "n_samples_seen_": float(rows * (1 if number == 0 else 2)), "check_input": False}
        call.walk.fitted[id(call.estimator)] = state
        call.again("partial_fit", seen, times=times)
    call.walk.fitted[id(call.estimator)] = {}
    return told | {"n_samples_seen_": float(call.rows), "batch_size_": batch}


@assumes("decomposition.IncrementalPCA", methods=("partial_fit",))
def incremental_batch(call: Call) -> dict[str, Any]:
    if "components_" in call.known:
        return {name: call.known[name] for name in ("components_", "n_components_", "n_samples_seen_", "check_input")
                if name in call.known}  # fmt: skip
    return components(call, wanted(call, min(call.X.shape))) | {"n_samples_seen_": float(call.rows)}


@assumes("decomposition.FactorAnalysis")
def factors(call: Call) -> dict[str, Any]:
    count, steps = wanted(call, call.columns), iterations(call, 60)
    if call.get("svd_method", "randomized") == "randomized":
        power = int(call.get("iterated_power", 3))
        call.probe("random range", call.rows, call.columns, count + 10, power, 64, -1, times=steps)
    return components(call, count, dtype="float64") | {"n_iter_": steps}


@assumes("decomposition.FastICA", methods=("fit", "fit_transform"))
def independent(call: Call) -> dict[str, Any]:
    count = wanted(call, min(call.X.shape))
    typical = 15 if call.get("algorithm", "parallel") == "deflation" else 30
    steps = iterations(call, typical)
    if call.get("algorithm", "parallel") == "deflation":
        call.probe("deflation step", times=max(round(0.6 * steps * count), 1))
    mixing = TensorSpec((call.columns, count), "float64")
    return components(call, count) | {"n_iter_": steps, "mixing_": mixing}


@assumes("decomposition.KernelPCA")
def kernel_pca(call: Call) -> dict[str, Any]:
    from sklearn.preprocessing import KernelCenterer

    n, given = call.rows, call.get("kernel", "linear") == "precomputed"
    count = wanted(call, n)
    call.checked(call.X)
    if given:
        call.checked(call.X)
    else:
        kernel(call, str(call.get("kernel", "linear")), call.X, degree=float(call.get("degree", 3)))
    square = TensorSpec((n, n), call.X.dtype)
    centre = KernelCenterer()
    call.ask(centre, "fit", square)
    call.ask(centre, "transform", square)
    solver = call.get("eigen_solver", "auto")
    if solver == "auto":
        solver = "arpack" if n > 200 and count < 10 else "dense"
    if solver == "dense":
        call.probe("scipy eigh", n, call.bits, "evr", False, count)
    elif solver == "arpack":
        lanczos(call, n, count, int(call.assume("n_steps", 50, "Lanczos steps")))
    else:
        power = call.get("iterated_power", "auto")
        call.probe("finite", call.bits, n * n)
        random_range(call, n, n, count, None if power == "auto" else int(power))
    if call.get("fit_inverse_transform"):
        mapped = TensorSpec((n, count), call.X.dtype)
        kernel(call, str(call.get("kernel", "linear")), mapped, degree=float(call.get("degree", 3)))
        call.probe("scipy solve", n, call.columns, call.bits, "pos")
    told = TensorSpec((n, count), "float64")
    return {"eigenvectors_": told, "eigenvalues_": TensorSpec((count,), "float64"), "X_fit_": call.X, "_width": count,
            "_fit": call.X, "_kept": None}  # fmt: skip


@assumes("decomposition.KernelPCA", methods=("transform",))
def kernel_transform(call: Call) -> dict[str, Any]:
    from sklearn.preprocessing import KernelCenterer

    seen: TensorSpec = call.known["_fit"]
    call.checked(call.X)
    if call.get("kernel", "linear") == "precomputed":
        call.checked(call.X, times=2)
    else:
        kernel(call, str(call.get("kernel", "linear")), call.X, seen, float(call.get("degree", 3)))
    call.ask(KernelCenterer(), "transform", TensorSpec((call.rows, seen.shape[0]), call.X.dtype))
    return {}


calls("decomposition.KernelPCA", "fit_transform", "fit")
told_by_shapes("decomposition.KernelPCA", "fit_transform")
told_by_shapes("preprocessing.KernelCenterer", "fit", "transform")

_LOSSES = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}


def _loss(call: Call) -> float:
    loss = call.get("beta_loss", "frobenius")
    return _LOSSES[loss] if isinstance(loss, str) else float(loss)


def _factor_start(call: Call, count: int) -> None:
    start = call.get("init") or ("nndsvda" if count <= min(call.X.shape) else "random")
    if str(start).startswith("nndsvd"):
        random_range(call, call.rows, call.columns, count)


def _factors(call: Call, count: int, steps: int, *, both: bool) -> None:
    sizes = (call.rows, call.columns, count, call.stored, call.bits)
    if call.get("solver", "cd") == "cd":
        call.probe("factor descent", *sizes, steps, int(both))
    else:
        call.probe("factor updates", *sizes, _loss(call), steps, int(both), 1 + steps // 10)


@assumes("decomposition.NMF", methods=("fit_transform",))
def nmf(call: Call) -> dict[str, Any]:
    count = wanted(call, call.columns)
    steps = iterations(call, 150 if call.get("solver", "cd") == "cd" else 200)
    _factor_start(call, count)
    _factors(call, count, steps, both=True)
    return components(call, count) | {"n_iter_": steps}


@assumes("decomposition.NMF", methods=("transform",))
def nmf_transform(call: Call) -> dict[str, Any]:
    _factors(call, call.known["n_components_"], iterations(call, 30), both=False)
    return {}


@assumes("decomposition.MiniBatchNMF", methods=("fit_transform",))
def minibatch_nmf(call: Call) -> dict[str, Any]:
    count, batch = wanted(call, call.columns), min(int(call.get("batch_size", 1024)), call.rows)
    steps = iterations(call, 10)
    _factor_start(call, count)
    for rows, times in ((batch, call.rows // batch), (call.rows % batch, int(bool(call.rows % batch)))):
        stored = -1 if call.stored < 0 else round(call.stored * rows / max(call.rows, 1))
        sizes = (rows, call.columns, count, stored, call.bits, _loss(call))
        call.probe("factor w", *sizes, 0, times=times * steps)
        call.probe("factor h", *sizes, times=times * steps)
        call.probe("divergence", *sizes, times=times * steps)
    call.probe("divergence", call.rows, call.columns, count, call.stored, call.bits, _loss(call))
    return components(call, count) | {"n_iter_": steps}


@assumes("decomposition.MiniBatchNMF", methods=("transform",))
def minibatch_nmf_transform(call: Call) -> dict[str, Any]:
    steps = iterations(call, 30, "updates of W")
    sizes = (call.rows, call.columns, call.known["n_components_"], call.stored, call.bits, _loss(call))
    call.probe("factor w", *sizes, 0)
    call.probe("factor w", *sizes, 1, times=steps - 1)
    return {}


@assumes("decomposition.LatentDirichletAllocation")
def topics(call: Call) -> dict[str, Any]:
    """Each document goes through its steps until its topics settle."""
    rounds, words = int(call.get("max_iter", 10)), _words(call)
    steps = float(call.assume("steps", 50.0, "of a document in each round, at most max_doc_update_iter"))
    batches = 1
    if call.get("learning_method", "batch") == "online":
        batches = math.ceil(call.rows / int(call.get("batch_size", 128)))
    part = (round(call.rows / batches), round(words / batches), 1, 1, round(steps * call.rows / batches), call.bits)
    call.probe("topics", *part, times=rounds * batches)
    call.probe("topics", call.rows, words, 0, 0, round(steps * call.rows), call.bits)  # the final bound
    return components(call, int(call.get("n_components", 10))) | {"n_iter_": rounds, "bound_": 0.0}


def _words(call: Call) -> int:
    if call.stored >= 0:
        return call.stored
    return round(call.X.numel * float(call.assume("density", 0.7, "share of counts that are not zero")))


@assumes("decomposition.LatentDirichletAllocation", methods=("transform",))
def topics_of(call: Call) -> dict[str, Any]:
    steps = float(call.assume("steps", 50.0, "of a document"))
    call.probe("topics", call.rows, _words(call), 0, 0, round(steps * call.rows), call.bits)
    return {}
