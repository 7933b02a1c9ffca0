"""Arrays, lists and other values, as what a rule can use of them. Equal ones are one object."""

from __future__ import annotations

from typing import Any

from numpy import bool_, float32, float64, int32, int64, ndarray, str_

from bitwatt.backends.sklearn.names import library_of
from bitwatt.records import TensorSpec

#: So many shapes, settings and facts are remembered, of each kind.
MANY = 2_000
#: Integer arrays up to this long are kept as tuples: iterations by class, samples by node are not.
SHORT = 64
#: Values that are taken as they are.
PLAIN = frozenset({type(None), bool, int, float, str})
_NUMBERS = PLAIN - {str}
#: With those that numpy's ranges and grids of parameters are made of: they never change either.
SCALARS = PLAIN | {bool_, float32, float64, int32, int64, str_}

_specs: dict[tuple[Any, ...], Any] = {}
_tuples: dict[tuple[Any, ...], tuple[Any, ...]] = {}
_listed_steps: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}


class _Unknown:
    """No rule could use it."""


UNKNOWN = _Unknown()
#: In the place of a spec: arrays of this shape and format are told as they are.
_VALUES = object()
#: Estimators of scikit-learn as values: what they are is told by their classes.
_parts: dict[type, str] = {}
#: Classes whose objects have no attributes but those of the class, and none that is asked for: to ask an object for all
#: that it has not takes as long as to read the rest of an estimator.
_nothing: set[type] = set()
#: What is told of functions that are no library's, and libraries whose functions are no program's own.
own: set[str] = set()
_ARITHMETIC = frozenset({"sklearn", "numpy", "scipy", "xgboost", "lightgbm", "catboost", "builtins", "None"})
_ASKED = frozenset({"shape", "dtype", "dtypes", "get_params", "item", "num_row", "__call__", "__getattr__"})


def forget() -> None:
    _tuples.clear()
    _listed_steps.clear()
    own.clear()


def mark_of(value: Any) -> tuple[Any, ...]:
    """What decides what `told` says of a value, where it is no array, and not plain."""
    kind = type(value)
    if (kind is list or kind is tuple) and len(value) <= SHORT and _NUMBERS.issuperset(map(type, value)):
        return (kind, tuple(value), *map(type, value))
    known = told(value)
    return type(known), known


def mark(value: ndarray) -> tuple[Any, ...]:
    """What decides what `array` says."""
    shape = value.shape
    if len(shape) > 1:
        return shape, value.dtype, value.flags.fnc
    if shape and (shape[0] > SHORT or value.dtype.kind not in "iu"):
        return shape, value.dtype
    return ndarray, tuple(value.tolist()) if shape else value.item()  # it is told as it is


def unread(labels: Any) -> Any:
    """How many there are, and of what kind: never which."""
    if type(labels) is ndarray and labels.ndim == 1 and len(labels) <= SHORT and labels.dtype.kind in "iu":
        return _spec(labels.shape, _dtype(labels.dtype))  # others are told so anyway
    if type(labels) is list and labels and _NUMBERS.issuperset(map(type, labels)):
        return _spec((len(labels),), "float64" if float in map(type, labels) else "int64")
    return told(labels)


def told(value: Any) -> Any:
    kind = type(value)
    if kind in PLAIN or kind is TensorSpec:
        return value
    if kind is ndarray:
        return array(value)
    if kind is list or kind is tuple:
        return several(value)
    if (part := _parts.get(kind)) is not None:
        return part
    if kind in _nothing:
        return UNKNOWN
    if isinstance(value, (int, float, str)):  # numpy's scalars are Python's too
        return value.item() if hasattr(value, "item") else value
    spec = spec_of(value)
    if spec is not None:
        return spec
    if isinstance(value, (list, tuple)):
        return several(value)
    if hasattr(value, "get_params"):
        if library_of(kind) == "sklearn":
            _parts[kind] = f"<{kind.__name__}>"
        return f"<{kind.__name__}>"
    if callable(value) and hasattr(value, "__name__"):
        if str(getattr(value, "__module__", "")).partition(".")[0] not in _ARITHMETIC and len(own) < MANY:
            own.add(f"<{value.__name__}>")
        return f"<{value.__name__}>"
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    if hasattr(value, "num_row") and hasattr(value, "num_col"):  # data sets of XGBoost and CatBoost
        return TensorSpec((int(value.num_row()), int(value.num_col())), "float32")
    if not kind.__dictoffset__ and not any(_ASKED & vars(one).keys() for one in kind.__mro__) and len(_nothing) < MANY:
        _nothing.add(kind)
    return UNKNOWN


def steps_like(value: Any) -> list[tuple[Any, type]] | None:
    """What decides what is told of a list of names and estimators; quickly, for pipelines are asked for every call."""
    try:
        return [(name, type(part)) for name, part in value] if type(value) is list else None
    except (TypeError, ValueError):
        return None


def mark_in(value: Any) -> Any:
    """Of a parameter: where it is such a list what decides, else what is told."""
    if type(value) is list and 0 < len(value) <= SHORT and _steps(value) is not None:
        return steps_like(value)
    return told(value)


def _steps(value: list[Any]) -> Any:
    """Of a list of names and estimators, which is what pipelines are asked for again and again; None of others."""
    key: list[Any] = []
    for step in value:
        if type(step) is not tuple or len(step) != 2 or type(step[0]) is not str:
            return None
        part = _parts.get(type(step[1]))
        if part is None:
            return None
        key += (step[0], part)
    place = tuple(key)
    known = _listed_steps.get(place)
    if known is None:
        if len(_listed_steps) > MANY:
            _listed_steps.clear()
        known = _listed_steps[place] = tuple(zip(place[::2], place[1::2], strict=True))
    return known


def several(value: Any) -> Any:
    if type(value) is list and 0 < len(value) <= SHORT and type(value[0]) is tuple:
        steps = _steps(value)
        if steps is not None:
            return steps
    if isinstance(value, list) and value and (isinstance(value[0], (str, bytes, list)) or len(value) > SHORT):
        return listed(value)
    if len(value) > SHORT:
        return UNKNOWN
    kinds = {*map(type, value)}
    part = _parts.get(*kinds) if len(kinds) == 1 else None  # the trees of a forest
    if part is not None:
        inner: tuple[Any, ...] = (part,) * len(value)
    else:
        inner = tuple(value) if kinds <= PLAIN else tuple([told(item) for item in value])
    return _one(inner, tuple(map(type, inner))) if UNKNOWN not in inner else len(value)


def array(value: Any) -> Any:
    """Equal specs are one object: who counts calls tells them apart by identity."""
    key = (value.shape, value.dtype, value.flags.fnc)
    known = _specs.get(key)
    if known is None:
        shape, dtype, columnwise = key
        if not shape:
            return value.item()
        if len(_specs) > MANY:
            _specs.clear()
        short = len(shape) == 1 and shape[0] <= SHORT and dtype.kind in "iu"
        _specs[key] = known = _VALUES if short else TensorSpec(shape, _dtype(dtype), columnwise=columnwise)
    return known if known is not _VALUES else _one(tuple(value.tolist()), int)


def _one(values: tuple[Any, ...], types: Any) -> tuple[Any, ...]:
    """Equal tuples are one object, of the values that came first among those of equal types."""
    key = (values, types)
    known = _tuples.get(key)
    if known is None:
        if len(_tuples) > MANY:
            _tuples.clear()
        known = _tuples[key] = values
    return known


def _spec(shape: Any, dtype: str, stored: int | None = None, columnwise: bool = False) -> TensorSpec:
    """Of what is no array: equal ones are one object too."""
    key = (tuple(map(int, shape)), dtype, stored, None, columnwise)
    known = _specs.get(key)
    if known is None:
        if len(_specs) > MANY:
            _specs.clear()
        known = _specs[key] = TensorSpec(*key)
    return known


def listed(value: list[Any]) -> TensorSpec:
    """Data given as lists: documents, or rows of numbers."""
    first = value[0]
    if isinstance(first, list):
        inner = first[0] if first else 0.0
        return TensorSpec((len(value), len(first)), "float64" if isinstance(inner, (int, float)) else "object")
    return TensorSpec((len(value),), "float64" if isinstance(first, (int, float)) else "object")


def output(value: Any) -> TensorSpec | None:
    """What came out, where it is data; short arrays of integers are not told."""
    found = array(value) if type(value) is ndarray else spec_of(value)
    return found if type(found) is TensorSpec else None


def spec_of(value: Any) -> Any:
    """Arrays, sparse matrices and frames as what they measure; short arrays of integers as they are."""
    if type(value) is ndarray:
        return array(value)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not isinstance(shape, tuple):
        return None
    if dtype is None:
        dtypes = getattr(value, "dtypes", None)
        if dtypes is None:
            return None
        names = {_dtype(one) for one in dtypes}
        return _spec(shape, _widest(names), columnwise=min(shape) > 1)  # as frames lie in memory
    if shape == ():
        return value.item() if hasattr(value, "item") else None
    name = _dtype(dtype)
    if type(value).__name__ == "ndarray":
        if len(shape) == 1 and shape[0] <= SHORT and name.startswith(("int", "uint")):
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
