"""Specifications drawn by Vega, which vl-convert brings inside its Python package: nothing is fetched."""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import re
from collections.abc import Mapping
from typing import Any

from bitwatt.charts.chart import Chart
from bitwatt.errors import BitwattError

HOW_TO_GET = "Charts need Vega: pip install 'bitwatt[charts]'"
#: A longer text is cut: nobody reads it in a chart.
_LONGEST = 300
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@functools.cache
def available() -> bool:
    return importlib.util.find_spec("vl_convert") is not None


def _vega() -> Any:
    """Its engine is a thread that a forked process has not got, and would wait for without end."""
    if not available():
        raise BitwattError(HOW_TO_GET)
    if _began_in() != os.getpid():
        raise BitwattError("charts cannot be drawn in a process that was forked after its parent drew some")
    import vl_convert

    return vl_convert


@functools.cache
def _began_in() -> int:
    return os.getpid()


def svg(chart: Chart) -> str:
    """The chart as inline svg, with a label for each mark and no script, style or outside resource."""
    vega, spec = _vega(), clean(chart.spec)
    draw = vega.vegalite_to_svg if "vega-lite" in spec["$schema"] else vega.vega_to_svg
    drawn: str = draw(spec, allowed_base_urls=[])
    return drawn.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1).replace(
        ' xmlns:xlink="http://www.w3.org/1999/xlink"', "", 1
    )


def clean(value: Any) -> Any:
    """A specification that can be drawn and sent. Vega's measure of text ends the process at a character that XML does
    not know, so none gets there; JSON has no infinity, and JavaScript no large integers."""
    if isinstance(value, str):
        text = _NOT_XML.sub("\ufffd", value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if isinstance(value, Mapping):
        return {name: clean(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner) for inner in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return (value if abs(value) < 2**53 else float(value)) if math.isfinite(value) else None
