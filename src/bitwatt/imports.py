"""Call back when a module has been imported, so that frameworks are watched without bitwatt ever importing them."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType
from typing import Any


class _Finder(MetaPathFinder):
    def __init__(self) -> None:
        self.callbacks: dict[str, list[Callable[[], None]]] = {}
        self.importing: dict[str, int] = {}  # modules that run just now, and in which thread

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self.callbacks:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(fullname, path, target) if finder is not self else None
            if spec is not None:
                self._tell_after(spec)
                return spec
        return None

    def _tell_after(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        if loader is None or not hasattr(loader, "exec_module"):
            return
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module  # this spec's loader is as it was; only this one import was listened to
            self.importing[spec.name] = get_ident()
            try:
                execute(module)
            finally:
                self.importing.pop(spec.name, None)
            for callback in list(self.callbacks.get(spec.name, ())):
                callback()

        loader.exec_module = exec_module


_finder = _Finder()


def is_under_way(module: Any) -> bool:
    """Whether a thread is importing it just now."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def is_imported(name: str) -> bool:
    """Whether it is there, and not a half of it that this thread is importing."""
    return name in sys.modules and _finder.importing.get(name) != get_ident()


def when_imported(name: str, callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback` now if `name` is imported, else as soon as it has been. Returns how to stop listening.

    A module that this thread is importing has not been: XGBoost imports scikit-learn before it has a class of its own.
    """
    if is_imported(name) and is_under_way(sys.modules[name]):
        with contextlib.suppress(Exception):  # of the thread that imports it, which will see it
            importlib.import_module(name)  # waits for that thread
    if is_imported(name):
        callback()
        return lambda: None
    _finder.callbacks.setdefault(name, []).append(callback)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)

    def stop() -> None:
        listening = _finder.callbacks.get(name, [])
        if callback in listening:
            listening.remove(callback)
        if not listening:
            _finder.callbacks.pop(name, None)
        if not _finder.callbacks and _finder in sys.meta_path:
            sys.meta_path.remove(_finder)

    return stop
