"""What a rule needs to know of a call: shapes of the data, hyper-parameters, and what the fitted estimator tells."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from bitwatt.records import TensorSpec

Facts = dict[str, Any]
Items = tuple[tuple[str, Any], ...]
#: From a fitted estimator to small values that its rules take by name.
Reader = Callable[[Any], Facts]

_readers: dict[str, Reader] = {}
_known: weakref.WeakKeyDictionary[Any, Items] = weakref.WeakKeyDictionary()
_parameters: dict[type, tuple[str, ...]] = {}
_argument_names: dict[Any, tuple[str, ...]] = {}
_settings: dict[tuple[type, tuple[Any, ...]], Items] = {}
#: So many settings are remembered.
_MANY = 2_000
#: Integer arrays up to this long are kept as tuples: iterations by class, samples by node are not.
_SHORT = 64


def facts(*classes: str) -> Callable[[Reader], Reader]:
    """Register a reader for classes by qualified name; it is also used for their subclasses."""

    def register(reader: Reader) -> Reader:
        _readers.update(dict.fromkeys(classes, reader))
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


def arguments(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Items:
    """The arguments of a call by name, as far as a rule can use them."""
    names = _argument_names.get(function)
    if names is None:
        code = getattr(inspect.unwrap(function), "__code__", None)  # below the decorators that check parameters
        names = _argument_names[function] = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    named = [*zip(names, args, strict=False), *kwargs.items()] if kwargs else zip(names, args, strict=False)
    return tuple([(name, known) for name, value in named if (known := _value(value)) is not _UNKNOWN])


def hyper_parameters(estimator: Any) -> Items:
    """Parameters by name. Estimators with the same ones share the answer, which saves most of the time."""
    kind = type(estimator)
    names = _parameters.get(kind)
    if names is None:
        names = _parameters[kind] = _parameter_names(kind)
    held = estimator.__dict__
    values = tuple([held.get(name) for name in names])
    try:
        known = _settings.get((kind, values))
    except TypeError:  # a list or an array among them
        return _items(names, values)
    if known is None:
        if len(_settings) > _MANY:
            _settings.clear()
        known = _settings[kind, values] = _items(names, values)
    return known


def _items(names: tuple[str, ...], values: tuple[Any, ...]) -> Items:
    pairs = zip(names, values, strict=True)
    return tuple([(name, known) for name, value in pairs if (known := _value(value)) is not _UNKNOWN])


def _parameter_names(kind: type) -> tuple[str, ...]:
    find = getattr(kind, "_get_param_names", None)
    try:
        return tuple(find()) if find is not None else ()
    except RuntimeError:  # a constructor with varargs
        return ()


def forget() -> None:
    """Estimators may be fitted anew between sessions, where nobody sees it."""
    _known.clear()
    _settings.clear()


def fitted(estimator: Any, *, fresh: bool) -> Items:
    """What the fitted estimator tells; remembered until it is fitted again."""
    try:
        known = None if fresh else _known.get(estimator)
    except TypeError:  # neither hashable nor weakly referable
        known = None
    if known is None:
        told = _attributes(estimator)
        for parent in type(estimator).__mro__:
            reader = _readers.get(f"{parent.__module__}.{parent.__qualname__}")
            if reader is not None:
                told |= reader(estimator)
        known = tuple(told.items())
        with suppress(TypeError):
            _known[estimator] = known
    return known


def _attributes(estimator: Any) -> Facts:
    found = {}
    for name, value in estimator.__dict__.items():
        if name.endswith("_") and not name.startswith("_"):
            known = _value(value)
            if known is not _UNKNOWN:
                found[name] = known
    return found


class _Unknown:
    """No rule could use it."""


_UNKNOWN = _Unknown()


def _value(value: Any) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (int, float, str)):  # numpy's scalars are Python's too
        return value.item() if hasattr(value, "item") else value
    spec = spec_of(value)
    if spec is not None:
        return spec
    if isinstance(value, list) and value and (isinstance(value[0], (str, bytes, list)) or len(value) > _SHORT):
        return _listed(value)
    if isinstance(value, (list, tuple)) and len(value) <= _SHORT:
        inner = tuple(_value(item) for item in value)
        return inner if not any(item is _UNKNOWN for item in inner) else len(value)
    if hasattr(value, "get_params"):
        return f"<{type(value).__name__}>"
    if callable(value) and hasattr(value, "__name__"):
        return f"<{value.__name__}>"
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    return _UNKNOWN


def _listed(value: list[Any]) -> TensorSpec:
    """Data given as lists: documents, or rows of numbers."""
    first = value[0]
    if isinstance(first, list):
        inner = first[0] if first else 0.0
        return TensorSpec((len(value), len(first)), "float64" if isinstance(inner, (int, float)) else "object")
    return TensorSpec((len(value),), "float64" if isinstance(first, (int, float)) else "object")


def spec_of(value: Any) -> Any:
    """Arrays, sparse matrices and frames as what they measure; short arrays of integers as they are."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not isinstance(shape, tuple):
        return None
    if dtype is None:
        dtypes = getattr(value, "dtypes", None)
        if dtypes is None:
            return None
        names = {_dtype(one) for one in dtypes}
        return TensorSpec(tuple(map(int, shape)), _widest(names))
    if shape == ():
        return value.item() if hasattr(value, "item") else None
    name = _dtype(dtype)
    if type(value).__name__ == "ndarray":
        if len(shape) == 1 and shape[0] <= _SHORT and name.startswith(("int", "uint")):
            return tuple(value.tolist())
        return TensorSpec(shape, name)
    stored = getattr(value, "nnz", None) if hasattr(value, "tocsr") else None
    return TensorSpec(tuple(map(int, shape)), name, None if stored is None else int(stored))


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
