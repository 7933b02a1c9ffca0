"""Least squares, ridge, Bayesian and robust regressions. Predictions of all linear models take coefficients alone."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.registry import SAYS, assumes, calls, nobody_knows, told_by_shapes
from bitwatt.backends.sklearn.apriori.validation import folds_of
from bitwatt.records import TensorSpec

told_by_shapes("linear_model. svm.LinearSVC svm.LinearSVR", *SAYS, "sparsify", "densify")
_CLASSIFIERS = "linear_model.LinearClassifierMixin linear_model._RidgeClassifierMixin svm.LinearSVC"
calls(f"{_CLASSIFIERS} linear_model.LogisticRegressionCV linear_model.SGDOneClassSVM", "predict", "decision_function")
calls("linear_model.LogisticRegression linear_model.SGDClassifier", "predict_proba", "decision_function")
calls("linear_model.LogisticRegression", "predict_log_proba", "predict_proba")


def coefficients(call: Call, rows: int | None = None) -> dict[str, Any]:
    """Their shape: a row for each raw prediction; a plain vector for regressions on one target."""
    rows = call.one_for_each_class if rows is None else rows
    flat = rows == 1 and "classes_" not in call.known and call.outputs == 1
    shape = (call.columns,) if flat and not hasattr(call.estimator, "predict_proba") else (rows, call.columns)
    return {"coef_": TensorSpec(shape, call.X.dtype if call.bits == 32 else "float64")}


def sizes(call: Call) -> tuple[int, int, int, int]:
    return call.rows, call.columns, call.stored, call.bits


def iterations(call: Call, typical: int, why: str = "", name: str = "n_iter_") -> int:
    """A typical number, or the limit where that is lower."""
    limit = call.get("max_iter", 10**9)
    limit = limit if isinstance(limit, int) and limit > 0 else 10**9
    told = why or ("max_iter" if limit <= typical else f"typical; max_iter {limit}" if limit < 10**9 else "typical")
    return max(int(call.assume(name, min(typical, limit), told)), 0)


def products(call: Call, steps: int, *, forward: int, times: int = 1) -> None:
    """Of an iterative solver, with X and its transpose."""
    call.probe("linear_matvec", call.rows, call.columns, times=forward * times)
    call.probe("linear_rmatvec", call.rows, call.columns, times=(steps + 1) * times)


@assumes("linear_model.LinearRegression")
def linear_regression(call: Call) -> dict[str, Any]:
    if call.get("positive"):
        inside = round(call.columns * float(call.assume("positive_share", 0.75, "of the coefficients")))
        call.probe("linear_nnls", call.rows, call.columns, inside, times=call.outputs)
    elif call.stored >= 0:
        steps = iterations(call, min(call.columns, 30), "LSQR's steps, at most as many as columns")
        products(call, steps, forward=steps + 1, times=call.outputs)
    return coefficients(call)


def ridge_solver(call: Call) -> str:
    solver = str(call.get("solver", "auto"))
    if solver != "auto":
        return solver
    return "lbfgs" if call.get("positive") else "sparse_cg" if call.stored >= 0 else "cholesky"


@assumes("linear_model.Ridge", "linear_model.RidgeClassifier")
def ridge(call: Call) -> dict[str, Any]:
    solver, targets = ridge_solver(call), call.one_for_each_class
    told: dict[str, Any] = {"solver_": solver, "n_iter_": None}
    if solver in ("sag", "saga"):
        passes = iterations(call, call.get("max_iter", 40))
        intercept = int(bool(call.get("fit_intercept")) and call.stored >= 0)
        told["n_iter_"] = (passes,) * targets
        call.probe("linear_sag", *sizes(call), "squared", 1, passes, int(solver == "saga"), 0, intercept, 1, 0,
                   times=targets)  # fmt: skip
    elif solver in ("lsqr", "sparse_cg"):
        steps = iterations(call, min(call.columns, 10), f"{solver}'s steps")
        told["n_iter_"] = (steps,) * targets if solver == "lsqr" else None
        products(call, steps, forward=steps, times=targets)
    elif solver == "lbfgs":
        steps = iterations(call, 15)
        call.probe("linear_minimize", call.columns, steps, round(1.2 * steps) + 1, 1, "L-BFGS-B", times=targets)
    return told | coefficients(call)


@assumes("linear_model.RidgeCV", "linear_model.RidgeClassifierCV")
def ridge_cv(call: Call) -> dict[str, Any]:
    from sklearn.linear_model import Ridge, RidgeClassifier
    from sklearn.linear_model._ridge import _RidgeGCV

    alphas = len(list(call.get("alphas", (0.1, 1.0, 10.0))))
    targets = call.one_for_each_class
    if call.get("cv") is None:
        y = TensorSpec((call.rows, targets) if targets > 1 else (call.rows,), "float64")
        inner = _RidgeGCV(call.get("alphas"), fit_intercept=call.get("fit_intercept"), gcv_mode=call.get("gcv_mode"))
        call.ask(inner, "fit", call.X, y)
        return coefficients(call) | {"alphas": alphas}
    model = RidgeClassifier() if hasattr(call.estimator, "classes") or "classes_" in call.known else Ridge()
    folds_of(call, model, call.get("cv"), candidates=alphas)
    return coefficients(call)


told_by_shapes("linear_model._RidgeGCV", "fit")


@assumes("linear_model.BayesianRidge", "linear_model.ARDRegression")
def bayesian(call: Call) -> dict[str, Any]:
    if "BayesianRidge" in type(call.estimator).__name__:
        return coefficients(call) | {"n_iter_": iterations(call, 12)}
    steps = iterations(call, 40)
    kept = round(call.columns * float(call.assume("relevant", 1.0, "share of columns that are kept")))
    wide = "linear_relevance_wide" if call.rows < call.columns else "linear_relevance"
    call.probe(wide, call.rows, call.columns, kept, call.bits, times=steps + 1)
    return coefficients(call) | {"n_iter_": steps}


@assumes("linear_model.HuberRegressor")
def huber(call: Call) -> dict[str, Any]:
    steps = iterations(call, 15)
    evaluations = int(call.assume("n_evaluations", round(1.5 * steps), "half as many again as steps"))
    call.probe("linear_huber", *sizes(call), times=evaluations)
    unknown = call.columns + 1 + int(bool(call.get("fit_intercept")))
    call.probe("linear_minimize", unknown, steps, evaluations, 1, "L-BFGS-B")
    return coefficients(call) | {"n_iter_": steps}


@assumes("linear_model.QuantileRegressor")
def quantile(call: Call) -> dict[str, Any]:
    return coefficients(call) | {"n_iter_": iterations(call, call.rows, "a simplex step for each sample")}


@assumes("linear_model.TheilSenRegressor")
def theil_sen(call: Call) -> dict[str, Any]:
    unknown = call.columns + int(bool(call.get("fit_intercept")))
    drawn = call.get("n_subsamples", min(unknown, call.rows))
    most = int(call.get("max_subpopulation", 10_000))
    few = math.comb(call.rows, drawn) if call.rows <= 10_000 and drawn <= 10 else most
    return coefficients(call) | {"n_subpopulation_": max(min(most, few), 1), "n_iter_": iterations(call, 5)}


@assumes("linear_model.RANSACRegressor")
def ransac(call: Call) -> dict[str, Any]:
    from sklearn.linear_model import LinearRegression

    model = call.model("estimator", LinearRegression)
    least = call.get("min_samples")
    drawn = call.columns + 1 if least is None else least if least >= 1 else round(least * call.rows)
    share = float(call.assume("inliers", 0.9, "share of the samples"))
    most, sure = int(call.get("max_trials", 100)), float(call.get("stop_probability", 0.99))
    clean = min(max(share ** int(drawn), 1e-12), 1 - 1e-12)  # all that are drawn are inliers
    needed = math.ceil(math.log(max(1 - sure, 1e-12)) / math.log1p(-clean))
    trials = int(call.assume("n_trials_", max(min(most, needed), 1), "until one of clean samples is likely"))
    sample = TensorSpec((min(int(drawn), call.rows), call.columns), call.X.dtype)
    y = TensorSpec((sample.shape[0],), "float64")
    call.ask(model, "fit", sample, y, times=trials, name="estimator")
    call.ask(model, "predict", call.X, times=trials, name="estimator")
    inside = TensorSpec((max(round(share * call.rows), 1), call.columns), call.X.dtype)
    target = TensorSpec((inside.shape[0],), "float64")
    improved = int(call.assume("improved", min(trials, 3), "trials better than all before"))
    call.ask(model, "score", inside, target, times=improved, name="estimator")
    call.ask(model, "fit", inside, target, name="estimator")
    return {"n_trials_": trials}


@assumes("linear_model.RANSACRegressor", methods=("predict",))
def ransac_predict(call: Call) -> dict[str, Any]:
    from sklearn.linear_model import LinearRegression

    call.ask(call.model("estimator", LinearRegression), "predict", call.X, name="estimator")
    return {}


nobody_knows("linear_model.", "a path is asked for with arrays, not with shapes", "path")
