"""Where the readers of quantised layers are found: by the qualified name of a class, so that nothing is imported."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.precision.formats import format_named, stored_bits
from bitwatt.records import Quantised


@dataclass(frozen=True, slots=True)
class Widths:
    """What a reader found out about a layer. `shapes` are those of its quantised weights before they were packed."""

    weights: Quantised | None = None
    activations: Quantised | None = None
    shapes: tuple[tuple[int, ...], ...] = ()


#: Given a tensor or a module of the class it is registered for. None: this object is not quantised after all.
Reader = Callable[[Any], Widths | None]

_readers: dict[str, Reader] = {}
_found: weakref.WeakKeyDictionary[type, tuple[str, Reader] | None] = weakref.WeakKeyDictionary()
_loaded: set[str] = set()


def precision(*classes: str) -> Callable[[Reader], Reader]:
    """Register a reader for classes by qualified name (`bitsandbytes.nn.modules.Params4bit`), or by pattern with *."""

    def register(reader: Reader) -> Reader:
        _readers.update(dict.fromkeys(classes, reader))
        _found.clear()
        return reader

    return register


def reader_of(kind: type) -> tuple[str, Reader] | None:
    """The reader for a class, else for the nearest of its parents that has one, and the class it was found under."""
    if kind not in _found:
        for parent in kind.__mro__:
            _load(parent.__module__.partition(".")[0])
        _found[kind] = _search(kind)
    return _found[kind]


def _search(kind: type) -> tuple[str, Reader] | None:
    for parent in kind.__mro__:
        name = f"{parent.__module__}.{parent.__qualname__}"
        if name in _readers:
            return name, _readers[name]
        for pattern, reader in _readers.items():
            if "*" in pattern and fnmatchcase(name, pattern):
                return name, reader
    return None


def _load(library: str) -> None:
    if library in _loaded:
        return
    _loaded.add(library)
    if library.isidentifier() and importlib.util.find_spec(f"bitwatt.precision.{library}"):
        importlib.import_module(f"bitwatt.precision.{library}")
    for point in [point for point in _points() if point.name == library]:
        try:
            point.load()
        except Exception as error:  # a broken plug-in costs its own readers, not the user's run
            warnings.warn(f"bitwatt: the precisions of {point.value} could not be loaded: {error}", stacklevel=2)


@cache
def _points() -> tuple[EntryPoint, ...]:
    """Looked for once: every installed package is asked."""
    return tuple(entry_points(group="bitwatt.precision"))


def signed(widths: Widths, name: str) -> Widths:
    """With the class that told, where the reader said no more than the attributes."""
    parts = {
        field: replace(part, source=f"{name}: {part.source}" if part.source else name)
        for field in ("weights", "activations")
        if (part := getattr(widths, field)) is not None
    }
    return replace(widths, **parts)


def quantised(
    format: Precision | str,
    numel: int = 0,
    *,
    beside: Iterable[Any] = (),
    source: str = "",
    stored: bool = True,
    kept_in: Any = None,
) -> Quantised:
    """`numel` values of one format with the tensors of scales and zero points that go `beside` them; `kept_in` is the
    tensor of the values themselves, which may give each more room than it needs."""
    value = format_named(format) if isinstance(format, str) else format
    extra = sum(t.numel() * t.element_size() * 8 for t in beside if t is not None) / numel if numel else 0
    each = stored_bits(value) if stored else value.bits
    room = kept_in.numel() * kept_in.element_size() * 8 / numel if kept_in is not None and numel else each
    return Quantised(value, each + extra, source, stored, room + extra if room > each else None)
