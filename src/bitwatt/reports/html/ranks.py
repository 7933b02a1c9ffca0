"""The page of a job of several processes: who did how much, who waited, and for whom."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from bitwatt import charts
from bitwatt.charts import Bar
from bitwatt.ranks import energy
from bitwatt.ranks.join import Joined
from bitwatt.ranks.stragglers import Waiting, waiting
from bitwatt.reports.energy import joules
from bitwatt.reports.html.layout import Parts, figure, how_to_get_charts, note, page, plain_table
from bitwatt.reports.ranks import link_rows, phase_rows, rank_rows, sentences, shown
from bitwatt.units import format_count, format_duration


def page_of(job: Joined) -> str:
    return page(*parts_of(job))


def parts_of(job: Joined) -> Parts:
    found = waiting({part.number: part.arrivals for part in job.parts if part.arrivals is not None})
    many = f"{len(job.parts)} of {job.world} ranks on {len(job.nodes)} {'node' if len(job.nodes) == 1 else 'nodes'}"
    told = "".join(f'<p class="energy">{escape(line)}</p>' for line in sentences(job, found))
    meta = [f"<code>{escape(job.first.kept.command)}</code>"] if job.first.kept.command else []
    meta += [f"<span>{escape(text)}</span>" for text in (job.job, _time(job.seconds)) if text]
    head = (
        f'<p class="coverage {"bad" if job.lost or job.absent else "good"}">{escape(many)}</p>'
        f"<h1>{escape(job.name or job.job)}</h1>"
        f'<p class="meta">{"".join(meta)}</p><p>{escape(job.pattern or "no parallelism recognised")}</p>'
        f"{told}{how_to_get_charts()}"
    )
    return Parts(job.name or job.job, head, list(_sections(job, found)))


def _sections(job: Joined, found: Waiting | None) -> Iterator[tuple[str, str, str]]:
    heads, *rows = rank_rows(job, found)
    yield "ranks", "Ranks", _work(job, found) + _waits(job, found) + plain_table("Ranks", heads, rows, (2, 3, 4, 5, 6))
    heads, *rows = phase_rows(job)
    yield "phases", "Phases", plain_table("FLOPs by phase", heads, rows, (1, 2, 3, 4, 6, 7))
    if job.links:
        heads, *rows = link_rows(job)
        yield "messages", "Messages", plain_table("Messages", heads, rows, (2, 3))
    if readers := energy.readers(job, None if found is None else found.waited):
        metered = energy.joined(readers)
        rows = [[one.device.id, joules(one.energy_j), one.how, one.source] for one in metered.energy]
        about = note("Each device once, however many ranks read it.")
        heads = ["Device", "Energy", "How", "By what"]
        yield "energy", "Energy", about + plain_table("Energy", heads, rows, (1,), badges=2)


def _work(job: Joined, found: Waiting | None) -> str:
    """FLOPs of the ranks that the table lists."""
    parts = shown(job.parts, found.delayed if found is not None else {})
    bars = [Bar(f"rank {one.number}", "", one.total[0], format_count(one.total[0], "FLOP")) for one in parts]
    drawn = any(bar.amount for bar in bars)
    return figure(lambda width: charts.bars("FLOPs of each rank", bars, "FLOP", width=width)) if drawn else ""


def _waits(job: Joined, found: Waiting | None) -> str:
    if found is None:
        return ""
    bars = [
        Bar(f"rank {part.number}", series, seconds, _time(seconds))
        for part in shown(job.parts, found.delayed)
        for series, known in (("waited", found.waited), ("made others wait", found.delayed))
        for seconds in [known.get(part.number, 0.0)]
    ]
    return figure(lambda width: charts.bars("Who waited, and who made others wait", bars, "seconds", width=width))


def _time(seconds: float) -> str:
    return format_duration(float(f"{seconds:.3g}"))
