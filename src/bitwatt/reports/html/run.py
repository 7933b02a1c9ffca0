"""The page of one run: its sections in their order, each there only where the run has something to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from bitwatt.reports.blocks import blocks
from bitwatt.reports.html import charted
from bitwatt.reports.html.about import about, metrics
from bitwatt.reports.html.known import known
from bitwatt.reports.html.layout import Parts, facts, how_to_get_charts, note, page, plain_table
from bitwatt.reports.html.paint import Paint
from bitwatt.reports.html.parts import cards, energy, formula, header, notes, table
from bitwatt.reports.model import View
from bitwatt.reports.tables import tables
from bitwatt.units import format_duration

Section = tuple[str, str, str]
#: Tables by the section they stand in.
_PLACES = {
    "Phases": "phases", "Layers": "layers", "Precisions": "precision", "Weights": "precision",
    "Effective and executed": "precision", "Ops": "ops",
}  # fmt: skip
_TITLES = {"phases": "Phases", "layers": "Layers", "precision": "Precision", "ops": "Ops"}


def page_of(view: View, by: str | None = None) -> str:
    """With `by`, that table alone."""
    return page(*parts_of(view, by))


def parts_of(view: View, by: str | None = None) -> Parts:
    head = header(view) + cards(view) + how_to_get_charts()
    return Parts(view.run.name or view.run.id, head, list(_sections(view, by)), notes(view) + formula(view))


def _sections(view: View, by: str | None) -> Iterator[Section]:
    paint = Paint(view)
    made = _tables(view, by, paint)
    charts: dict[str, Callable[[View, Paint], str]] = {
        "phases": charted.phases, "layers": charted.layers, "precision": charted.precision,
    }  # fmt: skip
    for id in ("phases", "layers", "precision"):
        if id in made:
            yield id, _TITLES[id], charts[id](view, paint) + made[id]
    if by is None:
        yield "roofline", "Roofline", charted.roofline(view, paint)
        if view.energy is not None:
            yield "energy", "Energy", energy(view.energy, charted.power(view, paint))
    if "ops" in made:
        yield "ops", _TITLES["ops"], made["ops"]
    if by is None:
        yield from _rest(view)


def _tables(view: View, by: str | None, paint: Paint) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in tables(view, by):
        place = _PLACES[one.title]
        name = "" if one.title in (_TITLES[place], "Precisions") else f"<h3>{escape(one.title)}</h3>"
        found[place] = found.get(place, "") + name + table(one, paint)
    return found


def _rest(view: View) -> Iterator[Section]:
    if told := metrics(view):
        yield "metrics", "Metrics", told
    for block in blocks(view):
        chart = charted.latencies(view) if block.key == "requests" else ""
        told = f'<p class="energy">{escape(block.headline)}</p>{chart}{facts(block.facts)}'
        yield block.key.replace("_", "-"), block.title, told
    if view.run.rank is not None:
        yield "rank", "Rank", _rank(view)
    yield "missing", "Missing rules", _missing(view)
    yield "sources", "How each number came", known(view)
    if told := about(view):
        yield "about", "About", told
    if view.run.machine.facts:
        yield "machine", "Machine", facts(view.run.machine.facts.items())
    yield "settings", "Settings", _settings(view)


def _rank(view: View) -> str:
    rank = view.run.rank
    assert rank is not None
    told = [("rank", f"{rank.rank} of {rank.world}"), ("node", rank.node), ("job", rank.job)]
    told += [(axis.kind, f"ranks {axis.ranks} ({axis.source})") for axis in rank.axes]
    told += [
        (f"in messages of {group}", format_duration(float(f"{spent:.3g}")))
        for group, spent in rank.comm_seconds.items()
    ]
    all_of_them = f"This page is of one process. All of them as one: bitwatt report --ranks {rank.job}"
    return note(all_of_them) + facts((name, text) for name, text in told if text)


def _missing(view: View) -> str:
    if not view.missing:
        return note("None: a rule covers every call that was seen.")
    rows = [(gap.op, f"{gap.calls:,}", gap.reason) for gap in view.missing]
    told = "These calls are in no sum. A rule is a few lines: see “Adding a rule” in the documentation."
    return note(told) + plain_table("Missing rules", ("Op", "Calls", "Why"), rows, (1,))


def _settings(view: View) -> str:
    """As they are now, which prices the run; and as they were when it was metered."""
    rows = [(name, *_placed(told), "now") for name, told in view.settings.told().items()]
    if view.run.meter is not None:
        rows += [(name, *_placed(told), "when metered") for name, told in view.run.meter.settings.items()]
    if not rows:
        return note("Nothing is set: no place, no price and no PUE is applied. See bitwatt.toml.")
    return plain_table("Settings", ("Setting", "Value", "From", "As it was"), rows)


def _placed(told: str) -> tuple[str, str]:
    value, bracket, place = told.removesuffix(")").rpartition(" (")
    return (value, place) if bracket else (told, "")
