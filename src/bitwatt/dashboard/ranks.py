"""Pages of jobs of several processes: a list of them, and one of them with its ranks."""

from __future__ import annotations

from html import escape

from bitwatt.dashboard.catalog import Catalog
from bitwatt.dashboard.frame import framed, lines_of, link, url_of_job
from bitwatt.dashboard.runs import badge
from bitwatt.errors import UnknownNameError
from bitwatt.harmless import on_terminal
from bitwatt.jobs import joined
from bitwatt.ranks.join import UNDER_WAY, Joined
from bitwatt.ranks.silence import state_of
from bitwatt.reports.html.layout import Parts, note
from bitwatt.reports.html.ranks import parts_of
from bitwatt.store import Header
from bitwatt.units import format_duration

#: Ranks that are looked through for jobs, and jobs that are listed.
_LOOKED, _LISTED = 5_000, 100
_HEADS = ("Job", "Ranks", "Began", "Time", "Status")


def jobs_page(catalog: Catalog) -> str:
    found: dict[tuple[str, str], list[Header]] = {}
    for header in catalog.look().select(["rank>=0"], limit=_LOOKED):
        assert header.rank is not None
        found.setdefault((header.rank.job, header.name), []).append(header)
    rows = "".join(_row(job, name, ranks) for (job, name), ranks in list(found.items())[:_LISTED])
    heads = "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in _HEADS)
    table = lines_of("Jobs", heads, rows)
    empty = note("No run here is a rank of a job. Make one with: bitwatt run torchrun --nproc-per-node 2 train.py")
    more = note(f"The newest {_LISTED} of {len(found):,}.") if len(found) > _LISTED else ""
    head = "<h1>Ranks</h1>" + note("Jobs of several processes: who did how much, who waited, and for whom.")
    return framed(Parts("Ranks", head, [("jobs", "Jobs", table + more if rows else empty)]), at="Ranks", broad=True)


def _row(job: str, name: str, ranks: list[Header]) -> str:
    assert ranks[0].rank is not None
    states = [state_of(one) for one in ranks]
    state = next((one for one in states if one not in ("ok", UNDER_WAY)), UNDER_WAY if UNDER_WAY in states else "ok")
    time = format_duration(float(f"{max(one.seconds for one in ranks):.3g}"))
    cells = (f"{len(ranks)} of {ranks[0].rank.world}", on_terminal(ranks[0].started)[:19].replace("T", " "), time)
    told = "".join(
        f'<td role="cell" class="long" data-head="{head}">{escape(text)}</td>'
        for head, text in zip(_HEADS[1:4], cells, strict=True)
    )
    first = f"{link(url_of_job(job, name), on_terminal(name or job)[:120])}<small>{escape(on_terminal(job))}</small>"
    status = f'<td role="cell" class="long" data-head="Status">{badge(state)}</td>'
    return f'<tr role="row"><th scope="row" role="rowheader">{first}</th>{told}{status}</tr>'


def job_page(catalog: Catalog, job: str, name: str) -> str:
    return framed(parts_of(job_of(catalog, job, name)), at="Ranks")


def job_of(catalog: Catalog, job: str, name: str) -> Joined:
    found = [
        one for one in catalog.look().select([f"job= {job}"])
        if one.rank is not None and one.rank.job == job and one.name == name
    ]  # fmt: skip
    if not found:
        raise UnknownNameError(f"no job here is called {job!r} with runs of the name {name!r}")
    return joined(found)
