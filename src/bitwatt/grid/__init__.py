"""How much carbon a kilowatt-hour carries, where and when: a provider is a file with `fetch(settings, begin, end)`.

No place is guessed, and no service is asked unless the settings name it. What cannot be told is unknown, with the
reason; a service that is slow or out of order costs `grid.timeout_s` seconds at most.
"""

from __future__ import annotations

import importlib
import threading
from datetime import datetime

from bitwatt.config import Settings
from bitwatt.grid.kept import keep, kept
from bitwatt.grid.record import Grid, Intensity, UnavailableError

__all__ = ["Grid", "Intensity", "UnavailableError", "ask"]

#: Asked where no provider is switched on, or where it fails, in this order.
_STATIC = ("static", "codecarbon")


def ask(settings: Settings, begin: datetime, end: datetime) -> Grid:
    """The intensities of the electricity between two moments, by the provider of the settings; else the user's own
    number; else CodeCarbon's table for the user's country. Else none, and why."""
    reasons = []
    for name in (*((settings.grid_provider,) if settings.grid_provider else ()), *_STATIC):
        try:
            found = _fetch(name, settings, begin, end)
        except UnavailableError as error:
            if str(error):
                reasons.append(f"{name}: {error}")
        else:
            return Grid(tuple(sorted(found, key=lambda one: one.valid_from or begin)), "; ".join(reasons))
    return Grid((), "; ".join(reasons) or "no country, intensity or grid provider is set")


def _fetch(name: str, settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    """Services run in a thread that nobody waits for longer than the settings allow: the time limit of a socket is
    for each piece of an answer, not for all of it."""
    fetch = importlib.import_module(f"bitwatt.grid.{name}").fetch
    if name in _STATIC:
        return list(fetch(settings, begin, end))
    if known := kept(settings, begin, end):
        return known
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
