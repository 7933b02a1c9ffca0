"""What stands around functions that probes count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bitwatt.backends.sklearn.frames import TOP


def spoken_for(count: Any, function: Any) -> Any:
    """The rule of the call under way speaks for all estimators inside, and for those outside it does not."""

    def counted(*args: Any, **kwargs: Any) -> Any:
        frame = TOP.get()
        if frame is None:
            return function(*args, **kwargs)
        silent, frame.silent = frame.silent, True
        try:
            return count(*args, **kwargs)
        finally:
            frame.silent = silent

    return counted


def apart(twin: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """For methods that move a counter of their object, which threads would move at once: where one of them is at work,
    others call the object's twin, which has a counter of its own."""
    busy: dict[int, object] = {}

    def around(count: Any, function: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if TOP.get() is None:
                return function(*args, **kwargs)
            key, mine = id(args[0]), object()
            if busy.setdefault(key, mine) is not mine:  # in one step, which no other thread comes between
                return count(twin(args[0]), *args[1:], **kwargs)
            try:
                return count(*args, **kwargs)
            finally:
                del busy[key]

        return counted

    return around
