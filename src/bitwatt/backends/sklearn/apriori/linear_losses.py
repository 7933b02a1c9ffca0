"""Logistic regression and its kin: evaluations of a loss by the steps that solvers typically take."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.linear import coefficients, iterations, sizes
from bitwatt.backends.sklearn.apriori.registry import assumes
from bitwatt.backends.sklearn.apriori.validation import folds, part
from bitwatt.records import TensorSpec

#: Steps to the default tolerance on standardised data, medians of the measured fits. First-order solvers are held to
#: their limit.
_STEPS = {"lbfgs": 15, "newton-cg": 6, "newton-cholesky": 4, "liblinear": 10}


def minimise(call: Call, solver: str, steps: int, kind: str, classes: int, sized: tuple[Any, ...]) -> None:
    """What a solver asks of LinearModelLoss in so many steps."""
    # a start and one more for each step, of which a few are tried twice
    raw, unknown = max(classes, 1), sized[1] + int(bool(call.get("fit_intercept", True)))
    loss = (*sized, kind, classes, 0, 0)
    if solver == "lbfgs":
        evaluations = int(call.assume("n_evaluations", steps + 2, "two more than steps"))
        call.probe("linear_loss_gradient", *loss, times=evaluations)
        call.probe("linear_minimize", unknown * raw, steps, evaluations, 0, "L-BFGS-B")
    elif solver == "newton-cg":
        inner = int(call.assume("n_products", round(2.2 * steps), "2.2 products with the Hessian in a step"))
        call.probe("linear_loss", *loss, times=steps + 1)
        call.probe("linear_gradient", *loss, times=steps)
        call.probe("linear_hessian_product", *loss, times=steps + 1)
        call.probe("linear_hessian_product_inner", *loss, times=inner)
    else:
        known = (*sized, kind, classes, 0, 1)
        call.probe("linear_gradient_hessian", *known, times=steps)
        call.probe("linear_loss", *known)
        call.probe("linear_loss_gradient", *known, times=steps)
        call.probe("scipy solve", unknown * raw, 1, sized[3], "sym", times=steps)


def logistic(call: Call, solver: str, steps: int, sized: tuple[Any, ...]) -> None:
    classes = call.classes if call.classes > 2 else 0
    if solver == "liblinear":
        penalty = "l1" if call.get("penalty") == "l1" or call.get("l1_ratio") == 1 else "l2"
        stored = sized[2] if sized[2] >= 0 else sized[0] * sized[1]
        runs = ((steps, 1000, 1000, 0),) * max(classes, 1)
        intercept = int(bool(call.get("fit_intercept", True)))
        call.probe("linear_liblinear", sized[0], sized[1], stored, intercept, penalty, int(bool(call.get("dual"))),
                   "logistic_regression", runs)  # fmt: skip
    elif solver in ("sag", "saga"):
        l1 = bool(call.get("l1_ratio")) or call.get("penalty") in ("l1", "elasticnet")
        saga, intercept = solver == "saga", int(bool(call.get("fit_intercept", True)))
        loss = ("multinomial", classes) if classes else ("log", 1)
        beyond = 400  # per thousand of the weights, as typical fits have
        call.probe("linear_sag", *sized, *loss, steps, int(saga), int(saga and l1), intercept, 1, beyond)
    else:
        minimise(call, solver, steps, "HalfMultinomialLoss" if classes else "HalfBinomialLoss", classes, sized)


@assumes("linear_model.LogisticRegression")
def logistic_regression(call: Call) -> dict[str, Any]:
    solver = str(call.get("solver", "lbfgs"))
    steps = iterations(call, _STEPS.get(solver, int(call.get("max_iter", 100))))
    logistic(call, solver, steps, sizes(call))
    return coefficients(call) | {"n_iter_": (steps,)}


@assumes("linear_model.LogisticRegressionCV")
def logistic_regression_cv(call: Call) -> dict[str, Any]:
    """A warm-started path over C in each fold, scored, and one more fit on all rows."""
    solver, Cs = str(call.get("solver", "lbfgs")), call.get("Cs", 10)
    ratios = call.get("l1_ratios")
    many = (Cs if isinstance(Cs, int) else len(Cs)) * (len(ratios) if isinstance(ratios, (list, tuple)) else 1)
    typical = min(_STEPS.get(solver, 10**9), int(call.get("max_iter", 100)))
    steps = iterations(call, max(typical * 2 // 3, 1), "for each C and fold, warm-started")
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(solver=solver)
    call.walk.fitted[id(model)] = coefficients(call) | {"classes_": call.known.get("classes_") or _classes(call)}
    for rows, left, times in folds(call.rows, call.get("cv", 5)):
        for _ in range(times * many):  # probes add up
            logistic(call, solver, steps, (*part(call.X, rows).shape, _share(call, rows), 64))
        y = TensorSpec((left,), "int64")
        call.ask(model, "score", part(call.X, left), y, times=times * many, name="LogisticRegression")
    if call.get("refit", True):
        logistic(call, solver, steps, (*call.X.shape, call.stored, 64))
    return coefficients(call)


def _classes(call: Call) -> tuple[int, ...]:
    return tuple(range(call.classes))


def _share(call: Call, rows: int) -> int:
    return -1 if call.stored < 0 else round(call.stored * rows / max(call.rows, 1))


_LOSSES = {"PoissonRegressor": "HalfPoissonLoss", "GammaRegressor": "HalfGammaLoss"}


@assumes("linear_model.PoissonRegressor", "linear_model.GammaRegressor", "linear_model.TweedieRegressor")
def generalised(call: Call) -> dict[str, Any]:
    kind = next((loss for name, loss in _LOSSES.items() if name == type(call.estimator).__name__), "")
    if not kind:
        power, link = float(call.get("power", 0.0)), call.get("link", "auto")
        plain = link == "identity" or (link == "auto" and power <= 0)
        kind = "HalfTweedieLossIdentity" if plain else "HalfTweedieLoss"
        kind += f":{power}"
    solver = str(call.get("solver", "lbfgs"))
    steps = iterations(call, {"lbfgs": 6, "newton-cholesky": 4}.get(solver, 6))
    minimise(call, solver, steps, kind, 0, sizes(call))
    return coefficients(call) | {"n_iter_": steps}
