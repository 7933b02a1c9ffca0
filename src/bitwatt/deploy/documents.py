"""Records of the lab as JSON and back, by the types of their fields: what is added to a record is kept without a word
here, what an older bitwatt did not write has its default, and what a newer one wrote is left out."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from bitwatt.deploy import records
from bitwatt.errors import BitwattError

T = TypeVar("T")


def as_json(value: Any) -> Any:
    """Plain data. A number that JSON does not know is written as a text in an object, so that it comes back."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: as_json(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of numpy's
        return as_json(value.item())
    return str(value)


def of_json(kind: type[T], raw: Any) -> T:
    """A record of that kind. Raises where the document is none."""
    try:
        return cast(T, _made(kind, raw))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise BitwattError(f"this is no {kind.__name__} that bitwatt can read: {error}") from error


def _made(kind: Any, raw: Any) -> Any:
    if isinstance(raw, Mapping) and set(raw) == {"float"} and kind is not Any and _takes_floats(kind):
        return float(raw["float"])
    if dataclasses.is_dataclass(kind):
        return _record(cast(type, kind), raw)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if raw is None:
            return None
        return _made(next(one for one in inner if one is not type(None)), raw)
    if origin is tuple:
        if len(inner) == 2 and inner[1] is ...:
            return tuple(_made(inner[0], one) for one in _listed(raw))
        return tuple(_made(one, value) for one, value in zip(inner, _listed(raw), strict=True))
    if origin in (list, Sequence):
        return tuple(_made(inner[0], one) for one in _listed(raw))
    if origin in (dict, Mapping):
        return {inner[0](name): _made(inner[1], value) for name, value in raw.items()}
    if kind is float and isinstance(raw, int) and not isinstance(raw, bool):  # it is written as it was
        return raw
    if kind in (int, float, str, bool) and not isinstance(raw, kind):
        if kind is int and isinstance(raw, float) and raw.is_integer():
            return int(raw)
        raise TypeError(f"{raw!r} stands where a {kind.__name__} should")
    return Path(raw) if kind is Path else raw


def _takes_floats(kind: Any) -> bool:
    return kind is float or float in typing.get_args(kind)


def _listed(raw: Any) -> list[Any]:
    if not isinstance(raw, list | tuple):
        raise TypeError(f"{raw!r} stands where a list should")
    return list(raw)


def _record(kind: type, raw: Any) -> Any:
    if not isinstance(raw, Mapping):
        raise TypeError(f"{raw!r} stands where a {kind.__name__} should")
    hints = _hints(kind)
    return kind(**{name: _made(hints[name], raw[name]) for name in hints if name in raw})


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    known = typing.get_type_hints(kind, {**vars(records), **vars(typing)})
    return {one.name: known[one.name] for one in dataclasses.fields(kind)}
