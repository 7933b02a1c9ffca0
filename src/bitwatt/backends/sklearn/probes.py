"""Calls inside a fit that attributes of the fitted estimator do not tell: counted, with their sizes where they differ.

A probe wraps one function of a library while a session is open. What it saw goes to the rule of the call under way as
`probes`: a tuple of (name, *sizes, times).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import is_
from typing import Any

from bitwatt.backends.sklearn.frames import TOP
from bitwatt.backends.sklearn.names import LIBRARIES
from bitwatt.backends.sklearn.standins import put_back, standing_in
from bitwatt.imports import is_imported, is_under_way, when_imported
from bitwatt.passing import handed_on

#: From the arguments of a call and its result to the sizes that its cost depends on; None where nothing is to be told
#: (only for probes that look `before` the call).
Sizes = Callable[[tuple[Any, ...], dict[str, Any], Any], tuple[Any, ...] | None]


@dataclass(frozen=True)
class Probe:
    """`path` is `module:name` or `module:Class.name`; `name` is what rules call it."""

    path: str
    name: str
    sizes: Sizes | None = None
    before: Callable[[tuple[Any, ...]], Any] | None = None
    handing: Callable[[Any, Callable[..., None]], Any] | None = None
    #: Arguments that decide the sizes: where they are the same objects as before in this fit, so are the sizes.
    decide: tuple[int, int, int] | None = None
    #: It calls its first argument on and on: a method that is counted need not find out each time what it is.
    calls: bool = False
    #: From the function that is counted, and the bare one, to what takes its place.
    around: Callable[[Any, Any], Any] | None = None


class _Places:
    """Where modules of the libraries hold functions that are or may be for a probe. To look at all the names of all
    modules takes milliseconds: it is done again where modules have come, gone or been replaced, were being imported,
    or hold more or fewer names than before."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._last: tuple[int, str] = (0, "")  # how many modules of any kind there were, and which came last
        self._modules: dict[str, Any] = {}
        self._names: list[dict[str, Any]] = []
        self._sizes: list[int] = []
        self._found: list[tuple[dict[str, Any], str, str]] = []

    def now(self) -> list[tuple[dict[str, Any], str, str]]:
        """A module's names, one of them, and its package."""
        here = map(sys.modules.get, self._modules)
        same = all(map(is_, here, self._modules.values())) and [*map(len, self._names)] == self._sizes
        return self.soon() if same else self._look()

    def soon(self) -> list[tuple[dict[str, Any], str, str]]:
        """The same not long after: to touch each module takes a third of a millisecond."""
        last = len(sys.modules), next(reversed(sys.modules))
        return self._found if last == self._last else self._look()

    def _look(self) -> list[tuple[dict[str, Any], str, str]]:
        self._modules = {
            name: module
            for name, module in list(sys.modules.items())
            if name.partition(".")[0] in _PACKAGES and hasattr(module, "__dict__")
        }
        self._names = [vars(module) for module in self._modules.values()]
        self._sizes = [*map(len, self._names)]
        self._found = [
            (names, key, module.partition(".")[0])
            for module, names in zip(self._modules, self._names, strict=True)
            for key, value in list(names.items())
            if key in _names or id(value) in _known
        ]
        unfinished = any(map(is_under_way, self._modules.values()))
        self._last = (0, "") if unfinished else (len(sys.modules), next(reversed(sys.modules)))
        return self._found


PROBES: list[Probe] = []
_names: set[str] = set()
_places = _Places()
#: By the identity of a function and the name of its probe: the function, and what is put in its place.
_made: dict[tuple[int, str], tuple[Any, Any]] = {}
#: Functions that are, or were, in the place of others, and those others, by identity.
_known: dict[int, Any] = {}
#: By the identity of what is put in the place of a function: the name of its probe, and the function.
_stands: dict[int, tuple[str, Any]] = {}
#: Methods that are counted, whose arguments decide the sizes: their probes, and what they were.
_deciding: dict[Any, tuple[Probe, Any]] = {}
#: Where remarks go.
_notes: list[dict[str, None]] = [{}]
#: Where functions that are counted may have been imported to.
_PACKAGES = frozenset({*LIBRARIES, "scipy"})


def probe(
    path: str,
    name: str = "",
    sizes: Sizes | None = None,
    before: Callable[[tuple[Any, ...]], Any] | None = None,
    handing: Callable[[Any, Callable[..., None]], Any] | None = None,
    decide: tuple[int, int, int] | None = None,
    calls: bool = False,
    around: Callable[[Any, Any], Any] | None = None,
) -> None:
    """Count calls of a function inside estimators. What `before` reads from the arguments ahead of the call (a counter
    that the call moves on) reaches `sizes` as the keyword argument `before`; where it reads None, nothing is told. A
    function that hands out another one to be called many times (a product with a Hessian) goes through `handing`: it
    gets the result and `tick`, which counts one call of `name` + "_inner" with the sizes it is given, and returns what
    the caller gets instead. `decide` are the places of three arguments that alone decide the sizes, for what is called
    very often with the same ones. `calls` is for who calls such a method, given first, on and on. What else has to be
    done when it is called stands `around` it."""
    _unheard.clear()
    _names.add(path.rpartition(".")[2].rpartition(":")[2])
    _places.forget()
    called = name or path.rpartition(".")[2].rpartition(":")[2]
    PROBES.append(Probe(path, called, sizes, before, handing, decide, calls, around))


_hears: dict[str, tuple[str, ...]] = {}
_unheard: dict[type, frozenset[str]] = {}


def hears(kinds: str, *names: str) -> None:
    """Rules of these estimators, known by how their qualified names begin, use these probes, known by how theirs
    begin, and no others: those then cost next to nothing. Who is not named hears all; the longest name counts."""
    _hears[kinds] = names
    _unheard.clear()


def unheard_by(kind: type) -> frozenset[str]:
    """Names of the probes that an estimator has no use for."""
    known = _unheard.get(kind)
    if known is None:
        name = f"{kind.__module__}.{kind.__qualname__}"
        begins = max((begins for begins in _hears if name.startswith(begins)), key=len, default=None)
        heard = ("",) if begins is None else _hears[begins]
        known = _unheard[kind] = frozenset(one.name for one in PROBES if not one.name.startswith(heard))
    return known


#: Functions to exchange, by the identity of those that are found: (the one that is found, the one to put there).
_Exchange = dict[int, tuple[Any, Any]]


def install(watch: Any) -> list[Callable[[], None]]:
    undo: list[Callable[[], None]] = []
    back: _Exchange = {}
    there: dict[str, _Exchange] = {}
    _notes[0] = watch.notes
    for one in PROBES:
        module = one.path.partition(":")[0]
        package, later = module.partition(".")[0], functools.partial(_attach_later, one, undo, back)
        if module not in sys.modules:
            undo.append(when_imported(module, later))
        elif not is_imported(package):  # parts of it may be there that have nothing in them yet
            undo.append(when_imported(package, later))
        else:
            _attach(one, undo, back, there.setdefault(package, {}))
    _exchange(there, _places.now())

    def forget() -> None:
        while undo:
            undo.pop()()
        _exchange(dict.fromkeys(_PACKAGES, back), _places.soon())  # new modules took our function for the library's

    return [forget]


def _attach_later(one: Probe, undo: list[Callable[[], None]], back: _Exchange) -> None:
    functions: _Exchange = {}
    _attach(one, undo, back, functions)
    _exchange({one.path.partition(".")[0]: functions}, _places.now())


def _attach(one: Probe, undo: list[Callable[[], None]], back: _Exchange, there: _Exchange) -> None:
    """Count a method on its class; a function of a module lives on under its name in every module that imported it."""
    module, _, name = one.path.partition(":")
    owner: Any = sys.modules[module]
    *classes, attribute = name.split(".")
    for part in classes:
        owner = getattr(owner, part, None)
    original = owner.__dict__.get(attribute) if owner is not None else None
    known, bare = _stands.get(id(original), ("", None))
    if classes and known == one.name:  # what a mock kept of an earlier session, and has put back since
        delattr(owner, attribute)
        if getattr(owner, attribute, None) is not bare:
            setattr(owner, attribute, bare)
        original, known = owner.__dict__.get(attribute), ""
    if original is None and classes and hasattr(owner, attribute):  # a method of a compiled parent that cannot change
        inherited = _counting(one, getattr(owner, attribute), owner, attribute)
        setattr(owner, attribute, inherited)
        undo.append(lambda: delattr(owner, attribute) if vars(owner).get(attribute) is inherited else None)
        return
    if original is None:  # another version of the library
        _notes[0].setdefault(f"{one.path} is not there to be counted", None)
        return
    if known == one.name or id(original) in there:  # it is counted already
        return
    ours = _counting(one, original, owner, attribute)
    if classes:
        setattr(owner, attribute, ours)
        undo.append(lambda: put_back(owner, attribute, ours, original))
        return
    there[id(original)] = (original, ours)
    back[id(ours)] = (ours, original)
    _known[id(original)], _known[id(ours)] = original, ours


def _exchange(packages: Mapping[str, _Exchange], places: list[tuple[dict[str, Any], str, str]]) -> None:
    """Put functions in the place of others in every module of a package."""
    for held, key, package in places:
        functions = packages.get(package)
        value = held.get(key) if functions else None
        found = functions.get(id(value)) if functions else None
        if found is not None and found[0] is value:
            held[key] = found[1]


def _counting(one: Probe, original: Any, owner: Any, attribute: str) -> Any:
    """The function, counted. It is made once: that takes longer than to put it in its place."""
    known = _made.get((id(original), one.name))
    if known is None:
        known = _made[id(original), one.name] = original, _make(one, original, owner, attribute)
        _stands[id(known[1])] = one.name, original
    return known[1]


def _make(one: Probe, original: Any, owner: Any, attribute: str) -> Any:
    """Each kind of probe has the least that it needs between the program and its function."""
    kind = type(original) if isinstance(original, (staticmethod, classmethod)) else None
    function = original.__func__ if kind is not None else original
    make = _simple if one.before is None and one.handing is None else _around
    make = _again if one.decide is not None else _calling if one.calls else make
    made, path = make(one, function), f"{attribute}.__func__" if kind is classmethod else attribute
    counted = standing_in(function, made if one.around is None else one.around(made, function), owner, path)
    if one.decide is not None:
        _deciding[counted] = one, function
    return kind(counted) if kind is not None else counted


def _simple(one: Probe, function: Any) -> Any:
    name, sizes, alone = one.name, one.sizes, (one.name,)

    def counted(*args: Any, **kwargs: Any) -> Any:
        frame = TOP.get()
        if frame is None or name in frame.unheard:
            return function(*args, **kwargs) if kwargs else function(*args)  # what most calls do: it is felt
        result = function(*args, **kwargs) if kwargs else function(*args)
        seen = alone
        if sizes is not None:
            try:
                seen = (name, *(sizes(args, kwargs, result) or ()))
            except Exception as error:
                seen = _lost(name, error)
        probes = frame.probes
        probes[seen] = probes.get(seen, 0) + 1
        return result

    return counted


def _again(one: Probe, function: Any) -> Any:
    """For what a solver calls hundreds of times with the same data: sizes are read once."""
    assert one.decide is not None
    assert one.sizes is not None
    name, sizes, (i, j, k) = one.name, one.sizes, one.decide
    last = max(one.decide)

    def counted(*args: Any, **kwargs: Any) -> Any:
        frame = TOP.get()
        if frame is None or name in frame.unheard:
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        known = frame.again
        if (
            known is not None
            and known[0] is name
            and not kwargs
            and len(args) > last
            and args[i] is known[1]
            and args[j] is known[2]
            and args[k] is known[3]
        ):
            probes = frame.probes
            probes[known[4]] = probes.get(known[4], 0) + 1
            return result
        try:
            seen = (name, *(sizes(args, kwargs, result) or ()))
        except Exception as error:
            seen = _lost(name, error)
        frame.probes[seen] = frame.probes.get(seen, 0) + 1
        if not kwargs and len(args) > last:
            frame.again = (name, args[i], args[j], args[k], seen)
        return result

    return counted


def _calling(one: Probe, function: Any) -> Any:
    """A minimiser: the loss that it is given is only numbered, and told once for all its calls. The result does not
    tell: what it asks for twice in a row is computed once."""
    count = _simple(one, function)

    def counted(*args: Any, **kwargs: Any) -> Any:
        frame = TOP.get()
        known = _deciding.get(getattr(args[0], "__func__", None)) if frame is not None and args else None
        if frame is None or known is None or known[0].name in frame.unheard:
            return count(*args, **kwargs)
        (inner, bare), loss, probes, times = known, args[0].__self__, frame.probes, 0
        compute = bare.__get__(loss)  # a method takes arguments as they come: it is called on and on
        more = args[2] if len(args) > 2 else kwargs.get("args", ())

        if type(more) is tuple and len(more) == 5:  # scikit-learn's losses; to pack and unpack takes twice as long

            def numbered(x: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
                nonlocal times
                times += 1
                return compute(x, a, b, c, d, e)

        else:

            def numbered(*given: Any) -> Any:  # type: ignore[misc]
                nonlocal times
                times += 1
                return compute(*given)

        result = count(numbered, *args[1:], **kwargs)
        try:
            seen = (inner.name, *(inner.sizes((loss, args[1], *more), {}, None) or ()))  # type: ignore[misc]
        except Exception as error:
            seen = _lost(inner.name, error)
        probes[seen] = probes.get(seen, 0) + times
        return result

    return counted


def _around(one: Probe, function: Any) -> Any:
    def counted(*args: Any, **kwargs: Any) -> Any:
        frame = TOP.get()
        if frame is None or one.name in frame.unheard:
            return function(*args, **kwargs)
        told: dict[str, Any] = kwargs
        if one.before is not None:
            before = None
            try:
                before = one.before(args)
                silent = before is None
            except Exception as error:
                _lost(one.name, error)
                silent = False
            if silent:
                return function(*args, **kwargs)
            told = {**kwargs, "before": before}
        result = function(*args, **kwargs)
        try:
            found = one.sizes(args, told, result) if one.sizes is not None else ()
            if found is None:
                return result
            seen = (one.name, *found)
        except Exception as error:
            seen = _lost(one.name, error)
        probes = frame.probes
        probes[seen] = probes.get(seen, 0) + 1
        if one.handing is None:
            return result
        inner = (f"{one.name}_inner", *seen[1:])

        def tick(*more: Any) -> None:
            what = (*inner, *more)
            probes[what] = probes.get(what, 0) + 1

        return one.handing(result, tick)

    return counted


def _lost(name: str, error: Exception) -> tuple[Any, ...]:
    """The fit comes first; its count is then a lower bound, and says so."""
    handed_on(error)
    _notes[0].setdefault(f"{name} could not be counted: {type(error).__name__}: {error}", None)
    return (name, "unknown")
