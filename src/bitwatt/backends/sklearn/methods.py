"""The methods of estimators that compute, wrapped on the classes that define them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from bitwatt.backends.sklearn import own
from bitwatt.backends.sklearn.frames import TOP
from bitwatt.backends.sklearn.names import LIBRARIES, METHODS, library_of
from bitwatt.backends.sklearn.plans import Plan
from bitwatt.backends.sklearn.standins import out_of_sight, put_back, standing_in, stood_for
from bitwatt.context import CONTEXT, Context, current

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

_NAMES = frozenset(METHODS)
#: By the kind of watch and the function, by its identity: what is put in its place. Making it takes longer than that.
_made: dict[tuple[type, int], tuple[Any, Callable[..., Any]]] = {}
#: So many are remembered: those of the libraries, and not of classes that a program makes over and over.
_MANY = 4_000
#: An owner of functions, the name of one, that, and what is put in its place.
_Exchange = tuple[Any, str, Any, Any]
#: By class of a library: how many attributes it had, and what was exchanged on it by the kind of watch.
_exchanges: dict[type, tuple[int, type, list[_Exchange]]] = {}


def install(watch: EstimatorWatch) -> list[Callable[[], None]]:
    """Wrap what is loaded, and what will be: classes announce themselves to BaseEstimator."""
    from sklearn.base import BaseEstimator

    undo: list[Callable[[], None]] = []
    for kind in list(_classes(BaseEstimator)):
        undo += wrap(watch, kind, first=True)
    announced = BaseEstimator.__dict__.get("__init_subclass__")

    @out_of_sight
    @functools.wraps(BaseEstimator.__init_subclass__.__func__)
    def announce(cls: type[Any], /, **kwargs: Any) -> None:
        super(BaseEstimator, cls).__init_subclass__(**kwargs)
        if watch.on:
            for parent in cls.__mro__:  # mixins announce themselves to nobody
                undo.extend(wrap(watch, parent))

    announces = classmethod(announce)
    BaseEstimator.__init_subclass__ = announces

    def forget() -> None:
        if announced is not None:
            put_back(BaseEstimator, "__init_subclass__", announces, announced)
        elif BaseEstimator.__dict__.get("__init_subclass__") is announces:
            del BaseEstimator.__init_subclass__

    return [forget, lambda: _undo_all(undo)]


def _undo_all(undo: list[Callable[[], None]]) -> None:
    while undo:
        undo.pop()()


def _classes(base: type) -> Iterator[type]:
    """Every class below `base`, and what they inherit from beside it: mixins define methods too."""
    seen: set[type] = set()
    waiting: list[type[Any]] = [base]
    while waiting:
        kind = waiting.pop()
        for one in (kind, *kind.__mro__):
            if one not in seen and one is not object:
                seen.add(one)
                yield one
        waiting += [child for child in kind.__subclasses__() if child not in seen]


def wrap(watch: EstimatorWatch, kind: type, first: bool = False) -> list[Callable[[], None]]:
    """Wrap the methods that `kind` itself defines; those of the program's own classes in another way. What stands there
    at `first` is what a mock kept of an earlier session, and has put back since."""
    if library_of(kind) not in LIBRARIES:
        own.wrap(watch, kind)
        return []
    known = _exchanges.get(kind)
    if known is None or known[0] != len(kind.__dict__) or known[1] is not type(watch) or _has_changed(known[2]):
        if len(_exchanges) >= _MANY:
            _exchanges.clear()
        known = _exchanges[kind] = len(kind.__dict__), type(watch), _exchanges_on(watch, kind)
    undo: list[Callable[[], None]] = []
    for owner, name, original, ours in known[2]:
        now = owner.__dict__.get(name)
        if now is original:
            setattr(owner, name, ours)
        if now is original or (first and now is ours):
            undo.append(functools.partial(put_back, owner, name, ours, original))
    return undo


def _has_changed(exchanges: list[_Exchange]) -> bool:
    """Whether another function is there now, which is not ours either."""
    for owner, name, original, ours in exchanges:
        now = owner.__dict__.get(name)
        if now is not original and now is not ours:
            return True
    return False


def _exchanges_on(watch: EstimatorWatch, kind: type) -> list[_Exchange]:
    found: list[_Exchange] = []
    for name in _NAMES & kind.__dict__.keys():
        method = kind.__dict__[name]
        if hasattr(method, "fn") and hasattr(method, "check"):  # sklearn's available_if: it hands out its `fn`
            original = stood_for(method.fn) or method.fn
            found.append((method, "fn", original, _watched(type(watch), kind, name, original)))
        elif isinstance(method, (staticmethod, Static)):
            static = method.method if isinstance(method, Static) else method
            found.append((kind, name, static, Static(type(watch), Plan(kind, name, static.__func__), static)))
        elif callable(method) and not isinstance(method, (classmethod, type)):
            original = stood_for(method) or method
            found.append((kind, name, original, _watched(type(watch), kind, name, original)))
    return found


class Static:
    """Stands in for a static method, of which nothing is told but that a program called it: to the methods of its own
    class, and to who pickles it, it is that method."""

    def __init__(self, watching: type[EstimatorWatch], plan: Plan, method: Any) -> None:
        functools.update_wrapper(self, method.__func__)
        self.method: Any = method
        self._watching, self._plan, self._function = watching, plan, method.__func__

    def __get__(self, estimator: Any, kind: type | None = None) -> Any:
        return self if TOP.get() is None and current() is not None else self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        watch, context = self._watching.now, current()
        if watch is None or context is None or TOP.get() is not None:
            return self._function(*args, **kwargs)
        frame = watch.enter(None, self._plan, None, context)
        try:
            return self._function(*args, **kwargs)
        finally:
            watch.called(frame, self._plan, context)

    def __reduce__(self) -> Any:
        return operator.getitem, ((self._function,), 0)


def _watched(watching: type[EstimatorWatch], kind: type, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    key = (watching, id(function))
    known = _made.get(key)
    if known is None:
        if len(_made) >= _MANY:
            _made.clear()
        ours = standing_in(function, _make(watching, name, function), kind, name)
        known = _made[key] = function, ours  # holding the function keeps its id its own
    return known[1]


def _make(watching: type[EstimatorWatch], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    plans: dict[type, Plan] = {}  # for classes of libraries, which stay

    def method(*args: Any, **kwargs: Any) -> Any:  # to take the estimator apart and put it back takes longest
        watch, above = watching.now, TOP.get()
        if watch is None or not args or (above is not None and above.silent):  # or part of a known whole
            return function(*args, **kwargs)
        self = args[0]
        inside = above is not None and above.estimator is self
        if inside and above.method == name:  # type: ignore[union-attr]
            return function(*args, **kwargs)  # a parent's method of the same name
        context = CONTEXT.get()
        if context is None or not context.token.open:
            context = current()
            if context is None:
                return function(*args, **kwargs)
        kind = type(self)
        plan = plans.get(kind)
        if plan is None:
            plan = watch.plan(kind, name, function)
            if library_of(kind) in LIBRARIES:
                plans[kind] = plan
        if inside:
            return _called_by_itself(watch, above, plan, function, args, kwargs, context)
        frame = watch.enter(self, plan, above, context)
        reset = TOP.set(frame)
        try:
            result = function(*args, **kwargs) if kwargs else function(*args)
        except BaseException:
            TOP.reset(reset)
            watch.failed(frame, context)
            raise
        TOP.reset(reset)
        watch.record(frame, plan, args[1:], kwargs, result, context)
        return result

    return method


@out_of_sight
def _called_by_itself(
    watch: EstimatorWatch, frame: Any, plan: Plan, function: Any, args: Any, kwargs: Any, context: Context
) -> Any:
    """A method of the estimator whose call is under way: score calls predict, predict calls decision_function. It takes
    the place of the one that called it in its frame."""
    method, probes = frame.method, frame.probes
    silent = plan.silent
    frame.method, frame.probes, frame.silent = plan.method, {}, silent is True or (silent and silent(frame.estimator))
    try:
        result = function(*args, **kwargs) if kwargs else function(*args)
        watch.record(frame, plan, args[1:], kwargs, result, context, method)
    except BaseException:
        watch.raised(frame)
        raise
    finally:
        frame.method, frame.probes, frame.silent = method, probes, False
    return result
