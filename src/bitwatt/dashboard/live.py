"""Runs under way, as far as their files tell: which there are, what they have counted so far, and a page of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from bitwatt.dashboard.asking import quoted
from bitwatt.dashboard.catalog import Catalog
from bitwatt.dashboard.frame import framed, lines_of, link, url, url_of_run
from bitwatt.dashboard.prefix import address
from bitwatt.errors import BitwattError
from bitwatt.fingerprint import summary
from bitwatt.harmless import on_terminal
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.ranks.silence import CUT_OFF, state_of, written_at
from bitwatt.reports.html.layout import Parts, note
from bitwatt.store import Header, cells, load
from bitwatt.units import format_count, format_duration

#: Seconds for which one that has ended stays on the page.
ENDED_S = 600.0
#: Runs that are looked at and shown, points of a line, metrics in a cell.
_LOOKED, _SHOWN, _POINTS, _METRICS = 1_000, 50, 120, 4
UNDER, SILENT = f"status={UNDER_WAY}", f"status={CUT_OFF}"
#: (key, title, class) of what is told of a run.
FIELDS = (
    ("state", "Status", "long"), ("time", "Time", "number"), ("flops", "FLOPs", "number"), ("bops", "BOPs", "number"),
    ("energy", "Energy", "number"), ("metrics", "Metrics", "long"), ("points", "FLOPs over time", "long"),
    ("written", "Written", "long"),
)  # fmt: skip


@dataclass
class _Seen:
    """What was known of a run when its file was last read."""

    header: Header
    totals: Mapping[str, Any] = field(default_factory=dict)
    points: list[tuple[float, int]] = field(default_factory=list)
    ended: float | None = None
    gone: bool = False  # its process is, while its file is not closed


class Live:
    """Remembers from look to look, and prices a run only when its file was written anew. The files of runs under way
    hold no sums: their journal has no time to price."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.silent = 0
        self._seen: dict[str, _Seen] = {}
        self._lock = threading.Lock()

    def look(self) -> list[dict[str, str]]:
        with self._lock:
            index = self.catalog.look()
            found = index.select([UNDER], limit=_LOOKED)
            going = {one.id: one for one in found if self._is_going(one)}
            self.silent = index.count([SILENT]) + len(found) - len(going)
            for id in [id for id in self._seen if id not in going]:
                self._end(id)
            for id, header in list(going.items())[:_SHOWN]:
                self._update(id, header)
            order = sorted(self._seen.values(), key=lambda one: (one.ended is not None, one.header.started))
            return [_told(one) for one in order]

    def _is_going(self, header: Header) -> bool:
        """A process that is gone may have closed its file just now: the next look tells."""
        seen = self._seen.get(header.id)
        if state_of(header) == UNDER_WAY:
            return True
        before = seen is not None and seen.gone
        if seen is not None:
            seen.gone = True
        return seen is not None and not before

    def _update(self, id: str, header: Header) -> None:
        seen = self._seen.get(id)
        if seen is not None and seen.header.seconds == header.seconds and seen.header.status == header.status:
            return
        seen = self._seen.setdefault(id, _Seen(header))
        seen.header = header
        try:
            known = (
                header.summary if header.summary.get("totals") else summary(load(header.path), self.catalog.settings)
            )
        except (BitwattError, OSError):  # gone, or written anew just now: the next look sees it
            return
        seen.totals = known
        seen.points = _thinned([*seen.points, (header.seconds, int(known["totals"].get("flops", 0)))])

    def _end(self, id: str) -> None:
        """It has ended, was removed, or is silent."""
        seen = self._seen[id]
        try:
            header = self.catalog.header(id)
        except BitwattError:
            del self._seen[id]
            return
        now = time.monotonic()
        if header.status == UNDER_WAY or (seen.ended is not None and now - seen.ended > ENDED_S):
            del self._seen[id]
            return
        seen.ended = seen.ended or now
        self._update(id, header)


def _thinned(points: list[tuple[float, int]]) -> list[tuple[float, int]]:
    return points if len(points) <= _POINTS else [*points[:-1:2], points[-1]]


def _told(seen: _Seen) -> dict[str, str]:
    header, totals = seen.header, seen.totals.get("totals", {})
    amount, how = seen.totals.get("energy_j"), seen.totals.get("energy_how")
    metrics = [
        f"{on_terminal(name)[:40]} {told['last']:.4g}"
        for name, told in header.about.metrics.items()
        if told.get("last") is not None
    ]
    return {
        "id": header.id,
        "name": on_terminal(header.name or header.id)[:120],
        "url": url_of_run(header.id),
        "state": on_terminal(header.status)[:80],
        "time": format_duration(float(f"{header.seconds:.3g}") if header.seconds < 60 else header.seconds),
        "flops": format_count(totals["flops"], "FLOP") if "flops" in totals else "",
        "bops": format_count(totals["bops"], "BOP") if "bops" in totals else "",
        "energy": cells.joules(amount, how) if amount else "",
        "metrics": ", ".join(metrics[:_METRICS]),
        "points": _line(seen.points),
        "written": f"{written_at(header):%H:%M:%S} UTC",
    }


def _line(points: list[tuple[float, int]]) -> str:
    """For a polyline in a box of 100 by 24."""
    if len(points) < 2 or not points[-1][1]:
        return ""
    first, last, top = points[0][0], points[-1][0], max(n for _, n in points)
    return " ".join(f"{100 * (at - first) / ((last - first) or 1):.1f},{23 - 22 * n / top:.1f}" for at, n in points)


def live_page(live: Live) -> str:
    runs = live.look()
    heads = "".join(
        f'<th scope="col" role="columnheader" class="{kind if kind == "number" else ""}">{title}</th>'
        for _, title, kind in FIELDS
    )
    first = '<th scope="col" role="columnheader">Run</th>'
    table = lines_of("Runs under way", first + heads, "".join(map(_row, runs)))
    fields = escape(json.dumps(FIELDS))
    empty = note("Nothing is under way. A run appears here a few seconds after: bitwatt run script.py")
    body = (
        f'<div id="none"{" hidden" if runs else ""}>{empty}</div>'
        f'<div data-stream="{address("/api/live")}" data-fields="{fields}"{"" if runs else " hidden"}>{table}</div>'
        '<p id="state" class="quiet"></p><p id="said" class="hidden" role="status"></p>'
        '<noscript><p class="quiet">Without scripts this page is loaded anew every ten seconds.</p></noscript>'
    )
    if live.silent:
        to = url("/", [("q", quoted(SILENT))])
        told = f"{live.silent:,} more {'is' if live.silent == 1 else 'are'} marked as under way, but silent for long: "
        body += f'<p class="quiet">{told}{link(to, "probably killed")}</p>'
    head = "<h1>Live</h1>" + note("Runs as they happen: each is written every few seconds while it goes on.")
    return framed(Parts("Live", head, [("live", "Under way", body)]), at="Live", broad=True, refresh=10)


def _row(run: dict[str, str]) -> str:
    cells = "".join(
        f'<td role="cell" class="{kind}" data-field="{name}" data-head="{title}">'
        f"{_spark(run[name]) if name == 'points' else escape(run[name])}</td>"
        for name, title, kind in FIELDS
    )
    first = f'<th scope="row" role="rowheader">{link(run["url"], run["name"])}</th>'
    known = f'data-id="{escape(run["id"])}" data-state="{escape(run["state"])}"'
    return f'<tr role="row" {known}>{first}{cells}</tr>'


def _spark(points: str) -> str:
    line = f'<polyline points="{points}"/>'
    return f'<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">{line}</svg>'
