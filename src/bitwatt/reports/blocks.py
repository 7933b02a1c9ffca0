"""Parts of a report that only some runs have, alike for every format: a headline, some facts, and a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bitwatt.reports.model import View


@dataclass(frozen=True, slots=True)
class Block:
    """`key` is its name in JSON."""

    key: str
    title: str
    headline: str
    facts: tuple[tuple[str, str], ...]
    document: Mapping[str, Any]


def blocks(view: View, by: str | None = None) -> Iterator[Block]:
    """In the order of a report; none beside a single table."""
    from bitwatt.reports import against, beside, bounds, companions, requests, throughput

    for part in (bounds, requests, throughput, against, companions, beside):
        if by is None and (block := part.block(view)) is not None:
            yield block


def as_html(view: View, by: str | None) -> list[str]:
    return [
        f'<section><h2>{escape(block.title)}</h2><p class="energy">{escape(block.headline)}</p><dl class="facts">'
        + "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in block.facts)
        + "</dl></section>"
        for block in blocks(view, by)
    ]
