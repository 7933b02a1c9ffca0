"""What a run is about: tags, version, parameters, data, code, metrics, parent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import Any

from bitwatt.errors import BitwattError

#: What a parameter may be.
Value = str | int | float | bool | None
#: Step, seconds since the run began, value.
Point = tuple[int | None, float, float]

#: A header stays small: so many names of each kind, and so many letters of a name and of a text.
NAMES, NAME, TEXT = 300, 100, 500
#: Signs that filters are written with, which a tag's name must not hold.
_SIGNS = "=<>~!"


@dataclass(frozen=True, slots=True)
class About:
    """`metrics` hold last, min, max (None where no value was a number) and count. `series`, the values themselves, are
    in the body of a run's file: empty where only its header was read."""

    tags: Mapping[str, str] = field(default_factory=dict)  # a plain tag is ""
    version: str = ""  # of the model
    git: Mapping[str, str] = field(default_factory=dict)  # commit, branch, dirty (yes or no)
    parameters: Mapping[str, Value] = field(default_factory=dict)
    dataset: str = ""
    batch_size: int | None = None
    metrics: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    parent: str = ""
    parent_kind: str = ""  # sweep, fold, rank, session
    series: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)


_BLANK = About()
_KNOWN = frozenset(one.name for one in fields(About)) - {"series"}
_KINDS: dict[str, type] = {name: type(getattr(_BLANK, name)) for name in _KNOWN} | {"batch_size": int}


def described(
    *,
    tags: Mapping[str, str] | Iterable[str] | str | None = None,
    version: str = "",
    parameters: Mapping[str, Any] | None = None,
    dataset: str = "",
    batch_size: int | None = None,
    parent: str = "",
    parent_kind: str = "",
) -> About:
    """As the user told it: checked, texts not too long."""
    if batch_size is not None and (isinstance(batch_size, bool) or not hasattr(batch_size, "__index__")):
        raise BitwattError(f"batch_size={batch_size!r}: it is a whole number")
    if batch_size is not None and batch_size.__index__() < 1:
        raise BitwattError(f"batch_size={batch_size!r}: a batch has at least one sample")
    return About(
        tags=tags_of(tags),
        version=text(version),
        parameters=parameters_of(parameters or {}),
        dataset=text(dataset),
        batch_size=None if batch_size is None else batch_size.__index__(),
        parent=text(parent),
        parent_kind=text(parent_kind),
    )


def tags_of(tags: Mapping[str, str] | Iterable[str] | str | None) -> dict[str, str]:
    """From a mapping, or from words such as "good" and "team=vision"."""
    if tags is None:
        return {}
    if not isinstance(tags, Mapping):
        words = [tags] if isinstance(tags, str) else list(tags)
        tags = {key: value for key, _, value in (str(word).partition("=") for word in words)}
    for name in tags:
        if not str(name).strip() or any(sign in str(name) for sign in _SIGNS):
            raise BitwattError(f"{name!r} is no name of a tag: it has none of {_SIGNS} in it and is not empty")
    return {str(name).strip()[:NAME]: text(value) for name, value in list(tags.items())[:NAMES]}


def parameters_of(parameters: Mapping[str, Any]) -> dict[str, Value]:
    return {str(name)[:NAME]: plain(value) for name, value in list(parameters.items())[:NAMES]}


def plain(value: Any) -> Value:
    """Numbers of numpy and torch become Python's; what is neither number nor text becomes text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    with suppress(AttributeError, TypeError, ValueError, RuntimeError):  # no number of theirs, or several
        number = value.item()
        return number if isinstance(number, bool | int | float) else text(number)
    return text(value)


def text(value: Any) -> str:
    return str(value)[:TEXT]


def words(pairs: Iterable[str]) -> dict[str, Value]:
    """Parameters as written on a command line: lr=0.1 is a number, use_ema=true is yes, the rest is text."""
    found: dict[str, Value] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise BitwattError(f"{pair!r} is no parameter: write name=value")
        found[name.strip()[:NAME]] = _read(value.strip())
    return found


def _read(word: str) -> Value:
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return text(word)


def about_json(about: About) -> dict[str, Any]:
    """For a header: fields that say something, without the series. `about_of` reads it."""
    told = {name: value for name in sorted(_KNOWN) if (value := getattr(about, name)) != getattr(_BLANK, name)}
    return {name: _encoded(value) for name, value in told.items()}


def about_of(raw: Mapping[str, Any], *, odd: bool = True) -> About:
    """Fields of a later bitwatt are left out. Who knows that no float is odd (infinite) may spare the look."""
    if not raw:
        return _BLANK
    known: dict[str, Any] = {name: value for name, value in raw.items() if name in _KNOWN}
    for name, value in known.items():
        if not isinstance(value, _KINDS[name]):
            raise TypeError(f"its {name} is a {type(value).__name__}")
    for name in ("parameters", "metrics"):
        if odd and name in known:
            known[name] = _decoded(known[name])
    return About(**known)


def series_json(about: About) -> dict[str, Any]:
    return {name: [[step, at, _encoded(value)] for step, at, value in points] for name, points in about.series.items()}


def with_series(about: About, raw: Mapping[str, Any]) -> About:
    if not raw:
        return about
    series = {name: tuple((step, at, _decoded(value)) for step, at, value in points) for name, points in raw.items()}
    return replace(about, series=series)


def _encoded(value: Any) -> Any:
    """JSON knows no infinity."""
    if isinstance(value, Mapping):
        return {name: _encoded(inner) for name, inner in value.items()}
    return {"float": str(value)} if isinstance(value, float) and not math.isfinite(value) else value


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and isinstance(value.get("float"), str):
        return float(value["float"])
    return {name: _decoded(inner) if type(inner) is dict else inner for name, inner in value.items()}
