"""Every chart is drawn, says what it shows, holds names as data, and brings nothing that a strict page refuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from bitwatt import charts
from bitwatt.charts import Dot, Piece, Point, Roof, Series, Span, Stack, Tile, color
from bitwatt.charts.chart import thinned
from bitwatt.charts.treemap import block_of, name_of
from showcase import HOSTILE
from showcase import every_chart as every

drawn = pytest.mark.skipif(not charts.available(), reason="charts are not installed")


@drawn
@pytest.mark.parametrize("width", [charts.WIDE, charts.NARROW])
def test_every_chart_is_drawn_at_its_width_and_labels_its_marks(width):
    for chart in every("a name", width):
        root = ET.fromstring(charts.svg(chart))
        assert float(root.get("width")) <= width + 1, chart.title
        marks = [one for one in root.iter() if one.get("role") == "graphics-symbol"]
        assert marks, chart.title
        assert all(one.get("aria-label") for one in marks)
        assert any("a name" in one.get("aria-label") for one in marks), chart.spec
        assert chart.about


@drawn
@pytest.mark.parametrize("name", [*HOSTILE, "x" * 20_000, "a\x00b\ud800", ""])
def test_names_are_data_whatever_they_are(name):
    for chart in every(name, charts.WIDE):
        text = charts.svg(chart)
        root = ET.fromstring(text)  # well-formed: no name broke out
        assert not {one.tag for one in root.iter()} & {"script", "style", "img", "image", "a", "foreignObject"}
        assert not any(
            key.startswith("on") or key in ("style", "href", "id") for one in root.iter() for key in one.attrib
        )
        assert len(text) < 60_000


@drawn
def test_a_drawing_needs_no_style_no_id_and_no_address():
    """What a page with a strict policy, and with many charts, could not have."""
    for chart in every("a", charts.WIDE):
        assert not re.search(r"style=|<style|url\(|https?:|\bid=", charts.svg(chart)), chart.spec


@drawn
def test_amounts_may_be_larger_than_javascript_counts_and_not_finite():
    tiles = [Tile("a", "A", 10**30), Tile("b", "B", 3 * 10**30)]
    assert "3 QFLOP, 75.0 % of all" in charts.svg(charts.treemap("t", tiles, "FLOP"))
    points = [(0.0, 1.0), (1.0, float("nan")), (2.0, float("inf")), (3.0, 2.0)]
    assert charts.svg(charts.lines("t", [Series("s", tuple(points))], "x", "y"))


@pytest.mark.parametrize(("least", "ticks"), [(0.4, [0.1, 1, 10, 100, 1000]), (200, None)])
def test_a_logarithmic_axis_over_several_powers_of_ten_has_a_line_for_each(least, ticks):
    chart = charts.lines("t", [Series("s", ((1, least), (2, 300.0), (3, 0.0)))], "x", "y", log=True)
    y = chart.spec["layer"][0]["encoding"]["y"]
    assert y["scale"] == {"type": "log"}
    assert y["axis"].get("values") == (None if ticks is None else pytest.approx(ticks))
    assert charts.svg(chart)


def test_a_specification_is_json_and_clean_makes_it_strict():
    for chart in every(HOSTILE[0], charts.NARROW):
        assert json.loads(json.dumps(charts.clean(chart.spec), allow_nan=False))
    told = charts.clean({"a": [float("inf"), 2**60, "\x1b[31m", True, None, 3]})
    assert told == {"a": [None, float(2**60), "\ufffd[31m", True, None, 3]}


def test_tiles_are_as_large_as_their_share_and_the_rest_is_one():
    tiles = [Tile(f"layers.{i}.fc", "Linear", 1000 - i) for i in range(500)]
    nodes = charts.treemap("t", tiles, "FLOP").spec["data"][0]["values"]
    values = [node["value"] for node in nodes if "value" in node]
    assert sum(values) == sum(tile.amount for tile in tiles)
    assert len(values) == 241
    assert nodes[-1]["name"] == "260 more"


def test_places_belong_to_their_block():
    cases = {"transformer.h.3.mlp.up": "transformer.h.3", "features.0": "features", "lm_head": "lm_head", "": "",
             "layer1.0.conv1": "layer1.0", "a.b.c": "a.b", "Pipeline.0": "Pipeline"}  # fmt: skip
    assert {path: block_of(path) for path in cases} == cases
    assert name_of("transformer.h.3.mlp.up") == "mlp.up"
    assert name_of("lm_head") == "lm_head"


def test_stacks_are_shares_of_their_row_and_empty_rows_are_left_out():
    rows = [Stack("a", (Piece("x", 1, "1", color(0)), Piece("y", 3, "3", color(1)))), Stack("none", ())]
    chart = charts.stacks("t", rows)
    ends = [(value["begin"], value["end"]) for value in chart.spec["data"]["values"]]
    assert ends == [(0, 0.25), (0.25, 1)]
    assert chart.about == "a: x 25.0 %, y 75.0 %"
    assert [name for name, _ in chart.legend] == ["x", "y"]


def test_a_roof_bends_where_memory_no_longer_holds_it_down():
    chart = charts.roofline("t", [Roof("bf16", 1e15), Roof("fp32", 6e13)], 5e12, [Point("p", 10.0, 2.5e13, color(0))])
    roofs = chart.spec["layer"][0]["data"]["values"]
    assert {"x": 200.0, "y": 1e15, "roof": "bf16"} in roofs
    assert {"x": 12.0, "y": 6e13, "roof": "fp32"} in roofs
    assert "p: 10 FLOP for each byte, 25 TFLOP/s, 50.0 % of the roof there" in chart.about


def test_thinning_keeps_every_peak():
    points = [(float(i), 50.0 + (i % 7)) for i in range(100_000)]
    points[54_321] = (54_321.0, 700.0)
    points[12_345] = (12_345.0, 0.5)
    kept = thinned(points, 600)
    assert len(kept) <= 610
    assert {(54_321.0, 700.0), (12_345.0, 0.5)} <= set(kept)
    assert kept == sorted(kept)
    assert thinned(points[:100], 600) == points[:100]


def test_entries_of_a_phase_that_touch_are_drawn_as_one():
    spans = [Span("step", i * 0.01, i * 0.01 + 0.0099) for i in range(1000)] + [Span("eval", 10.0, 12.0)]
    chart = charts.power("t", {"gpu": [(0.0, 1.0), (12.0, 2.0)]}, spans)
    behind = chart.spec["layer"][0]["data"]["values"]
    assert [(one["begin"], round(one["end"], 2)) for one in behind] == [(0.0, 10.0), (10.0, 12.0)]


def test_the_front_holds_what_none_beats():
    dots = [Dot("cheap", 1, 0.5), Dot("worse", 2, 0.4), Dot("good", 3, 0.9), Dot("dear", 4, 0.9), Dot("best", 9, 0.95)]
    assert [dot.name for dot in charts.front(dots)] == ["cheap", "good", "best"]
    assert [dot.name for dot in charts.front(dots, more_y=False)] == ["cheap", "worse"]
    assert [dot.name for dot in charts.front(dots, more_x=True)] == ["best"]


def test_colours_are_bright_enough_for_text_on_them_and_for_both_pages():
    from bitwatt.reports.html.style import STYLE

    found = dict(re.findall(r"--(bw-[\w-]+|card): (#\w{6})", STYLE))
    dark = re.findall(r"--card: (#\w{6})", STYLE)
    assert len(dark) == 2
    for name, value in found.items():
        if name.startswith("bw-c"):
            assert contrast(value, found["bw-on-color"]) >= 4.5, name
            assert all(contrast(value, page) >= 3 for page in dark), name


def contrast(one: str, other: str) -> float:
    a, b = sorted((luminance(one), luminance(other)), reverse=True)
    return (a + 0.05) / (b + 0.05)


def luminance(text: str) -> float:
    parts = [int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@drawn
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_says_so_and_does_not_wait_for_ever():
    code = """if True:
        import os, sys, threading
        from bitwatt import charts
        chart = charts.bars("t", [charts.Bar("a", "", 1, "1")], "J")
        charts.svg(chart)
        child = os.fork()
        if not child:
            threading.Timer(120, os._exit, (2,)).start()
            try:
                charts.svg(chart)
            except Exception as error:
                os._exit(3 if "forked" in str(error) else 4)
            os._exit(0)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert subprocess.run([sys.executable, "-c", code], timeout=300, check=False).returncode == 3


def test_without_the_library_a_chart_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("bitwatt.charts.drawing.available", lambda: False)
    with pytest.raises(Exception, match=r"pip install 'bitwatt\[charts\]'"):
        charts.svg(every("a", charts.WIDE)[0])
