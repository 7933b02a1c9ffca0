"""scikit-learn's own callbacks (1.9 and later): `estimator.set_callbacks(Bitwatt())`, on the outermost estimator.

Only some estimators have `set_callbacks` so far, among them Pipeline, GridSearchCV, RandomizedSearchCV and
LogisticRegression; around any other, use `with bitwatt.measure(): estimator.fit(X, y)`, which counts the same. Inside
`bitwatt run` or another measure() it is that one which counts, and `run` stays None.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from bitwatt import context as sessions
from bitwatt.backends.sklearn.frames import TOP
from bitwatt.backends.sklearn.names import METHODS
from bitwatt.backends.sklearn.watch import EstimatorWatch
from bitwatt.callbacks.around import Around, size_of


class Bitwatt(Around):
    def __init__(self, name: str | None = None, **options: Any) -> None:
        super().__init__(name, **options)
        self._root: Any = None
        self._join: Callable[[BaseException | None], None] | None = None

    def setup(self, estimator: Any, context: Any) -> None:
        if self.is_open or sessions.current() is not None:
            return
        self._root = estimator
        self.begin(type(estimator).__name__, parameters=_scalars(estimator))
        self._join = _joined(estimator, _calls_of(estimator, sys._getframe(1)))

    def on_fit_task_begin(self, estimator: Any, context: Any, *, X: Any = None) -> None:
        if self.is_open and context.parent is None and (size := size_of(X)):
            self.count(samples=size)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        if self.is_open and context.parent is not None and context.parent.parent is None:
            self.count(tasks=1)  # iterations of a solver, steps of a pipeline, candidates of a search

    def teardown(self, estimator: Any, context: Any) -> None:
        if not self.is_open or estimator is not self._root:
            return
        error, best = sys.exc_info()[1], getattr(estimator, "best_score_", None)
        if best is not None:
            self.metrics({"best_score": best}, 0)
        if self._join is not None:
            self._join(error)
        self._root = self._join = None
        self.end(error)


def _calls_of(estimator: Any, frame: Any) -> list[tuple[str, dict[str, Any]]]:
    """The methods of it that are under way, outermost first, with their arguments. They were entered before the session
    was opened, so nobody else has seen them."""
    found: list[tuple[str, dict[str, Any]]] = []
    while frame is not None:
        if frame.f_locals.get("self") is estimator and frame.f_code.co_name in METHODS:
            given = inspect.getargvalues(frame)
            arguments = {name: given.locals[name] for name in given.args[1:] if given.locals.get(name) is not None}
            found.insert(0, (frame.f_code.co_name, arguments))
        frame = frame.f_back
    return found


def _joined(estimator: Any, calls: list[tuple[str, dict[str, Any]]]) -> Callable[[BaseException | None], None] | None:
    """Take up the calls as if they had been watched from their beginning; what comes back ends them."""
    watch, here = EstimatorWatch.now, sessions.current()
    if watch is None or here is None:
        return None
    entered = []
    for method, arguments in calls:
        plan = watch.plan(type(estimator), method, inspect.unwrap(getattr(type(estimator), method)))
        frame = watch.enter(estimator, plan, TOP.get(), here)
        entered.append((TOP.set(frame), frame, plan, arguments))

    def end(error: BaseException | None) -> None:
        for reset, frame, plan, arguments in reversed(entered):
            TOP.reset(reset)
            if error is None:
                watch.record(frame, plan, (), arguments, estimator, here)
            else:
                watch.failed(frame, here)

    return end


def _scalars(estimator: Any) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in parameters.items() if isinstance(value, str | int | float | bool)}
