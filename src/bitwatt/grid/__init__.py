"""How much carbon a kilowatt-hour carries, where and when: a provider is a file with `fetch(settings, begin, end)`.

No place is guessed, and no service is asked unless the settings name it. What cannot be told is unknown, with the
reason; a service that is slow or out of order costs `grid.timeout_s` seconds at most.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from bitwatt.config import Settings
from bitwatt.grid.held import answered, for_a_run, is_paused, outage, pause, recent
from bitwatt.grid.kept import keep, kept
from bitwatt.grid.record import Grid, Intensity, UnavailableError, covers

__all__ = ["Grid", "Intensity", "UnavailableError", "ask", "at_close", "without_asking"]

#: Asked where no provider is switched on, or where it fails, in this order.
_STATIC = ("static", "codecarbon")


def ask(settings: Settings, begin: datetime, end: datetime, held: Mapping[str, Any] | None = None) -> Grid:
    """The intensities of the electricity between two moments, by the provider of the settings; else the user's own
    number; else CodeCarbon's table for the user's country. Else none, and why. `held` is what `at_close` found then."""
    reasons = []
    for name in (*((settings.grid_provider,) if settings.grid_provider else ()), *_STATIC):
        try:
            found = _fetch(name, settings, begin, end, answered(held or {}, settings))
        except UnavailableError as error:
            if str(error):
                reasons.append(f"{name}: {error}")
        else:
            return _by_time(found, begin, "; ".join(reasons))
    return Grid((), "; ".join(reasons) or "no country, intensity or grid provider is set")


def _by_time(found: Iterable[Intensity], begin: datetime, because: str) -> Grid:
    return Grid(tuple(sorted(found, key=lambda one: one.valid_from or begin)), because)


def without_asking(settings: Settings, begin: datetime, end: datetime, held: Mapping[str, Any]) -> Grid:
    """As `ask`, by what a run holds alone where a provider is switched on: its silence is no reason to take another's
    number, since a report that asks again may hear better."""
    if settings.grid_provider is None:
        return ask(settings, begin, end)
    return _by_time(answered(held, settings), begin, "its provider told nothing when the run ended")


def at_close(settings: Settings, begin: datetime, end: datetime) -> dict[str, Any]:
    """What the provider of the settings says of a run that has just ended, to be kept in it; empty where none is
    switched on, or it does not answer. Runs that follow each other closely share an answer, and a refusal."""
    if settings.grid_provider is None or is_paused(settings):
        return {}
    try:
        found = recent(settings, begin, end) or _fetch(settings.grid_provider, settings, begin, end, [])
    except (UnavailableError, RuntimeError):  # the latter where Python ends, and starts no thread any more
        if not is_paused(settings):
            pause(settings)
        return {}
    return for_a_run(settings, found)


def _fetch(name: str, settings: Settings, begin: datetime, end: datetime, held: list[Intensity]) -> list[Intensity]:
    """What the run holds, if that is all of it; what was kept; what the service says; what the run holds."""
    if name in _STATIC:
        return list(importlib.import_module(f"bitwatt.grid.{name}").fetch(settings, begin, end))
    known = held if covers(held, begin, end) else kept(settings, begin, end)
    try:
        if not known and (why := outage(settings)):
            raise UnavailableError(f"{why}, a moment ago")
        return known or _waited_for(name, settings, begin, end)
    except UnavailableError:
        if held:
            return held
        raise


def _waited_for(name: str, settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    """A wait in vain is not made again soon: many runs would each pay for it."""
    began = time.monotonic()
    try:
        return _served(name, settings, begin, end)
    except UnavailableError as error:
        if time.monotonic() - began > settings.grid_timeout_s / 2:
            pause(settings, str(error))
        raise


def _served(name: str, settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    """Services run in a thread that nobody waits for longer than the settings allow: the time limit of a socket is
    for each piece of an answer, not for all of it."""
    fetch = importlib.import_module(f"bitwatt.grid.{name}").fetch
    answer: list[list[Intensity] | UnavailableError] = []

    def work() -> None:
        try:
            answer.append(fetch(settings, begin, end))
        except UnavailableError as error:
            answer.append(error)
        except Exception as error:  # a shape nobody documented must not harm the user's run
            answer.append(UnavailableError(f"its answer could not be read ({type(error).__name__}: {error})"))

    thread = threading.Thread(target=work, name=f"bitwatt-grid-{name}", daemon=True)
    thread.start()
    thread.join(settings.grid_timeout_s)
    if not answer:
        raise UnavailableError(f"no answer within {settings.grid_timeout_s:g} s")
    if isinstance(answer[0], UnavailableError):
        raise answer[0]
    if not answer[0]:
        raise UnavailableError("it has no value for that time")
    keep(settings, begin, end, answer[0])
    return answer[0]
