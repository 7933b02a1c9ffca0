"""Errors that are on their way to the program: they only happened to arise while code of ours ran."""

from __future__ import annotations

import functools
import signal
from typing import Any


def is_passing(error: BaseException) -> bool:
    """Whether it was raised by the program's handler of a signal (a time limit by SIGALRM), or is none to be caught."""
    if not isinstance(error, Exception):
        return True
    trace = error.__traceback__
    codes = []
    while trace is not None:
        codes.append(trace.tb_frame.f_code)
        trace = trace.tb_next
    return not _handlers().isdisjoint(codes)


def handed_on(error: Exception) -> None:
    """Raise it again if it is."""
    if is_passing(error):
        raise error


def _handlers() -> set[Any]:
    return {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}


def _code(handler: Any) -> Any:
    """Of the function behind a handler: a method, an object that is called, one with arguments given ahead."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    called = handler if hasattr(handler, "__code__") else vars(type(handler)).get("__call__")
    return getattr(called, "__code__", None)
