"""The page of one run: the sections of its report, and ways on from here."""

from __future__ import annotations

from urllib.parse import quote

from bitwatt.dashboard.asking import quoted
from bitwatt.dashboard.catalog import TEXT, Catalog, legible
from bitwatt.dashboard.frame import framed, link, url, url_of_deployment, url_of_job
from bitwatt.dashboard.prefix import address
from bitwatt.deploy.telling.kept import KIND
from bitwatt.errors import BitwattError
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.ranks.silence import state_of
from bitwatt.reports.html.run import parts_of
from bitwatt.reports.model import View
from bitwatt.store import Header, load


def run_page(catalog: Catalog, id: str) -> str:
    """Drawn once for each state that the run's file was in."""
    header = catalog.header(id)
    before = _before(catalog, header)
    key = ("run", address("/"), repr(header), "" if before is None else before.id)
    return catalog.pages.get(key, lambda: _drawn(catalog, header, before))


def _drawn(catalog: Catalog, header: Header, before: Header | None) -> str:
    parts = parts_of(View(legible(load(header.path)), settings=catalog.settings))
    return framed(parts._replace(head=parts.head + _tools(header, before)), at="")


def _tools(header: Header, before: Header | None) -> str:
    found = [link(address("/live"), "Watch it", "button")] if state_of(header) == UNDER_WAY else []
    if before is not None:
        to = url("/compare", [("run", before.id), ("run", header.id)])
        found.append(link(to, "Compare with the one before", "button"))
    if 0 < len(header.name) <= TEXT:
        found.append(link(url("/", [("q", quoted(f"name={header.name}"))]), "All of this name", "button"))
    if header.rank is not None:
        found.append(link(url_of_job(header.rank.job, header.name), "All ranks", "button"))
    if header.about.parent_kind == KIND:
        found.append(link(url_of_deployment(header.id), "The study", "button"))
    found.append(link(address(f"/api/runs/{quote(header.id, safe='')}"), "JSON", "button"))
    return f'<p class="tools">{"".join(found)}</p>'


def _before(catalog: Catalog, header: Header) -> Header | None:
    """The run of the same name that was begun before this one."""
    if not header.name:
        return None
    try:
        found = catalog.index.select([f"name= {header.name}", f"started< {header.started}"], limit=2)
    except BitwattError:  # a time or name that filters cannot say
        return None
    return next((one for one in found if one.id != header.id and one.name == header.name), None)
