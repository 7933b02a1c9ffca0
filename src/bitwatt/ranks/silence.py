"""When a run that is marked as under way was in truth cut off: killed, it could not write how it ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

UNDER_WAY, CUT_OFF = "under way", "cut off"
#: A run under way is written every few seconds: one that was not for so long was probably killed.
SILENT_S = 900.0


class Lasting(Protocol):
    """A run, or its first line."""

    @property
    def started(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def status(self) -> str: ...


def state_of(run: Lasting) -> str:
    """Its status, as far as it can be believed."""
    return CUT_OFF if run.status == UNDER_WAY and is_silent(run) else run.status


def is_silent(run: Lasting) -> bool:
    return datetime.now(UTC) - written_at(run) >= timedelta(seconds=SILENT_S)


def written_at(run: Lasting) -> datetime:
    """When its file was last written, by the clock of the machine that runs it."""
    try:
        began = datetime.fromisoformat(run.started)
        began = began if began.tzinfo is not None else began.replace(tzinfo=UTC)
        return began.astimezone(UTC) + timedelta(seconds=run.seconds)
    except (ValueError, OverflowError):
        return datetime.min.replace(tzinfo=UTC)
