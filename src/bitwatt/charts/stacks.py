"""Rows that are each 100 %, in pieces: what share every phase, or every number format, has of several quantities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bitwatt.charts.chart import INK, ON_COLOR, SAID, SOFT, WIDE, Chart, Spec, beside, given, lite
from bitwatt.units import format_percent

_ROW = 44
#: Pixels of a letter, and the part of the width that bars fill.
_LETTER, _FILLED = 7.2, 0.85


@dataclass(frozen=True, slots=True)
class Piece:
    """`shown` is the amount as people read it. `color` fills it."""

    name: str
    amount: float
    shown: str
    color: str


@dataclass(frozen=True, slots=True)
class Stack:
    """One row."""

    name: str
    pieces: tuple[Piece, ...]

    @property
    def whole(self) -> float:
        return sum(piece.amount for piece in self.pieces)


def stacks(title: str, rows: Sequence[Stack], *, width: int = WIDE) -> Chart:
    drawn = [row for row in rows if row.whole > 0]
    values: list[Spec] = []
    for row in drawn:
        begin = 0.0
        for piece in row.pieces:
            share = piece.amount / row.whole
            if share > 0:
                values.append(
                    {
                        "row": row.name, "begin": begin, "end": begin + share, "middle": begin + share / 2,
                        "color": piece.color, "label": _label(piece.name, share, width),
                        "said": f"{row.name}, {piece.name}: {piece.shown}, {format_percent(share)}",
                    }
                )  # fmt: skip
                begin += share
    said = "; ".join(f"{row.name}: {_told(row)}" for row in drawn)
    there = {piece.name for row in drawn for piece in row.pieces if piece.amount > 0}
    legend = {piece.name: piece.color for row in drawn for piece in row.pieces if piece.name in there}
    wide = width >= WIDE
    row_axis = {
        "labelColor": INK,
        "labelFontSize": 13,
        "ticks": False,
        "domain": False,
        "labelPadding": 8,
        "labelLimit": 220,
    } | ({"minExtent": beside(row.name for row in drawn)} if wide else {"labels": False})
    y: Spec = {"field": "row", "type": "nominal", "sort": None, "title": None, "axis": row_axis,
               "scale": {"paddingInner": 0.25 if wide else 0.5, "paddingOuter": 0.05}}  # fmt: skip
    x: Spec = {"field": "begin", "type": "quantitative", "axis": None, "scale": {"domain": [0, 1], "nice": False}}
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "stroke": "var(--card)", "strokeWidth": 1.5},
            "encoding": {"x": x, "x2": {"field": "end"}, "y": y,
                         "fill": {"field": "color", "type": "nominal", "scale": None}, **SAID},
        },
        {
            "mark": {"type": "text", "aria": False, "baseline": "middle", "color": ON_COLOR},
            "encoding": {"x": {**x, "field": "middle"}, "y": y, "text": {"field": "label"}},
        },
    ]  # fmt: skip
    if not wide:  # a phone has no room for names beside the rows: they stand above them
        names = [{"row": row.name} for row in drawn]
        above: Spec = {"type": "text", "aria": False, "align": "left", "baseline": "bottom", "color": SOFT, "x": 0}
        layers.append({"data": given("names", names), "mark": above | {"yOffset": -16},
                       "encoding": {"y": y, "text": {"field": "row"}}})  # fmt: skip
    height = len(drawn) * (_ROW if wide else 56)
    spec = lite(title, said, width, height, data=given("pieces", values), layer=layers)
    return Chart(title, said, spec, tuple(legend.items()))


def _label(name: str, share: float, width: int) -> str:
    """As much as fits: name and share, or the share, or nothing."""
    room, short = share * width * _FILLED, format_percent(share)
    whole = f"{name} {short}"
    return next((text for text in (whole, short) if _LETTER * len(text) + 8 <= room), "")


def _told(row: Stack) -> str:
    known = [piece for piece in row.pieces if piece.amount > 0]
    return ", ".join(f"{piece.name} {format_percent(piece.amount / row.whole)}" for piece in known[:6])
