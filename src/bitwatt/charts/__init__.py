"""Data -> a chart: one file for each. A chart is a Vega or Vega-Lite specification in which names are data and colours
are variables of the page; `svg` draws it without any script."""

from bitwatt.charts.bars import Bar, bars
from bitwatt.charts.chart import MUTED, NARROW, WIDE, Chart, color
from bitwatt.charts.drawing import HOW_TO_GET, available, clean, svg
from bitwatt.charts.histogram import Bin, histogram
from bitwatt.charts.lines import Series, lines
from bitwatt.charts.power import Span, power
from bitwatt.charts.roofline import Point, Roof, roofline
from bitwatt.charts.scatter import Dot, front, scatter
from bitwatt.charts.stacks import Piece, Stack, stacks
from bitwatt.charts.treemap import Tile, treemap

__all__ = [
    "HOW_TO_GET", "MUTED", "NARROW", "WIDE", "Bar", "Bin", "Chart", "Dot", "Piece", "Point", "Roof", "Series", "Span",
    "Stack", "Tile", "available", "bars", "clean", "color", "front", "histogram", "lines", "power", "roofline",
    "scatter", "stacks", "svg", "treemap",
]  # fmt: skip
