"""Jobs of several processes in a store: finds the runs of all ranks and joins them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bitwatt import store as files
from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.fingerprint import summary
from bitwatt.ledger import Ledger
from bitwatt.observed import together
from bitwatt.ranks import energy
from bitwatt.ranks.join import UNDER_WAY, Joined, Kept, jobs
from bitwatt.ranks.join import join as join_ranks
from bitwatt.ranks.shares import shares
from bitwatt.ranks.silence import CUT_OFF, state_of
from bitwatt.readings import metered_json
from bitwatt.records import Layer, Run


def join(which: str | Path | None = None, store: str | Path | None = None) -> Joined:
    """All ranks of a job as one: by the id or path of any of their runs, the job's id or the name; by default the
    newest job. Only first lines are read, except of ranks that were lost."""
    if isinstance(which, Path) or (which is not None and which.endswith(files.SUFFIX)):
        there, name = files.split(which if files.is_url(which) else Path(which))
        which, store = name.removesuffix(files.SUFFIX), there.root if store is None else store
    folder = files.root(store)
    ranked = files.ranked(folder)
    if not ranked:
        raise UnknownNameError(f"no run in {folder} is a rank of a job; make some with: bitwatt run torchrun script.py")
    one = ranked[0] if which is None else next((one for one in ranked if _is(one, which)), None)
    if one is None or one.rank is None:
        known = ", ".join(dict.fromkeys(f"{one.rank.job} ({one.name})" for one in ranked if one.rank))
        raise UnknownNameError(f"no job in {folder} is called {which!r}; there are {known}")
    return joined(jobs(ranked)[one.rank.job, one.name])


def joined(ranks: Iterable[Kept]) -> Joined:
    """Files of one job as one."""
    return join_ranks(ranks, _read, _again)


def state_of_job(ranks: Sequence[files.Header]) -> str:
    """Of a job by the first lines of its ranks, in the words of every list."""
    states = [state_of(one) for one in ranks]
    if ended := next((one for one in states if one not in ("ok", UNDER_WAY, CUT_OFF)), ""):
        ended = " ".join(ended.split())[:60]
    lost = states.count(CUT_OFF)
    going = UNDER_WAY if UNDER_WAY in states else ""
    world = max(ranks[0].rank.world if ranks[0].rank is not None else 0, len(ranks))
    return ", ".join(filter(None, (f"{len(ranks)} of {world} ranks", f"{lost} lost" if lost else "", ended or going)))


def without_joined(
    lines: Mapping[tuple[str, ...], list[files.Header]],
) -> dict[tuple[str, ...], list[files.Header]]:
    """Lines of a list, but for the ranks of jobs that were joined: the joined run, which has the job's id, stands for
    them."""
    whole = {(one.id, one.name) for line in lines.values() for one in line if one.rank is None}
    return {
        key: line
        for key, line in lines.items()
        if line[0].rank is None or (line[0].rank.job, line[0].name) not in whole
    }


def so_far(header: files.Header) -> files.Header:
    """With sums of what was counted, where nobody had the time to price it: the run goes on, or was cut off."""
    if header.status != UNDER_WAY or header.summary.get("totals"):
        return header
    try:
        return replace(header, summary={**header.summary, **summary(files.load(header.path))})
    except (BitwattError, OSError):  # gone, or written anew just now
        return header


def since(began: datetime, store: str | Path | None = None) -> list[Joined]:
    """The jobs that began after a moment, oldest first."""
    kept = files.ranked(store, began.astimezone(UTC).isoformat(timespec="milliseconds"))
    return [joined(ranks) for ranks in reversed(jobs(kept).values())]


def _is(one: files.Header, which: str) -> bool:
    job = one.rank.job if one.rank is not None else ""
    return which in (one.id, one.name, job) or one.id.startswith(which)


def _read(kept: Kept) -> Mapping[str, Any]:
    """The shares of a rank that had no time to price them."""
    assert isinstance(kept, files.Header)
    run = files.load(kept.path)
    return shares(run) if run.meter is None else shares(run) | {"meter": metered_json(run.meter)}


def _again(kept: Kept) -> Kept:
    """Its first line as it is now."""
    assert isinstance(kept, files.Header)
    there, name = files.split(kept.path)
    found, _ = files.read(there, [name])
    return found[0] if found else kept


def whole(job: Joined) -> Run:
    """One run that holds the calls of all ranks, to report or re-price as any other. Repeated work is in it as often as
    it was done."""
    runs = [files.load(part.kept.path) for part in job.parts if isinstance(part.kept, files.Header)]
    ledger, layers, seconds = Ledger(), dict[str, Layer](), dict[str, float]()
    on_device = dict[str, float]()
    for run in runs:
        for row in run.ledger:
            ledger.add(row.phase, row.scope, row.op, row.calls)
        layers |= run.layers
        for phase, span in run.phase_seconds.items():
            seconds[phase] = seconds.get(phase, 0.0) + span / len(runs)
        for phase, span in run.device_seconds.items():
            on_device[phase] = on_device.get(phase, 0.0) + span
    notes = [f"{len(runs)} of {job.world} ranks joined: {job.pattern or 'no parallelism recognised'}"]
    notes += [f"rank {part.number} was lost after {part.kept.seconds:.0f} s" for part in job.lost]
    notes += dict.fromkeys(note for run in runs for note in run.notes)
    read = energy.readers(job)
    served = [run.requests for run in runs if run.requests is not None]
    ended = next((run.status for run in runs if run.status not in ("ok", UNDER_WAY)), "")
    if not ended:
        lost = f"failed: rank {job.lost[0].number} was lost" if job.lost else ""
        ended = lost or next((run.status for run in runs if run.status != "ok"), "ok")
    return replace(
        runs[0], id=job.job, seconds=job.seconds, ledger=ledger, layers=layers, phase_seconds=seconds, status=ended,
        device_seconds=on_device, notes=tuple(notes), rank=None, meter=energy.joined(read) if read else None,
        requests=sum(served[1:], served[0]) if served else None,
        observed=together(run.observed for run in runs if run.observed),
        about=replace(runs[0].about, parent="", parent_kind=""),
    )  # fmt: skip
