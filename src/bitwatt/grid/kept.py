"""Answers of services, kept on this machine: a report that is drawn again asks nobody, and says the same."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bitwatt import state
from bitwatt.config import Settings
from bitwatt.grid.held import question
from bitwatt.grid.record import Intensity, UnavailableError, covers

#: Values that a provider calls forecast or estimated may change until then.
_FINAL = timedelta(days=2)


def kept(settings: Settings, begin: datetime, end: datetime) -> list[Intensity]:
    """What was answered before to the same question; empty where nothing is kept, or it cannot be read."""
    with suppress(OSError, ValueError, TypeError, AttributeError, UnavailableError):
        return [Intensity.from_dict(one) for one in json.loads(_file(settings, begin, end).read_text("utf-8"))]
    return []


def keep(settings: Settings, begin: datetime, end: datetime, found: list[Intensity]) -> None:
    """If it is final: the whole span is covered, by values that will not change."""
    if not covers(found, begin, end):
        return
    if any(one.note for one in found) and datetime.now(UTC) - end < _FINAL:
        return
    file = _file(settings, begin, end)
    scratch = file.with_suffix(f".{os.getpid()}.tmp")
    with suppress(OSError):  # then it is asked for again
        file.parent.mkdir(parents=True, exist_ok=True)
        scratch.write_text(json.dumps([one.to_dict() for one in found], indent=1), encoding="utf-8")
        scratch.replace(file)


def _file(settings: Settings, begin: datetime, end: datetime) -> Path:
    told = json.dumps(
        [*question(settings).values(), begin.astimezone(UTC).isoformat(), end.astimezone(UTC).isoformat()]
    )
    return state.folder() / "grid" / f"{hashlib.sha256(told.encode()).hexdigest()[:24]}.json"
