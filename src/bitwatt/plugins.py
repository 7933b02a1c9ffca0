"""What is found by name in the files of a package and by entry points of others: sensors, sinks."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Plugins(Generic[T]):
    """A file of `package` is one if it has the name `mark`: what to call to get it. Its own `name` comes first, else
    the file's. Iterating imports the files, but no third-party package."""

    def __init__(self, package: str, mark: str) -> None:
        self._package, self._mark = package, mark

    @cached_property
    def _known(self) -> dict[str, Callable[..., T]]:
        known: dict[str, Callable[..., T]] = {}
        for file in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
            found: Any = getattr(importlib.import_module(f"{self._package}.{file.name}"), self._mark, None)
            if found is not None:
                known[getattr(found, "name", file.name)] = found
        for point in entry_points(group=self._package):
            try:
                known[point.name] = point.load()
            except Exception as error:  # a broken plug-in costs itself, not the user's run
                what = self._mark.lower()
                warnings.warn(f"bitwatt: the {what} {point.value} could not be loaded: {error}", stacklevel=3)
        return known

    def __iter__(self) -> Iterator[str]:
        """By their `order`, 0 unless told, then by name."""
        return iter(sorted(self._known, key=lambda name: (getattr(self._known[name], "order", 0), name)))

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __getitem__(self, name: str) -> Callable[..., T]:
        return self._known[name]
