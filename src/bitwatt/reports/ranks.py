"""A job of several processes for people (text, html) and programs (json)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bitwatt.config import Settings
from bitwatt.errors import UnknownNameError
from bitwatt.ranks import energy
from bitwatt.ranks.join import Joined, Part, Work
from bitwatt.ranks.shares import LEARNING_SHAPES
from bitwatt.ranks.stragglers import Waiting, waiting
from bitwatt.readings import counted, metered_json
from bitwatt.reports.energy import joules
from bitwatt.reports.footprint import Footprint
from bitwatt.reports.model import configured
from bitwatt.units import format_bytes, format_count, format_duration, format_percent

FORMATS = ("text", "json", "html")
#: Ranks that are listed one by one; of more, the slowest and the quickest.
_LISTED = 16


def render(job: Joined, format: str = "text", settings: Settings | None = None) -> str:
    """`settings`, such as place and prices, are those of the current folder unless given."""
    if format not in FORMATS:
        raise UnknownNameError(f"a report of ranks is {' or '.join(FORMATS)}, not {format!r}")
    if format == "html":
        from bitwatt.reports.html.ranks import page_of

        return page_of(job)
    found = waiting({part.number: part.arrivals for part in job.parts if part.arrivals is not None})
    known = settings if settings is not None else configured()
    return _text(job, found, known) if format == "text" else json.dumps(_document(job, found, known), indent=2) + "\n"


def sentences(job: Joined, found: Waiting | None) -> list[str]:
    """What stands out, in words."""
    told = [f"rank {part.number} was lost after {_seconds(part.kept.seconds)}" for part in job.lost]
    if job.absent:
        ranks = ", ".join(map(str, job.absent[:8])) + (f" and {len(job.absent) - 8} more" if job.absent[8:] else "")
        told.append(f"rank {ranks} left no file" if len(job.absent) == 1 else f"ranks {ranks} left no file")
    for part in job.parts:
        if part.kept.status not in ("ok", "under way"):
            told.append(f"rank {part.number} {' '.join(part.kept.status.split())[:120]}")
    if shapes := sum(work.total[0] for phase, work in job.phases.items() if LEARNING_SHAPES in phase.split("/")):
        told.append(f"stages of the pipeline ran once to learn their shapes: {format_count(shapes)} FLOPs")
    if found is None:
        return told
    told += [str(delay) for delay in found.delays]
    if not found.delays:
        told.append("no rank stands out")
    return told


def _text(job: Joined, found: Waiting | None, settings: Settings) -> str:
    nodes = f"{len(job.nodes)} {'node' if len(job.nodes) == 1 else 'nodes'}"
    lines = [
        f"{len(job.parts)} of {job.world} ranks on {nodes} · {job.pattern or 'no parallelism recognised'}",
        " · ".join(filter(None, (job.name, job.first.kept.command, job.job, _seconds(job.seconds)))),
        "",
        *sentences(job, found),
        "",
    ]
    lines += _table(phase_rows(job))
    lines += ["", *_table(rank_rows(job, found))]
    if job.links:
        lines += ["", *_table(link_rows(job)), ""]
        share = job.comm_share
        if share is not None:
            lines.append(f"communication: {format_percent(share)} of the ranks' time inside messages and waits")
        if job.overlap is not None:
            lines.append(f"overlap: {format_percent(job.overlap)} of adding up gradients went on beside backward")
        busiest = job.links[0]
        lines.append(f"busiest link: {busiest.kind} {_among(busiest.ranks)}, {format_bytes(busiest.bytes)}")
    lines += _energy(job, found, settings)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _energy(job: Joined, found: Waiting | None, settings: Settings) -> list[str]:
    """Each device of each node once, and what went by while ranks waited for others."""
    readers = energy.readers(job, None if found is None else found.waited)
    if not readers:
        return []
    metered = energy.joined(readers)
    known = counted(metered.energy)
    spent = f"{_seconds(metered.usage.get('cpu_seconds'))} of CPU time"
    footprint = Footprint(metered, settings, job.first.kept.started)
    if not known:
        lines = ["", f"energy: unknown, no counter can be read here; {spent}"]
        return lines if footprint.cost.total is None else [*lines, f"cost: {footprint.cost_told()}"]
    amounts = [f"{joules(sum(p.energy_j or 0.0 for p in known if p.how == how))} {how}" for how in dict.fromkeys(
        part.how for part in known)]  # fmt: skip
    devices = f"{len(known)} {'device' if len(known) == 1 else 'devices'}, each once"
    lines = ["", f"energy: {', '.join(amounts)} ({devices}); {spent}"]
    lines.append(f"carbon, cost: {footprint.carbon_told()} · {footprint.cost_told()}")
    lost = energy.waited(readers)
    if lost.energy_j is not None and lost.seconds:
        lines.append(
            f"waiting for ranks: {_seconds(lost.seconds)} in all, ~{joules(lost.energy_j)} at the ranks' share of power"
        )
    return lines


def _energy_document(job: Joined, found: Waiting | None, settings: Settings) -> dict[str, Any] | None:
    readers = energy.readers(job, None if found is None else found.waited)
    if not readers:
        return None
    metered, lost = energy.joined(readers), energy.waited(readers)
    wait = {"seconds": lost.seconds, "energy_j": lost.energy_j, "how": "apportioned"}
    footprint = Footprint(metered, settings, job.first.kept.started).document({})
    costs = {key: footprint[key] for key in ("carbon", "cost")}
    return metered_json(metered) | {"measured_j": metered.measured_j, "waiting": wait} | costs


def phase_rows(job: Joined) -> list[list[str]]:
    rows = [["FLOPs by phase", "all ranks", "once", "repeated", "least", "", "median", "most", ""]]
    for name, work in [*job.phases.items(), ("total", job.total)]:
        if work.total[0]:
            rows.append([name or "other", *_amounts(work, "≥ " if job.lost else "")])
    return rows


def _amounts(work: Work, least: str) -> list[str]:
    """`least` marks sums in which a part of a rank's work is missing."""
    spread = work.spread
    ends = [f"rank {spread.least[0]}", f"rank {spread.most[0]}"]
    if spread.least[1] == spread.most[1]:
        ends = ["equal", "equal"] if spread.least[0] != spread.most[0] else ends
    return [
        least + format_count(work.total[0]), least + format_count(work.once[0]),
        format_percent(work.repeated[0] / work.total[0]) if work.total[0] else "",
        format_count(int(spread.least[1])), ends[0], format_count(int(spread.middle)),
        format_count(int(spread.most[1])), ends[1],
    ]  # fmt: skip


def rank_rows(job: Joined, found: Waiting | None) -> list[list[str]]:
    waited, delayed = (found.waited, found.delayed) if found is not None else ({}, {})
    rows = [["rank", "node", "time", "FLOPs", "steps", "waited", "made others wait", "status"]]
    for part in shown(job.parts, delayed):
        steps = part.arrivals.count if part.arrivals is not None else None
        rows.append(
            [
                str(part.number), part.rank.node, _seconds(part.kept.seconds), flops_of(part),
                "" if steps is None else f"{steps:,}", _seconds(waited.get(part.number)),
                _seconds(delayed.get(part.number)), "lost" if part.is_lost else " ".join(part.kept.status.split())[:24],
            ]
        )  # fmt: skip
    if len(job.parts) > len(rows) - 1:
        rows.append([f"… {len(job.parts) - len(rows) + 1} more", *[""] * 7])
    return rows


def flops_of(part: Part) -> str:
    """A lost rank did at least what it had written down; of one that had not, nobody knows."""
    if not part.is_known:
        return "—"
    return f"{'≥ ' if part.is_lost else ''}{format_count(part.total[0])}"


def shown(parts: Sequence[Part], delayed: Any) -> list[Part]:
    if len(parts) <= _LISTED:
        return list(parts)
    by_delay = sorted(parts, key=lambda part: (not part.is_lost, -delayed.get(part.number, 0.0), part.number))
    return sorted(by_delay[:_LISTED], key=lambda part: part.number)


def link_rows(job: Joined) -> list[list[str]]:
    rows = [["messages", "among", "calls", "bytes"]]
    for link in job.links[:12]:
        rows.append([link.kind, _among(link.ranks), f"{link.calls:,}", format_bytes(link.bytes)])
    if len(job.links) > 12:
        rows.append([f"… {len(job.links) - 12} more", "", "", format_bytes(sum(link.bytes for link in job.links[12:]))])
    return rows


def _among(ranks: str) -> str:
    if ":" in ranks:
        start, stop, step = map(int, ranks.split(":"))
        every = f" by {step}" if step > 1 else ""
        return f"ranks {start}-{stop - 1}{every}"
    return f"ranks {ranks}" if ranks else ""


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else format_duration(float(f"{seconds:.3g}"))


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    drawn = [
        "  ".join(cell.ljust(width) if i == 0 or not _is_number(cell) else cell.rjust(width)
                  for i, (cell, width) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]  # fmt: skip
    return [drawn[0], "─" * max(map(len, drawn)), *drawn[1:]]


def _is_number(cell: str) -> bool:
    return cell.removeprefix("≥ ")[:1].isdigit() or cell[:1] in "<-—"


def _document(job: Joined, found: Waiting | None, settings: Settings) -> dict[str, Any]:
    def work(one: Work) -> dict[str, Any]:
        return {
            "flops": one.total[0], "bops": one.total[1], "flops_once": one.once[0], "bops_once": one.once[1],
            "least": {"rank": one.spread.least[0], "flops": one.spread.least[1]}, "median": one.spread.middle,
            "most": {"rank": one.spread.most[0], "flops": one.spread.most[1]},
        }  # fmt: skip

    return {
        "format": "bitwatt.ranks",
        "version": 1,
        "job": job.job,
        "name": job.name,
        "world": job.world,
        "nodes": [{"machine": machine, "ranks": ranks} for machine, ranks in job.nodes.items()],
        "parallelism": [{"kind": kind, "ways": ways, "source": by} for kind, (ways, by) in job.axes.items()],
        "sentences": sentences(job, found),
        "total": work(job.total),
        "phases": {name: work(one) for name, one in job.phases.items()},
        "ranks": [
            {
                "rank": part.number, "node": part.rank.node, "id": part.kept.id, "seconds": part.kept.seconds,
                "status": "lost" if part.is_lost else part.kept.status, "is_least": part.is_lost,
                "flops": part.total[0] if part.is_known else None, "bops": part.total[1] if part.is_known else None,
                "comm_seconds": part.waited, "steps": part.arrivals.count if part.arrivals else None,
                "waited_seconds": found.waited.get(part.number) if found else None,
                "delayed_seconds": found.delayed.get(part.number, 0.0) if found else None,
            }
            for part in job.parts
        ],
        "absent": job.absent,
        "stragglers": [asdict(delay) for delay in found.delays] if found else [],
        "messages": [asdict(link) for link in job.links],
        "energy": _energy_document(job, found, settings),
        "comm_share": job.comm_share,
        "overlap": job.overlap,
    }  # fmt: skip
