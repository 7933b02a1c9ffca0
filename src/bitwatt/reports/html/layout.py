"""Pages and what they are made of, for all that bitwatt writes or serves. Text is escaped here, once: arguments called
`html` are markup that another function of this kind made, all others are text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import NamedTuple

from bitwatt.charts import HOW_TO_GET, NARROW, WIDE, Chart, available, svg
from bitwatt.errors import BitwattError
from bitwatt.reports.html.script import SCRIPT
from bitwatt.reports.html.style import CHARTS, PAGE, STYLE

Facts = Iterable[tuple[str, str]]


class Parts(NamedTuple):
    """What a page is made of, for whoever has a frame of his own. `head` and `foot` are markup; a section is (id,
    title, markup)."""

    title: str
    head: str
    sections: list[tuple[str, str, str]]
    foot: str = ""


def page(title: str, head: str, sections: Sequence[tuple[str, str, str]], foot: str = "") -> str:
    """A whole document. `head` and `foot` are markup; a section is (id, title, markup). It may run our script and use
    our style, known by their hashes, and nothing else: a name that were taken for markup could load and run nothing."""
    style = STYLE + CHARTS + PAGE
    allowed = f"script-src {_hash(SCRIPT)}; style-src {_hash(style)}"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    links = "".join(f'<li><a href="#{escape(id)}">{escape(name)}</a></li>' for id, name, _ in sections)
    made = "\n".join(section(id, name, html) for id, name, html in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)} · bitwatt</title>\n<style>{style}</style>\n</head>\n"
        '<body class="bitwatt">\n<a class="skip" href="#content">Skip to the content</a>\n'
        f"<header>{head}</header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n'
        f'<main id="content" tabindex="-1">\n{made}\n</main>\n<footer>{foot}</footer>\n'
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def section(id: str, title: str, html: str) -> str:
    name = escape(id)
    head = f'<h2 id="{name}-title">{escape(title)}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{head}{html}</section>'


def figure(draw: Callable[[int], Chart], fallback: str = "") -> str:
    """A chart, drawn for a page and for a phone; the style shows one. `fallback` is markup to show where no charts can
    be drawn."""
    if not available():
        return fallback
    try:
        return _figure(draw(WIDE), draw(NARROW))
    except (
        BitwattError,
        ValueError,
        RuntimeError,
        ImportError,
    ) as error:  # of Vega: the numbers are in the tables all the same
        why = str(error).partition("\n")[0]
        return fallback + note(f"This chart could not be drawn: {why}")


def _figure(wide: Chart, narrow: Chart) -> str:
    keys = "".join(f"<li>{dot(color)}{escape(name)}</li>" for name, color in wide.legend)
    legend = f'<ul class="legend" aria-label="Colours">{keys}</ul>' if keys else ""
    drawn = "".join(
        f'<div class="{kind}">{_labelled(chart)}</div>' for kind, chart in (("wide", wide), ("narrow", narrow))
    )
    return f'<figure class="chart"><figcaption>{escape(wide.title)}</figcaption>{legend}{drawn}</figure>'


def _labelled(chart: Chart) -> str:
    """For whoever does not see it: that it is a chart, of what, and what it shows."""
    told = f'role="graphics-document document" aria-roledescription="chart" aria-label="{escape(chart.title)}" '
    opening, rest = svg(chart).split(">", 1)
    return f"{opening.replace('<svg ', f'<svg {told}', 1)}><desc>{escape(chart.about)}</desc>{rest}"


def switch(name: str, label: str, choices: Sequence[tuple[str, str]]) -> str:
    """Several figures of which one is shown: (name, markup). Works without script, by keyboard too."""
    if len(choices) < 2:
        return "".join(html for _, html in choices)
    buttons = "".join(
        f'<input type="radio" name="{escape(name)}" id="{escape(name)}-{i}"{" checked" if i == 0 else ""}>'
        f'<label for="{escape(name)}-{i}">{escape(choice)}</label>'
        for i, (choice, _) in enumerate(choices)
    )
    panels = "".join(f'<div class="panel">{html}</div>' for _, html in choices)
    return f'<div class="switch" role="radiogroup" aria-label="{escape(label)}">{buttons}{panels}</div>'


def dot(color: str) -> str:
    circle = f'<circle cx="4" cy="4" r="4" fill="{escape(color)}"/>'
    return f'<svg class="dot" viewBox="0 0 8 8" aria-hidden="true">{circle}</svg>'


def facts(pairs: Facts) -> str:
    told = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in pairs)
    return f'<dl class="facts">{told}</dl>' if told else ""


def plain_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (),
                badges: int | None = None) -> str:  # fmt: skip
    """Cells of text; the first of a row names it. `numbers` are the columns that are flush right, `badges` one of which
    a word is its class. On a phone every cell is a line of its own; roles keep it a table for those who hear it."""
    right = set(numbers)

    def cell(column: int, text: str) -> str:
        inside = f'<span class="badge {escape(text)}">{escape(text)}</span>' if column == badges else escape(text)
        if column == 0:
            return f'<th scope="row" role="rowheader">{inside}</th>'
        kind = "number" if column in right else "long"
        return f'<td role="cell" class="{kind}" data-head="{escape(heads[column])}">{inside}</td>'

    top = "".join(
        f'<th scope="col" role="columnheader" class="{"number" if i in right else ""}">{escape(head)}</th>'
        for i, head in enumerate(heads)
    )
    body = "".join(f'<tr role="row">{"".join(cell(i, text) for i, text in enumerate(row))}</tr>' for row in rows)
    group = 'role="rowgroup"'
    inside = f'<thead {group}><tr role="row">{top}</tr></thead><tbody {group}>{body}</tbody>'
    return scroll(caption, inside, 'class="lines" role="table"')


def scroll(caption: str, html: str, attributes: str = "") -> str:
    """A table that scrolls by itself where the screen is too narrow for it, by keyboard too."""
    name = escape(caption)
    return (
        f'<div class="scroll" role="group" aria-label="{name}" tabindex="0">'
        f'<table {attributes}><caption class="hidden">{name}</caption>{html}</table></div>'
    )


def note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def how_to_get_charts() -> str:
    """Nothing where they are there."""
    return "" if available() else note(f"{HOW_TO_GET}. The tables are the same.")
