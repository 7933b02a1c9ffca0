"""Inside an estimator: steps of its pipelines, transformers of its columns, and of the step that predicts the checks of
its input, its decision function, and what makes probabilities or labels of it.

Their methods are watched on the instances of one loaded copy, while another is called as it is.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from bitwatt.deploy.breakdown.timeline import PREPROCESS, Part, Timeline, compare
from bitwatt.deploy.records import Breakdown

#: What estimators call for scores before they make probabilities or labels of them; some ask for probabilities first.
SCORES = {
    "decision_function": 3, "_decision_function": 3, "_raw_predict": 3, "_joint_log_likelihood": 3, "kneighbors": 3,
    "_forward_pass_fast": 3, "_dense_predict": 3, "_sparse_predict": 3, "_dense_predict_proba": 3, "predict_proba": 2,
}  # fmt: skip
#: Checks of the input: a method, or a function that modules of scikit-learn import by name.
CHECKS = ("_validate_X_predict", "_validate_for_predict")
CHECK = "validate_data"


def split(loaded: Any, again: Any, batches: Iterator[Any], batch: int, seconds: float) -> Breakdown:
    """`again`: a second copy, whose methods are watched."""
    timeline = Timeline(whole="rows and results, outside the estimator")
    with ExitStack() as stack:
        _watch(timeline, again.model, type(again.model).__name__, again.method, stack)
        timed = compare(loaded.predict, lambda rows: timeline.of(lambda: again.predict(rows)), batches, seconds)
    library = sys.modules[type(again.model).__module__.partition(".")[0]]
    version = getattr(library, "__version__", "")
    source = f"methods of the steps, {library.__name__} {version}".rstrip() + f", medians of {timed.calls} calls"
    return Breakdown(batch, timed.stages, timed.overhead, timed.plain_ms, source)


def _watch(timeline: Timeline, model: Any, name: str, method: str, stack: ExitStack) -> None:
    """The model, and the parts of it that a prediction goes through."""
    if isinstance(inner := _within(model), tuple):
        _watch(timeline, inner[1], inner[0], method, stack)
    elif isinstance(getattr(model, "steps", None), list):
        _put(timeline, stack, model, (method,), Part(f"{name}: between steps"))
        *before, (last, final) = model.steps
        for step, transformer in before:
            _transformer(timeline, transformer, step, stack)
        if hasattr(final, "predict"):
            _watch(timeline, final, last, method, stack)
        else:
            _transformer(timeline, final, last, stack)
    else:
        _final(timeline, model, name, method, stack)


def _within(model: Any) -> tuple[str, Any] | None:
    """What a search or a threshold has found, which does the work; an ensemble's `estimator_` is but a pattern."""
    for held in ("best_estimator_", "estimator_", "regressor_"):
        inner = getattr(model, held, None)
        if hasattr(inner, "predict") and not hasattr(model, "estimators_"):
            return f"{type(model).__name__}.{held}", inner
    return None


def _transformer(timeline: Timeline, model: Any, name: str, stack: ExitStack) -> None:
    """A step before the last; with those inside it, unless they run in other processes."""
    if not hasattr(model, "transform"):  # passthrough, drop
        return
    _put(timeline, stack, model, ("transform",), Part(name))
    if getattr(model, "n_jobs", None) not in (None, 1):
        return
    for held in ("steps", "transformers_", "transformer_list"):
        for entry in getattr(model, held, None) or ():
            _transformer(timeline, entry[1], f"{name}.{entry[0]}", stack)


def _final(timeline: Timeline, model: Any, name: str, method: str, stack: ExitStack) -> None:
    """The step that predicts. Where none of its scores are made on their own, all of it is the operator."""
    _put(timeline, stack, model, (method,), Part(name, core=1))
    for score, level in SCORES.items():
        if score != method:
            _put(timeline, stack, model, (score,), Part(f"{name}.{score}", core=level))
    checks = Part(f"{name}: checks of the input", group=PREPROCESS)
    _put(timeline, stack, model, CHECKS, checks)
    for home in {kind.__module__ for kind in type(model).__mro__ if kind.__module__.startswith("sklearn.")}:
        module = importlib.import_module(home)
        if (check := getattr(module, CHECK, None)) is not None:
            setattr(module, CHECK, timeline.wrap(check, checks))
            stack.callback(setattr, module, CHECK, check)


def _put(timeline: Timeline, stack: ExitStack, model: Any, methods: tuple[str, ...], part: Part) -> None:
    """On the instance, where its class finds it before its own; what stands there already is put back."""
    own = getattr(model, "__dict__", {})
    for method in methods:
        held = own.get(method)
        if hasattr(held, "__wrapped__") or not callable(function := getattr(model, method, None)):
            continue  # watched already, or not there
        own[method] = timeline.wrap(function, part)
        stack.callback(own.pop, method) if held is None else stack.callback(own.__setitem__, method, held)
