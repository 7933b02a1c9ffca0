"""Answers of services that a run holds, so that a report of it says the same later, elsewhere and offline."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bitwatt.config import Settings
from bitwatt.grid.record import Intensity, UnavailableError, covers, within

#: A service that gave no answer is not asked by the next runs of this process for so many seconds.
PAUSE_S = 60.0

_answers: dict[str, list[Intensity]] = {}
_refusals: dict[str, tuple[float, str]] = {}


def question(settings: Settings) -> dict[str, str | None]:
    """What is asked of whom, but for the time."""
    return {
        "provider": settings.grid_provider,
        "zone": settings.grid_zone,
        "signal": settings.grid_signal,
        "kind": settings.grid_kind,
        "url": settings.grid_url,
    }


def for_a_run(settings: Settings, found: list[Intensity]) -> dict[str, Any]:
    _answers[str(question(settings))] = found
    told = [one.to_dict() for one in found]
    return {**question(settings), "asked": datetime.now(UTC).isoformat(timespec="seconds"), "intensities": told}


def answered(held: Mapping[str, Any], settings: Settings) -> list[Intensity]:
    """What a run holds, if it was asked the same."""
    if any(held.get(name) != value for name, value in question(settings).items()):
        return []
    try:
        return [Intensity.from_dict(one) for one in held.get("intensities", ())]
    except (TypeError, AttributeError, UnavailableError):  # of another version
        return []


def recent(settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    """What was answered to a run before this one, if it tells of all of this one."""
    found = within(_answers.get(str(question(settings)), ()), begin, end)
    return found if covers(found, begin, end) else []


def is_paused(settings: Settings) -> bool:
    return time.monotonic() < _refusals.get(str(question(settings)), (0.0, ""))[0]


def outage(settings: Settings) -> str:
    """What was waited for in vain a moment ago; empty where nothing was. A refusal that came at once, such as of a time
    that the service knows nothing of, is no outage."""
    return _refusals[str(question(settings))][1] if is_paused(settings) else ""


def pause(settings: Settings, why: str = "") -> None:
    _refusals[str(question(settings))] = (time.monotonic() + PAUSE_S, why)
