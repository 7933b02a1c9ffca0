"""Estimators of the program's own, or of libraries without rules: their methods are ops under their own names.

What such a method calls of known estimators is counted as ever. Its own arithmetic is missing until somebody writes a
rule for it, and the report says so. A class of the program may be pickled by value, and must not drag us along: what
takes a method's place on it hands out the method itself to everybody but a caller, and pickles as that method.
"""

from __future__ import annotations

import functools
import operator
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bitwatt.backends.sklearn import facts
from bitwatt.backends.sklearn.frames import TOP, Frame
from bitwatt.backends.sklearn.names import LIBRARIES, METHODS, is_part, library_of, maybe_parts, own_name, steps_of
from bitwatt.context import Context, current, phase_path
from bitwatt.ledger import Row
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

Undo = list[Callable[[], None]]
#: Classes that were announced before they had methods, as those that a worker unpickles are.
_announced: list[tuple[weakref.ref[EstimatorWatch], weakref.ref[type], Undo]] = []


class Seen:
    """Stands in for a method on the class that defines it."""

    __slots__ = ("__weakref__", "method", "watched")

    def __init__(self, method: Any, watched: Callable[..., Any]) -> None:
        self.method, self.watched = method, watched

    def __get__(self, estimator: Any, kind: type | None = None) -> Any:
        found = self.method.__get__(estimator, kind)  # raises where scikit-learn's available_if has it so
        if estimator is None or current() is None:
            return found
        return types.MethodType(self.watched, estimator)

    def __reduce__(self) -> Any:
        return operator.getitem, ((self.method,), 0)

    @property
    def __isabstractmethod__(self) -> bool:
        return getattr(self.method, "__isabstractmethod__", False)


def install(watch: EstimatorWatch) -> Undo:
    """Meet the parts of pipelines that are nobody's children, and methods that scikit-learn wraps after the class has
    announced itself."""
    from sklearn.utils._set_output import _SetOutputMixin
    from sklearn.utils.metaestimators import _BaseComposition

    undo: Undo = []
    met: set[type] = set()
    output, names = _SetOutputMixin.__dict__["__init_subclass__"], _BaseComposition._validate_names

    def announce(cls: type[Any], /, **kwargs: Any) -> None:
        output.__func__(cls, **kwargs)
        if watch.on:
            undo.extend(wrap(watch, cls))

    @functools.wraps(names)
    def validate(self: Any, given: Any) -> Any:
        if watch.on and current() is not None:
            found = maybe_parts(self)
            if not met.issuperset(found):
                parts = {type(part) for _, part in steps_of(self)}
                for part in parts - met:
                    for kind in part.__mro__[:-1]:
                        undo.extend(wrap(watch, kind))
                met.update(parts, [kind for kind in found if not is_part(kind)])
        return names(self, given)

    _SetOutputMixin.__init_subclass__ = classmethod(announce)
    _BaseComposition._validate_names = validate

    def restore() -> None:
        _SetOutputMixin.__init_subclass__ = output
        _BaseComposition._validate_names = names
        while undo:
            undo.pop()()

    return [restore]


def wrap(watch: EstimatorWatch, kind: type) -> Undo:
    """See the methods that `kind` itself defines, where no library with rules does."""
    undo: Undo = []
    if library_of(kind) in LIBRARIES or kind.__module__ == "builtins":
        return undo
    for name in METHODS:
        method = kind.__dict__.get(name)
        function = getattr(method, "fn", method)  # scikit-learn's available_if hands out its `fn`
        if isinstance(function, types.FunctionType) and not isinstance(method, Seen):
            seen = Seen(method, _watched(watch, kind, name, function))
            try:
                setattr(kind, name, seen)
            except (AttributeError, TypeError):  # a class that forbids it; what it calls is seen all the same
                continue
            undo.append(functools.partial(_put_back, kind, name, seen))
    return undo


def _put_back(kind: type, name: str, seen: Seen) -> None:
    if kind.__dict__.get(name) is seen:
        setattr(kind, name, seen.method)


def announced(watch: EstimatorWatch, kind: type, undo: Undo) -> None:
    """A new class: its methods are there, or will be once it has been unpickled."""
    if any(name in kind.__dict__ for name in METHODS):
        undo.extend(wrap(watch, kind))
    elif library_of(kind) not in LIBRARIES:
        _announced.append((weakref.ref(watch), weakref.ref(kind), undo))


def catch_up() -> None:
    """Look again at classes that have announced themselves, before a task of a worker."""
    while _announced:
        watch, kind, undo = _announced.pop()
        seeing, found = watch(), kind()
        if seeing is not None and found is not None and seeing.on:
            undo.extend(wrap(seeing, found))


def _watched(watch: EstimatorWatch, kind: type, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    defined = weakref.ref(kind)

    @functools.wraps(function)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        context = current() if watch.on else None
        above = TOP.get()
        if context is None or (above is not None and above.silent):
            return function(self, *args, **kwargs)
        frame = watch.enter(self, watch.plan(type(self), name, function), above, context)
        frame.method = f"own {name}"  # a library's method of the same name, called by this one, is an op beside it
        reset, before = TOP.set(frame), _noted(watch, context)
        try:
            result = function(self, *args, **kwargs)
        except BaseException:
            TOP.reset(reset)
            frame.method = name
            watch.failed(frame, context)
            raise
        TOP.reset(reset)
        called = own_name(defined() or type(self)), name
        delegates = _noted(watch, context) != before
        _record(watch, frame, called, _told(self, function, args, kwargs, result), delegates, context)
        return result

    return method


def _noted(watch: EstimatorWatch, context: Context) -> int:
    calls = watch.calls.get(context)
    return len(calls.waiting) if calls is not None else 0


def _told(estimator: Any, function: Any, args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """What a rule may want to know: arguments, hyper-parameters, attributes of the fitted estimator; and the result."""
    known: facts.Items = ()
    if hasattr(estimator, "__dict__"):
        parameters, learnt, went = facts.known(estimator, True)
        known = parameters.items + learnt.together(went)
    given = facts.given(args, kwargs, result)
    known += facts.named(function, given.values, given.keywords)
    return known, (given.out,) if given.out is not None else ()


def _record(
    watch: EstimatorWatch,
    frame: Frame,
    called: tuple[str, str],
    told: tuple[Any, ...],
    delegates: bool,
    context: Context,
) -> None:
    kind, name = called
    phase = phase_path(frame.phase, context.phases, context.phases)
    note = f"{kind}.{name} calls estimators that are counted; what it computes itself needs a rule"
    row = Row(phase, frame.scope, Op(f"{kind}.{name}", *told), 1)
    watch.add(context, [row], {frame.scope: type(frame.estimator).__name__}, [note] if delegates else ())
    if frame.began:
        watch.clock(frame, context)
