"""Pages of deployment studies: a list of them, and one of them with its trade-offs."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from bitwatt.dashboard.catalog import TEXT, Catalog
from bitwatt.dashboard.frame import framed, lines_of, link, url_of_deployment, url_of_run
from bitwatt.dashboard.prefix import address
from bitwatt.deploy.telling.kept import KIND, findings_of
from bitwatt.deploy.telling.page import parts_of
from bitwatt.harmless import on_terminal
from bitwatt.reports.html.layout import Parts, note
from bitwatt.store import Header, load
from bitwatt.units import format_duration

_LISTED = 100
_HEADS = ("Model", "Take", "Latency per row", "Quality", "Began", "Took")


def deployments_page(catalog: Catalog) -> str:
    found = catalog.look().select([f"parent_kind={KIND}"], limit=_LISTED + 1)
    rows = "".join(map(_row, found[:_LISTED]))
    heads = "".join(f'<th scope="col" role="columnheader">{head}</th>' for head in _HEADS)
    empty = note("No study is kept here. Make one with: bitwatt deploy model.joblib --data test.npz")
    more = note(f"The newest {_LISTED}.") if len(found) > _LISTED else ""
    head = "<h1>Deployments</h1>" + note("Ways to deploy one trained model, measured side by side.")
    inside = lines_of("Studies", heads, rows) + more if rows else empty
    return framed(Parts("Deployments", head, [("studies", "Studies", inside)]), at="Deployments", broad=True)


def _row(header: Header) -> str:
    about = header.about

    def last(name: str) -> float | None:
        return about.metrics.get(name, {}).get("last")

    latency, quality = last("latency_ms_per_sample"), last("accuracy")
    cells = (
        on_terminal(str(about.parameters.get("recommended") or "none"))[:120],
        "" if latency is None else format_duration(float(f"{latency / 1000:.3g}")),
        "" if quality is None else f"{quality:.4g}",
        on_terminal(header.started)[:19].replace("T", " "),
        format_duration(float(f"{header.seconds:.3g}")),
    )
    told = "".join(
        f'<td role="cell" class="long" data-head="{head}">{escape(text)}</td>'
        for head, text in zip(_HEADS[1:], cells, strict=True)
    )
    name = link(url_of_deployment(header.id), on_terminal(header.name or header.id)[:120])
    first = f"{name}<small>{escape(on_terminal(header.id)[:TEXT])}</small>"
    return f'<tr role="row"><th scope="row" role="rowheader">{first}</th>{told}</tr>'


def deployment_page(catalog: Catalog, id: str) -> str:
    """Drawn once for each state that the run's file was in."""
    header = catalog.header(id)
    return catalog.pages.get(("deployment", address("/"), repr(header)), lambda: _drawn(header))


def _drawn(header: Header) -> str:
    parts = parts_of(findings_of(load(header.path)))
    json = address(f"/api/deployments/{quote(header.id, safe='')}")
    tools = link(url_of_run(header.id), "Its run", "button") + link(json, "JSON", "button")
    return framed(parts._replace(head=f'{parts.head}<p class="tools">{tools}</p>'), at="Deployments")
