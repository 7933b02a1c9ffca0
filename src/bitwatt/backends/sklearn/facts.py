"""What a rule needs to know of a call: shapes of the data, hyper-parameters, and what the fitted estimator tells."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from operator import is_, itemgetter
from typing import Any

import numpy as np

from bitwatt.backends.sklearn.names import library_of
from bitwatt.records import TensorSpec

Facts = dict[str, Any]
Items = tuple[tuple[str, Any], ...]
#: From a fitted estimator to small values that its rules take by name.
Reader = Callable[[Any], Facts]


class Later:
    """Facts that a reader gives as one value, to be read when the call is counted: together with others, all at once.
    What they are read from must not change until then."""

    __slots__ = ("told",)

    def __init__(self, told: Callable[[], Facts]) -> None:
        self.told = told


def settled(known: Items) -> Items:
    """All of them read."""
    if not any(type(value) is Later for _, value in known):
        return known
    parts = [value.told().items() if type(value) is Later else ((name, value),) for name, value in known]
    return tuple([pair for part in parts for pair in part])


_readers: dict[str, Reader] = {}
_readers_of: dict[type, tuple[Reader, ...]] = {}
_known: dict[int, tuple[Any, Items]] = {}
#: By the identity of an estimator: itself, weakly, the values of its parameters when they were last asked for, if they
#: were plain, and the answer.
_last: dict[int, tuple[Any, tuple[Any, ...], Items]] = {}
_parameters: dict[type, tuple[str, ...]] = {}
_getters: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
_argument_names: dict[Any, tuple[str, ...]] = {}
_settings: dict[tuple[Any, ...], Items] = {}
_specs: dict[tuple[Any, ...], TensorSpec] = {}
_tuples: dict[tuple[Any, ...], tuple[Any, ...]] = {}
_fitted_names: dict[tuple[str, ...], tuple[str, ...]] = {}
#: So many settings, and so many shapes, are remembered.
_MANY = 2_000
#: Integer arrays up to this long are kept as tuples: iterations by class, samples by node are not.
_SHORT = 64
#: Values that are taken as they are.
_PLAIN = frozenset({type(None), bool, int, float, str})
#: Which samples, and how many until now, is news with every batch of a stream, and changes no work.
_NEWS = frozenset({"labels_", "support_", "core_sample_indices_", "t_", "n_samples_seen_", "n_steps_"})


def facts(*classes: str) -> Callable[[Reader], Reader]:
    """Register a reader for classes by qualified name; it is also used for their subclasses."""

    def register(reader: Reader) -> Reader:
        _readers.update(dict.fromkeys(classes, reader))
        _readers_of.clear()
        return reader

    return register


_wholes: dict[str, frozenset[str]] = {}
_whole_methods: dict[tuple[type, str], bool] = {}


def whole(kind: str, *methods: str) -> None:
    """These methods of a class, and of those below it, speak for every estimator they call: a forest for its trees."""
    _wholes[kind] = _wholes.get(kind, frozenset()) | set(methods)


def is_whole(kind: type, method: str) -> bool:
    key = (kind, method)
    known = _whole_methods.get(key)
    if known is None:
        names = (f"{parent.__module__}.{parent.__qualname__}" for parent in kind.__mro__)
        known = _whole_methods[key] = any(method in _wholes.get(name, ()) for name in names)
    return known


def argument_names(function: Any) -> tuple[str, ...]:
    names = _argument_names.get(function)
    if names is None:
        code = getattr(inspect.unwrap(function), "__code__", None)  # below the decorators that check parameters
        names = _argument_names[function] = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    return names


def arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments of a call, as far as a rule can use them, quickly; `named` gives them names."""
    return [_array(value) if type(value) is np.ndarray else _value(value) for value in (*args, *kwargs.values())]


def named(function: Any, values: list[Any], keywords: tuple[str, ...]) -> Items:
    places = len(values) - len(keywords)
    names = (*argument_names(function)[:places], *keywords)
    told = (*values[: len(names) - len(keywords)], *values[places:])
    return tuple([(name, value) for name, value in zip(names, told, strict=True) if value is not _UNKNOWN])


def hyper_parameters(estimator: Any) -> Items:
    """Parameters by name. Estimators with the same ones share the answer, which saves most of the time."""
    kind = type(estimator)
    held = estimator.__dict__
    try:
        values = _getters[kind](held)
    except KeyError:  # a class not seen yet, or a parameter that was deleted
        _getters[kind] = _getter(kind)
        values = tuple([held.get(name) for name in _parameters[kind]])
    last = _last.get(id(estimator))
    if last is not None and last[0]() is estimator and len(values) == len(last[1]) and all(map(is_, values, last[1])):
        return last[2]  # the same objects: nothing of them need be looked at
    plain: tuple[Any, ...] | None = values
    types = tuple(map(type, values))  # 1 and 1.0 and True are equal, and not the same
    if not _PLAIN.issuperset(types):  # an estimator, a list, an array: it may change, and must not be held
        values, plain = tuple([_value(value) for value in values]), None
        types = tuple(map(type, values))
    key = (kind, values, types)
    known = _settings.get(key)
    if known is None:
        if len(_settings) > _MANY:
            _settings.clear()
        pairs = zip(_parameters[kind], values, strict=True)
        known = _settings[key] = tuple([pair for pair in pairs if pair[1] is not _UNKNOWN])
    if plain is not None:
        if len(_last) > _MANY:
            _last.clear()
        with suppress(TypeError):  # it allows no weak references
            _last[id(estimator)] = (weakref.ref(estimator), plain, known)
    return known


def _getter(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    names = _parameters[kind] = _parameter_names(kind)
    return itemgetter(*names) if len(names) > 1 else lambda held: tuple([held.get(name) for name in names])


def _parameter_names(kind: type) -> tuple[str, ...]:
    find = getattr(kind, "_get_param_names", None)
    try:
        return tuple(find()) if find is not None else ()
    except RuntimeError:  # a constructor with varargs
        return ()


def forget() -> None:
    """Estimators may be fitted anew between sessions, where nobody sees it; and nothing of the program's is kept."""
    for table in (_known, _settings, _last, _tuples):
        table.clear()


def outdated(estimator: Any) -> None:
    """It has learnt something outside of a fit."""
    _known.pop(id(estimator), None)


def fitted(estimator: Any, fresh: bool) -> Items:
    """What the fitted estimator tells; remembered until it is fitted again."""
    key = id(estimator)
    found = _known.get(key)
    known = found[1] if found is not None and found[0]() is estimator else None
    if known is not None and not fresh:
        return known
    told = _attributes(estimator)
    for reader in _readers_for(type(estimator)):
        told |= reader(estimator)
    news = tuple(told.items())
    if known == news:  # one of many batches
        return known
    if len(_known) > _MANY:
        _known.clear()
    with suppress(TypeError):  # it allows no weak references
        _known[key] = (weakref.ref(estimator), news)
    return news


def _readers_for(kind: type) -> tuple[Reader, ...]:
    known = _readers_of.get(kind)
    if known is None:
        found = [_readers.get(f"{parent.__module__}.{parent.__qualname__}") for parent in kind.__mro__]
        known = _readers_of[kind] = tuple(reader for reader in found if reader is not None)
    return known


def _attributes(estimator: Any) -> Facts:
    """Sizes and numbers of things. Floats are results, scores and losses: that they are there is all that is told."""
    found: Facts = {}
    held = estimator.__dict__
    for name in _names_of(tuple(held)):
        value = held[name]
        kind = type(value)
        if kind is np.ndarray:
            known = _array(value)
        elif kind is list and len(value) <= _SHORT and value and isinstance(value[0], float):
            known = "<floats>"
        else:
            known = _value(value)
        if type(known) is float:
            known = "<float>"
        if known is not _UNKNOWN and (name not in _NEWS or type(known) is TensorSpec):
            found[name] = known
    return found


def _names_of(held: tuple[str, ...]) -> tuple[str, ...]:
    """Those of attributes that came with a fit."""
    known = _fitted_names.get(held)
    if known is None:
        if len(_fitted_names) > _MANY:
            _fitted_names.clear()
        known = tuple([name for name in held if name.endswith("_") and not name.startswith("_")])
        _fitted_names[held] = known
    return known


class _Unknown:
    """No rule could use it."""


_UNKNOWN = _Unknown()
#: Estimators of scikit-learn as values: what they are is told by their classes.
_parts: dict[type, str] = {}


def _value(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is np.ndarray:
        return _array(value)
    if kind is list or kind is tuple:
        return _several(value)
    if (part := _parts.get(kind)) is not None:
        return part
    if isinstance(value, (int, float, str)):  # numpy's scalars are Python's too
        return value.item() if hasattr(value, "item") else value
    spec = spec_of(value)
    if spec is not None:
        return spec
    if isinstance(value, (list, tuple)):
        return _several(value)
    if hasattr(value, "get_params"):
        if library_of(kind) == "sklearn":
            _parts[kind] = f"<{kind.__name__}>"
        return f"<{kind.__name__}>"
    if callable(value) and hasattr(value, "__name__"):
        return f"<{value.__name__}>"
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    if hasattr(value, "num_row") and hasattr(value, "num_col"):  # data sets of XGBoost and CatBoost
        return TensorSpec((int(value.num_row()), int(value.num_col())), "float32")
    return _UNKNOWN


def _several(value: Any) -> Any:
    if isinstance(value, list) and value and (isinstance(value[0], (str, bytes, list)) or len(value) > _SHORT):
        return _listed(value)
    if len(value) > _SHORT:
        return _UNKNOWN
    inner = tuple([_value(item) for item in value])
    return _one(inner, tuple(map(type, inner))) if _UNKNOWN not in inner else len(value)


def _array(value: Any) -> Any:
    """Equal specs are one object: who counts calls tells them apart by identity."""
    key = (value.shape, value.dtype, value.flags.fnc)
    known = _specs.get(key)
    if known is not None:
        return known
    shape, dtype, columnwise = key
    if len(shape) == 1 and shape[0] <= _SHORT and dtype.kind in "iu":
        return _one(tuple(value.tolist()), int)
    if not shape:
        return value.item()
    if len(_specs) > _MANY:
        _specs.clear()
    _specs[key] = known = TensorSpec(shape, _dtype(dtype), columnwise=columnwise)
    return known


def _one(values: tuple[Any, ...], types: Any) -> tuple[Any, ...]:
    """Equal tuples are one object, of the values that came first among those of equal types."""
    key = (values, types)
    known = _tuples.get(key)
    if known is None:
        if len(_tuples) > _MANY:
            _tuples.clear()
        known = _tuples[key] = values
    return known


def _spec(shape: Any, dtype: str, stored: int | None = None) -> TensorSpec:
    """Of what is no array: equal ones are one object too."""
    key = (tuple(map(int, shape)), dtype, stored)
    known = _specs.get(key)
    if known is None:
        if len(_specs) > _MANY:
            _specs.clear()
        known = _specs[key] = TensorSpec(*key)
    return known


def _listed(value: list[Any]) -> TensorSpec:
    """Data given as lists: documents, or rows of numbers."""
    first = value[0]
    if isinstance(first, list):
        inner = first[0] if first else 0.0
        return TensorSpec((len(value), len(first)), "float64" if isinstance(inner, (int, float)) else "object")
    return TensorSpec((len(value),), "float64" if isinstance(first, (int, float)) else "object")


def output(value: Any) -> TensorSpec | None:
    """What came out, where it is data; short arrays of integers are not told."""
    found = _array(value) if type(value) is np.ndarray else spec_of(value)
    return found if type(found) is TensorSpec else None


def spec_of(value: Any) -> Any:
    """Arrays, sparse matrices and frames as what they measure; short arrays of integers as they are."""
    if type(value) is np.ndarray:
        return _array(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not isinstance(shape, tuple):
        return None
    if dtype is None:
        dtypes = getattr(value, "dtypes", None)
        if dtypes is None:
            return None
        names = {_dtype(one) for one in dtypes}
        return _spec(shape, _widest(names))
    if shape == ():
        return value.item() if hasattr(value, "item") else None
    name = _dtype(dtype)
    if type(value).__name__ == "ndarray":
        if len(shape) == 1 and shape[0] <= _SHORT and name.startswith(("int", "uint")):
            return tuple(value.tolist())
        return TensorSpec(shape, name)
    stored = getattr(value, "nnz", None) if hasattr(value, "tocsr") else None
    return _spec(shape, name, None if stored is None else int(stored))


_dtypes: dict[Any, str] = {}


def _dtype(dtype: Any) -> str:
    known = _dtypes.get(dtype)
    if known is None:
        name = getattr(dtype, "name", str(dtype)).lower()
        known = name if name.startswith(("float", "int", "uint", "bool", "complex")) else "object"
        _dtypes[dtype] = known
    return known


def _widest(names: set[str]) -> str:
    if "object" in names:
        return "object"
    order = ("float64", "int64", "uint64", "float32", "int32", "uint32")
    return next((name for name in order if name in names), next(iter(names), "float64"))
