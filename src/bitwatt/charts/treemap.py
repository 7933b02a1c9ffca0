"""Places of a model as tiles, each as large as its share, beside the others of its block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bitwatt.charts.chart import AXIS, FONT, MUTED, ON_COLOR, SOFT, WIDE, Chart, Spec, color
from bitwatt.units import format_count, format_percent

#: Tiles that are drawn one by one, classes that have a colour, and blocks up to which they have their name above.
_TILES, _CLASSES, _NAMED = {True: 240, False: 90}, 7, {True: 36, False: 9}
_HEAD = 17
#: Above this share, a class tells nothing apart.
_ALIKE = 0.8
#: Of a tile's width, what text may fill: the reader's font may be wider than the one Vega measures.
_FITS = 0.86


@dataclass(frozen=True, slots=True)
class Tile:
    """A place by its path, steps apart by dots; its class; and how much it took."""

    path: str
    kind: str
    amount: float


def treemap(title: str, tiles: Sequence[Tile], unit: str, *, width: int = WIDE) -> Chart:
    """`unit` is FLOP, BOP, B and the like."""
    wide = width >= WIDE
    known = sorted((tile for tile in tiles if tile.amount > 0), key=lambda tile: -tile.amount)
    whole = sum(tile.amount for tile in known)
    group = _grouping(known)
    kinds = _colors(known, group)
    blocks: dict[str, list[Tile]] = {}
    for tile in known[: _TILES[wide]]:
        blocks.setdefault(block_of(tile.path), []).append(tile)
    rest = known[_TILES[wide] :]

    def said(name: str, kind: str, amount: float) -> str:
        about = f" ({kind})" if kind else ""
        shown = format_count(float(f"{amount:.3g}"), unit)
        return f"{name}{about}: {shown}, {format_percent(amount / whole)} of all"

    nodes: list[Spec] = [{"id": 0, "parent": None}]
    for block, inside in blocks.items():
        head = len(nodes) if inside[0].path != block else 0  # what is in no block stands for itself
        if head:
            nodes.append({"id": head, "parent": 0, "name": block})
        for tile in inside:
            nodes.append({
                "id": len(nodes), "parent": head, "name": name_of(tile.path) or "no layer",
                "said": said(tile.path or "no layer", tile.kind, tile.amount), "value": tile.amount,
                "share": format_percent(tile.amount / whole), "fill": kinds.get(group(tile), MUTED),
            })  # fmt: skip
    if rest:
        amount = sum(tile.amount for tile in rest)
        name = f"{len(rest):,} more"
        nodes.append({"id": len(nodes), "parent": 0, "name": name, "said": said(name, "", amount), "value": amount,
                      "share": format_percent(amount / whole), "fill": MUTED})  # fmt: skip
    legend = tuple(kinds.items())
    if rest or any(group(tile) not in kinds for tile in known):
        legend += (("other", MUTED),)
    told = ", ".join(f"{tile.path or 'no layer'} {format_percent(tile.amount / whole)}" for tile in known[:3])
    about = f"{format_count(len(known))} places; the largest: {told}" if known else "nothing to show"
    named = len(blocks) <= _NAMED[wide]
    spec = _spec(f"{title}. {about}", nodes, width, 460 if wide else 420, _HEAD if named else 2)
    return Chart(title, about, spec, legend)


def block_of(path: str) -> str:
    """What a place is part of: as far as the first numbered step where more comes after it, else the place's parent."""
    steps = path.split(".")
    for i, step in enumerate(steps[:-1]):
        if step.isdecimal():
            return ".".join(steps[: i + 1])
    return ".".join(steps[:-1]) or path


def name_of(path: str) -> str:
    """What is left of it inside its block."""
    return path[len(block_of(path)) :].lstrip(".") or path


def _grouping(tiles: Sequence[Tile]) -> Callable[[Tile], str]:
    """What tiles of one colour share: their class, or where nearly all are of one, their name in their block."""
    sums: dict[str, float] = {}
    for tile in tiles:
        sums[tile.kind] = sums.get(tile.kind, 0) + tile.amount
    alike = max(sums.values(), default=0) > _ALIKE * sum(sums.values())
    return (lambda tile: name_of(tile.path)) if alike else (lambda tile: tile.kind)


def _colors(tiles: Sequence[Tile], group: Callable[[Tile], str]) -> dict[str, str]:
    sums: dict[str, float] = {}
    for tile in tiles:
        sums[group(tile)] = sums.get(group(tile), 0) + tile.amount
    ordered = [name for name in sorted(sums, key=lambda name: -sums[name]) if name]
    return {name: color(i) for i, name in enumerate(ordered[:_CLASSES])}


def _spec(about: str, nodes: list[Spec], width: int, height: int, head: int) -> Spec:
    """The top of the outermost tile, which has no name, is moved out of the picture."""
    wide, high = "datum.x1 - datum.x0", "datum.y1 - datum.y0"

    def place(**more: Spec) -> Spec:
        return {"x": {"field": "x0"}, "x2": {"field": "x1"}, "y": {"signal": f"datum.y0 - {head}"},
                "y2": {"signal": f"datum.y1 - {head}"}, **more}  # fmt: skip

    def label(shown: str, text: Spec, dy: int, weight: int = 400) -> Spec:
        return {
            "type": "text", "aria": False, "interactive": False, "from": {"data": "leaves"},
            "encode": {"update": {
                "x": {"signal": "datum.x0 + 6"}, "y": {"signal": f"datum.y0 - {head} + {dy}"},
                "text": [{"test": shown, **text}, {"value": ""}], "limit": {"signal": f"{_FITS} * ({wide}) - 8"},
                "fill": {"value": ON_COLOR}, "fontSize": {"value": 12}, "fontWeight": {"value": weight},
                "baseline": {"value": "top"},
            }},
        }  # fmt: skip

    heads: Spec = {
        "type": "text", "aria": False, "interactive": False, "from": {"data": "blocks"},
        "encode": {"update": {
            "x": {"signal": "datum.x0 + 4"}, "y": {"signal": f"datum.y0 - {head} + 3"},
            "text": [{"test": f"{wide} > 34 && {high} > 30", "field": "name"}, {"value": ""}],
            "limit": {"signal": f"{_FITS} * ({wide}) - 4"}, "fill": {"value": SOFT}, "fontSize": {"value": 11},
            "baseline": {"value": "top"},
        }},
    }  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega/v6.json",
        "description": about,
        "width": width, "height": height, "padding": 0, "background": None,
        "autosize": "none",
        "config": {"axis": AXIS, "text": {"font": FONT}},
        "data": [
            {"name": "nodes", "values": nodes, "transform": [
                {"type": "stratify", "key": "id", "parentKey": "parent"},
                {"type": "treemap", "field": "value", "sort": {"field": "value", "order": "descending"},
                 "method": "squarify", "ratio": 1.5, "round": True, "paddingInner": 2, "paddingTop": head,
                 "size": [width, height + head]},
            ]},
            {"name": "leaves", "source": "nodes", "transform": [
                {"type": "filter", "expr": "isValid(datum.value) && datum.x1 > datum.x0 && datum.y1 > datum.y0"}]},
            {"name": "blocks", "source": "nodes", "transform": [
                {"type": "filter", "expr": "datum.parent === 0 && !isValid(datum.value)"}]},
        ],
        "marks": [
            {"type": "rect", "from": {"data": "leaves"}, "encode": {"update": place(
                fill={"field": "fill"}, description={"field": "said"},
                tooltip={"field": "said"})}},
            label(f"{wide} > 44 && {high} > 20", {"field": "name"}, 5, 500),
            label(f"{wide} > 50 && {high} > 38", {"field": "share"}, 20),
            *([heads] if head == _HEAD else []),
        ],
    }  # fmt: skip
