"""Estimators of the program's own, or of libraries without rules: their methods are ops under their own names.

What such a method calls of known estimators is counted as ever. Its own arithmetic is missing until somebody writes a
rule for it, and the report says so. A class of the program may be pickled by value, and must not drag us along: what
takes a method's place on it pickles as that method.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from bitwatt.backends.sklearn import facts
from bitwatt.backends.sklearn.frames import TOP, Frame, qualified
from bitwatt.backends.sklearn.names import LIBRARIES, METHODS, is_part, library_of, maybe_parts, own_name, steps_of
from bitwatt.backends.sklearn.standins import out_of_sight, put_back, stood_for
from bitwatt.context import Context, current, phase_path
from bitwatt.ledger import Row
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

_NAMES = frozenset(METHODS)
_NOTHING: tuple[facts.Items, tuple[Any, ...]] = ((), ())


class Seen:
    """Stands in for a method: on the class that defines it, or in scikit-learn's available_if, which is there."""

    __slots__ = ("__dict__", "__weakref__", "called", "function", "method", "watch")

    def __init__(self, watch: EstimatorWatch, kind: type, method: str, function: Any) -> None:
        functools.update_wrapper(self, function)
        self.watch, self.method, self.function = watch, method, function
        self.called = own_name(kind, method, function)

    def __get__(self, estimator: Any, kind: type | None = None) -> Any:
        if estimator is None or current() is None:
            return self.function.__get__(estimator, kind)
        return types.MethodType(self, estimator)

    def __getattr__(self, name: str) -> Any:
        """What else is asked of functions: `__code__`, `__defaults__`, `__isabstractmethod__`."""
        return getattr(self.function, name)

    def __reduce__(self) -> Any:
        return operator.getitem, ((self.function,), 0)

    @out_of_sight
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        watch, method, function = self.watch, self.method, self.function
        context = current() if watch.on else None
        above = TOP.get()
        if context is None or not args or (above is not None and above.silent):
            return function(*args, **kwargs)
        estimator = args[0]
        try:
            frame = watch.enter(estimator, watch.plan(type(estimator), method, function), above, context)
        except Exception as error:  # the program comes first
            watch.lost(self.called, error)
            return function(*args, **kwargs)
        frame.method = f"own {method}"  # a library's method of the same name, called by this one, is an op beside it
        reset, before = TOP.set(frame), _noted(watch, context)
        try:
            result = function(*args, **kwargs)
        except BaseException:
            TOP.reset(reset)
            frame.method = method
            watch.failed(frame, context)
            raise
        TOP.reset(reset)
        delegates = _noted(watch, context) != before
        told = _told(watch, self.called, estimator, function, args[1:], kwargs, result)
        _record(watch, frame, self.called, told, delegates, context)
        return result


def install(watch: EstimatorWatch) -> list[Callable[[], None]]:
    """Meet the parts of pipelines that are nobody's children, and methods that scikit-learn wraps after the class has
    announced itself."""
    from sklearn.utils._set_output import _SetOutputMixin
    from sklearn.utils.metaestimators import _BaseComposition

    met: set[type] = set()
    output, names = _SetOutputMixin.__dict__["__init_subclass__"], _BaseComposition._validate_names

    @out_of_sight
    @functools.wraps(output.__func__)
    def announce(cls: type[Any], /, **kwargs: Any) -> None:
        output.__func__(cls, **kwargs)
        if watch.on:
            wrap(watch, cls)

    @out_of_sight
    @functools.wraps(names)
    def validate(self: Any, given: Any) -> Any:
        if watch.on and current() is not None:
            found = maybe_parts(self)
            if not met.issuperset(found):
                parts = {type(part) for _, part in steps_of(self)}
                _meet(watch, parts - met)
                met.update(parts, [kind for kind in found if not is_part(kind)])
        return names(self, given)

    announces = classmethod(announce)
    _SetOutputMixin.__init_subclass__ = announces
    _BaseComposition._validate_names = validate

    def restore() -> None:
        put_back(_SetOutputMixin, "__init_subclass__", announces, output)
        put_back(_BaseComposition, "_validate_names", validate, names)
        for kind in _classes(watch):
            for owner, attribute, _ in _methods(kind):
                seen = vars(owner)[attribute]
                if isinstance(seen, Seen) and seen.watch is watch:
                    setattr(owner, attribute, seen.function)

    return [restore]


def wrap(watch: EstimatorWatch, kind: type) -> None:
    """See the methods that `kind` itself defines, where no library with rules does."""
    if library_of(kind) in LIBRARIES or kind.__module__ == "builtins":
        return
    watch.own[id(kind)] = kind
    for owner, attribute, name in _methods(kind):
        found = vars(owner)[attribute]
        if isinstance(found, Seen):
            if found.watch.on:
                continue
            found = found.function  # what a mock kept of an earlier session, and has put back since
        function = stood_for(found) or found  # of a library, given another name by the class
        if isinstance(function, types.FunctionType):
            try:
                setattr(owner, attribute, Seen(watch, kind, name, function))
            except (AttributeError, TypeError):  # a class that forbids it; what it calls is seen all the same
                continue


def _methods(kind: type) -> Iterator[tuple[Any, str, str]]:
    """Where methods are: the attribute of an owner, and the method's name."""
    for name in _NAMES & kind.__dict__.keys():
        method = kind.__dict__[name]
        held = {"fn", "check"} <= getattr(method, "__dict__", {}).keys()
        yield (method, "fn", name) if held else (kind, name, name)  # scikit-learn's available_if hands out its `fn`


def catch_up(watch: EstimatorWatch) -> None:
    """Look again at the program's classes: one that is unpickled by value gets its methods after it has announced
    itself, and anew each time."""
    if watch.on:
        for kind in _classes(watch):
            wrap(watch, kind)


def bound_anew(function: Any) -> Any:
    """A method that was unpickled before its class was seen."""
    if isinstance(function, types.MethodType):
        found = getattr(function.__self__, function.__name__, None)
        seen = getattr(found, "__func__", None)
        if isinstance(seen, Seen) and seen.function is function.__func__:
            return found
    return function


def meet(watch: EstimatorWatch, parts: Iterable[Any], names: frozenset[str]) -> None:
    """Parts that another process has met, under the names that their classes have there."""
    kinds = {type(part) for part in parts}
    _meet(watch, {kind for kind in kinds if library_of(kind) not in LIBRARIES and qualified(kind) in names})


def _meet(watch: EstimatorWatch, kinds: Iterable[type]) -> None:
    for kind in kinds:
        for parent in kind.__mro__[:-1]:
            wrap(watch, parent)


def _classes(watch: EstimatorWatch) -> list[type]:
    found = [reference() for reference in watch.own.valuerefs()]
    return [kind for kind in found if kind is not None]


def _noted(watch: EstimatorWatch, context: Context) -> int:
    calls = watch.calls.get(context)
    return len(calls.waiting) if calls is not None else 0


def _told(
    watch: EstimatorWatch, called: str, estimator: Any, function: Any, args: Any, kwargs: Any, result: Any
) -> tuple[facts.Items, tuple[Any, ...]]:
    """What a rule may want to know: arguments, hyper-parameters, attributes of the fitted estimator; and the result."""
    known: facts.Items = ()
    try:
        if hasattr(estimator, "__dict__"):
            parameters, learnt, went = facts.known(estimator, True)
            known = parameters.items + learnt.together(went)
        given = facts.given(args, kwargs, result)
        known += facts.named(function, given.values, given.keywords)
    except Exception as error:  # data that does not say how large it is
        watch.lost(called, error)
        return _NOTHING
    return known, (given.out,) if given.out is not None else ()


def _record(
    watch: EstimatorWatch,
    frame: Frame,
    called: str,
    told: tuple[facts.Items, tuple[Any, ...]],
    delegates: bool,
    context: Context,
) -> None:
    phase = phase_path(frame.phase, context.phases, context.phases)
    note = f"{called} calls estimators that are counted; what it computes itself needs a rule"
    row = Row(phase, frame.scope, Op(called, *told), 1)
    watch.add(context, [row], {frame.scope: type(frame.estimator).__name__}, [note] if delegates else ())
    if frame.began:
        watch.clock(frame, context)
