"""The form above the runs: filters, an order, and the columns to show."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bitwatt.dashboard.asking import Asked
from bitwatt.dashboard.frame import link
from bitwatt.dashboard.prefix import address
from bitwatt.errors import BitwattError
from bitwatt.harmless import on_terminal
from bitwatt.reports.html.layout import note
from bitwatt.store.cells import title
from bitwatt.store.filters import FAMILIES, FIELDS, STATUS, TEXT, TIME, field_of
from bitwatt.store.index import Index

#: Columns that can be ticked, letters of their names, and of a column's title.
_OFFERED, _NAME, _TITLE = 150, 60, 28
_EXAMPLES = ("name~resnet", "flops>1e12", "energy>1kJ", "status=failed", "since=7d", *FAMILIES)


def search(index: Index, asked: Asked, columns: Sequence[str]) -> str:
    hints = "".join(f'<option value="{escape(one)}"></option>' for one in _EXAMPLES)
    return (
        f'<form class="search" method="get" action="{address("/")}" role="search">'
        '<div class="row"><label class="hidden" for="q">Filters</label>'
        f'<input id="q" name="q" type="search" value="{escape(asked.text)}" list="examples" spellcheck="false" '
        'autocapitalize="off" placeholder="name~resnet flops>1e12 tag:team=vision">'
        f'<datalist id="examples">{hints}</datalist><div class="pair"><label for="sort">by</label>'
        f'<select id="sort" name="sort">{_orders(asked, columns)}</select></div>'
        f'<button type="submit">Show</button></div>{_hidden("column", asked.columns)}</form>'
        f'<div class="search">{_chooser(index, asked, columns)}{_help()}</div>'
    )


def _hidden(name: str, values: Sequence[str]) -> str:
    return "".join(f'<input type="hidden" name="{name}" value="{escape(value)}">' for value in values if value)


def _orders(asked: Asked, columns: Sequence[str]) -> str:
    names = dict.fromkeys(["started", "name", *(name for name in columns if name != "tags")])
    values = dict.fromkeys([*(sign + name for name in names for sign in ("-", "")), asked.sort])
    return "".join(
        f'<option value="{escape(value)}"{" selected" if value == asked.sort else ""}>{escape(_order(value))}</option>'
        for value in values
    )


def _order(value: str) -> str:
    name = value.removeprefix("-")
    ways = ("most first", "least first") if is_number(name) else ("Z to A", "A to Z")
    ways = ("newest first", "oldest first") if name == "started" else ways
    return f"{titled(name)}, {ways[0] if value.startswith('-') else ways[1]}"


def is_number(name: str) -> bool:
    """Whether a column is flush right, and its largest first."""
    try:
        return field_of(name).kind not in (TEXT, STATUS, TIME)
    except BitwattError:
        return False


def titled(name: str) -> str:
    text = {"flops": "FLOPs", "bops": "BOPs", "macs": "MACs"}.get(name) or title(name)
    return text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"


def _chooser(index: Index, asked: Asked, columns: Sequence[str]) -> str:
    """A form of its own: who filters has not chosen columns by that."""
    known = dict.fromkeys([*asked.columns, "tags", *index.columns()])
    known.pop("name", None)
    offered = list(known)[:_OFFERED]
    boxes = "".join(
        f'<label><input type="checkbox" name="column" value="{escape(name)}"{" checked" if name in columns else ""}>'
        f"{escape(on_terminal(name)[:_NAME])}</label>"
        for name in offered
    )
    more = note(f"{len(known) - len(offered):,} more can be filtered by.") if len(known) > len(offered) else ""
    usual = link(asked.url(columns=(), start=0), "The usual ones", "button") if asked.columns else ""
    return (
        f'<details><summary>Columns</summary><form method="get" action="{address("/")}">'
        f"{_hidden('q', [asked.text])}{_hidden('sort', [asked.sort])}"
        f'<fieldset><legend class="hidden">Columns</legend><div class="boxes">{boxes}</div></fieldset>{more}'
        f'<p class="tools"><button type="submit">Show these</button>{usual}</p></form></details>'
    )


def _help() -> str:
    told = (
        "A filter is a field, a sign and a value; all of them must be fulfilled. Signs: = != < <= > >= and ~ (has it "
        "inside), !~. A word alone is looked for in names, ids and tags. Put what has spaces in quotes."
    )
    examples = "".join(f"<li><code>{escape(one)}</code></li>" for one in _EXAMPLES)
    fields = note("Fields: " + ", ".join(FIELDS))
    return (
        f'<details><summary>How to filter</summary>{note(told)}<ul class="examples">{examples}</ul>{fields}</details>'
    )
