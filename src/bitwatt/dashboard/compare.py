"""The page of several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bitwatt.comparing import Comparison
from bitwatt.comparing.choosing import repeating
from bitwatt.comparing.page import parts_of
from bitwatt.comparing.sides import sides
from bitwatt.dashboard.catalog import Catalog, legible
from bitwatt.dashboard.frame import alert, framed, link, url, url_of_run
from bitwatt.dashboard.prefix import address
from bitwatt.errors import BitwattError
from bitwatt.reports.html.layout import Parts

#: Runs that are compared at once.
MOST = 12


def compared(catalog: Catalog, ids: Sequence[str], *, repeat: bool = False, metric: str = "") -> Comparison:
    """The first is what the others are held against. With `repeat`, each with the kept runs that repeat it."""
    chosen = list(dict.fromkeys(ids))
    if len(chosen) < 2:
        raise BitwattError("mark two runs or more to compare them")
    if len(chosen) > MOST:
        raise BitwattError(f"{len(chosen)} runs do not fit side by side: {MOST} at most")
    found = [catalog.run(id) for id in chosen]
    groups = [[run, *(repeating(run, catalog.index.place.root) if repeat else ())] for run in found]
    shown = [[legible(run) for run in group] for group in groups]
    return Comparison(sides(shown), metric=metric or None, settings=catalog.settings)


def compare_page(
    catalog: Catalog, ids: Sequence[str], *, repeat: bool = False, metric: str = "", oldest_first: bool = False
) -> tuple[int, str]:
    """`oldest_first` is for runs that were marked in a list, in whatever order that was."""
    try:
        if oldest_first and len(ids) <= MOST:
            ids = [one.id for one in sorted(map(catalog.header, ids), key=lambda one: one.started)]
        comparison = compared(catalog, ids, repeat=repeat, metric=metric)
        parts = parts_of(comparison)
    except BitwattError as error:
        back = f"{alert(str(error))}<p>{link(address('/'), 'Choose runs', 'button')}</p>"
        return 400, framed(Parts("Comparison", "<h1>Comparison</h1>", [("none", "No comparison", back)]), at="")
    return 200, framed(parts._replace(head=parts.head + _tools(comparison, ids, repeat, metric)), at="")


def _tools(comparison: Comparison, ids: Sequence[str], repeat: bool, metric: str) -> str:
    runs = [("run", id) for id in dict.fromkeys(ids)]
    links = [link(url_of_run(side.run.id), f"Open {side.label}", "button") for side in comparison.sides]
    turned = url("/compare", [*reversed(runs), ("metric", metric), ("repeat", "yes" if repeat else "")])
    links.append(link(turned, "The other way round", "button"))
    links.append(link(url("/api/compare", [*runs, ("metric", metric)]), "JSON", "button"))
    known = dict.fromkeys(name for side in comparison.sides for name in side.run.about.metrics)
    options = "".join(
        f'<option value="{escape(name)}"{" selected" if name == metric else ""}>{escape(name[:80]) or "none"}</option>'
        for name in ["", *known]
    )
    quality = (
        f'<div><label for="metric">Quality</label><select id="metric" name="metric">{options}</select></div>'
        if known
        else ""
    )
    hidden = "".join(f'<input type="hidden" name="run" value="{escape(id)}">' for _, id in runs)
    form = (
        f'<form class="chosen tools" method="get" action="{address("/compare")}">{hidden}{quality}'
        f'<label><input type="checkbox" name="repeat" value="yes"{" checked" if repeat else ""}> '
        'with the runs that repeat each</label><button type="submit">Compare</button></form>'
    )
    return f'<p class="tools">{"".join(links)}</p>{form}'
