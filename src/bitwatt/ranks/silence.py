"""When a run that is marked as under way was in truth cut off: killed, it could not write how it ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from bitwatt.ranks.identity import is_alive, still_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bitwatt.records import Machine, Rank

UNDER_WAY, CUT_OFF = "under way", "cut off"
#: A run under way is written every few seconds: one that was not for so long was probably killed.
SILENT_S = 900.0
#: The fact of the machine that tells of the process, as long as its run is under way.
PROCESS = "process"


class Timed(Protocol):
    @property
    def started(self) -> str: ...
    @property
    def seconds(self) -> float: ...


class Lasting(Timed, Protocol):
    """A run, or its first line."""

    @property
    def status(self) -> str: ...
    @property
    def rank(self) -> Rank | None: ...
    @property
    def machine(self) -> Machine | Mapping[str, str]: ...


def state_of(run: Lasting) -> str:
    """Its status, as far as it can be believed: of a process on this machine it is known whether it still runs."""
    if run.status != UNDER_WAY:
        return run.status
    runs = is_alive(run.rank) if run.rank is not None else None
    if runs is None:
        facts = run.machine if not hasattr(run.machine, "facts") else run.machine.facts
        runs = still_runs(facts.get(PROCESS, ""))
    return CUT_OFF if runs is False or (runs is None and is_silent(run)) else UNDER_WAY


def is_silent(run: Timed) -> bool:
    return datetime.now(UTC) - written_at(run) >= timedelta(seconds=SILENT_S)


def written_at(run: Timed) -> datetime:
    """When its file was last written, by the clock of the machine that runs it."""
    try:
        began = datetime.fromisoformat(run.started)
        began = began if began.tzinfo is not None else began.replace(tzinfo=UTC)
        return began.astimezone(UTC) + timedelta(seconds=run.seconds)
    except (ValueError, OverflowError):
        return datetime.min.replace(tzinfo=UTC)
