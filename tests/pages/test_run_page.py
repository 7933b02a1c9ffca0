"""The page of a run, as text: what it says and leaves out, with charts and without, its policy and its size."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from bitwatt.config import Settings
from bitwatt.reports import report
from bitwatt.reports.html import fragment
from bitwatt.reports.html.layout import figure, page, plain_table, switch
from bitwatt.reports.html.paint import phase_colors
from bitwatt.reports.model import View
from bitwatt.reports.roofs import Roofs, roofs
from factories import make_run, metered, transformer_run
from showcase import HOSTILE, empty_run, hostile_run, serving_run, training_run


@pytest.fixture(scope="module")
def trained() -> str:
    pytest.importorskip("vl_convert")
    return report(training_run(), format="html")


def sections(text: str) -> list[str]:
    return re.findall(r'<section id="([\w-]+)"', text)


def part(text: str, name: str) -> str:
    return text.partition(f'<section id="{name}"')[2].partition("</section>")[0]


def test_everything_a_run_knows_has_its_section_in_order(trained):
    assert sections(trained) == [
        "phases", "layers", "precision", "roofline", "energy", "ops", "metrics", "bottleneck", "throughput", "missing",
        "sources", "about", "machine", "settings",
    ]  # fmt: skip
    assert re.findall(r'<li><a href="#([\w-]+)">', trained) == sections(trained)


def test_sections_that_have_nothing_to_say_are_not_there():
    assert sections(report(empty_run(), format="html")) == ["roofline", "missing", "sources", "machine", "settings"]
    assert {"requests", "rank"} <= set(sections(report(serving_run(), format="html")))


def test_by_keeps_one_table():
    assert sections(report(transformer_run(), format="html", by="scope")) == ["layers"]
    assert sections(report(transformer_run(), format="html", by="op")) == ["ops"]


def test_the_policy_knows_the_page_s_own_script_and_style_and_nothing_else(trained):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', trained)[1]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for kind in ("script", "style"):
        (inside,) = re.findall(rf"<{kind}>(.*?)</{kind}>", trained, re.S)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"
    assert "unsafe" not in policy
    assert not re.search(r'\sstyle="|\son\w+="', trained)
    assert trained.index("Content-Security-Policy") < trained.index("<style>")


def test_a_page_is_small_whatever_the_model():
    pytest.importorskip("vl_convert")
    assert len(report(training_run(layers=200, steps=20), format="html")) < 1_000_000
    assert len(report(training_run(), format="html")) < 600_000


def test_names_never_become_markup():
    for text in (report(hostile_run(), format="html"), fragment(hostile_run())):
        for evil in (*HOSTILE[:2], *HOSTILE[3:5]):
            assert evil not in text
        assert "<img" not in text
        assert text.count("</style>") == 1


def test_without_the_library_the_page_is_whole_and_says_how_to_get_charts(monkeypatch, trained):
    monkeypatch.setattr("bitwatt.reports.html.layout.available", lambda: False)
    text = report(training_run(), format="html")
    assert "pip install &#x27;bitwatt[charts]&#x27;" in text
    assert "<figure" not in text
    assert text.count("<polyline") == 2
    assert 'role="img" aria-label="forward ' in text
    assert sections(text) == sections(trained)
    tables = re.compile(r"<table.*?</table>", re.S)
    assert tables.findall(text) == tables.findall(trained)
    assert "pip install" not in trained


def test_a_roofline_needs_peaks_and_says_which_are_missing():
    known = roofs(View(training_run()))
    assert isinstance(known, Roofs)
    assert [peak.format for peak in known.peaks] == ["bf16"]
    assert known.devices == 1
    forward = next(place for place in known.phases if place.name == "forward")
    run = training_run()
    view = View(run)
    line = next(line for line in view.phases if line.name == "forward")
    assert forward.rate == line.amounts["flops"] / run.device_seconds["forward"]
    assert all(place.rate is None for place in known.ops)
    assert roofs(View(transformer_run())).startswith("no peaks are known for A Processor; set [peaks.")
    assert roofs(View(make_run())) == "no work was counted"
    told = Settings(peaks={"A Processor": {"fp32": 1e12}})
    assert roofs(View(transformer_run(), settings=told)).startswith("the memory bandwidth of A Processor is not known")
    told = Settings(peaks={"*": {"fp32": 1e12, "bandwidth": 1e10}})
    found = roofs(View(transformer_run(), settings=told))
    assert [(peak.format, peak.value) for peak in found.peaks] == [("fp32", 1e12)]
    two = metered().energy[:1] * 2
    devices = tuple(replace(one, device=replace(one.device, id=f"gpu:{i}")) for i, one in enumerate(two))
    assert roofs(View(transformer_run(meter=metered(energy=devices)), settings=told)).devices == 2


def test_every_number_tells_how_it_came(trained):
    told = part(trained, "sources")
    rows = re.findall(r'<th scope="row"[^>]*>([^<]*)</th>.*?<span class="badge (\w+)">', told)
    assert dict(rows) == {
        "FLOPs": "counted", "BOPs": "counted", "MACs": "counted", "bytes moved": "modelled", "time": "measured",
        "time of phases": "measured", "GPU time": "measured", "energy, NVIDIA H200": "measured",
        "energy, package 0": "measured", "energy of phases, apportioned": "apportioned", "CO2e": "unknown",
        "MFU": "modelled", "fingerprint": "counted",
    }  # fmt: skip
    assert View(training_run()).fingerprint.digest in told
    assert "nothing was metered" in part(report(transformer_run(), format="html"), "sources")


def test_gaps_are_named_with_why():
    text = part(report(hostile_run(), format="html"), "missing")
    assert text.count("no rule") == len(HOSTILE)
    assert "None: a rule covers every call" in part(report(transformer_run(), format="html"), "missing")


def test_settings_tell_where_they_are_from():
    meter = metered(settings={"pue": "1.2 (bitwatt.toml)"})
    text = part(report(transformer_run(meter=meter), format="html"), "settings")
    assert "1.2" in text
    assert "bitwatt.toml" in text
    assert "when metered" in text


def test_energy_carbon_and_money_are_cards_where_they_are_known():
    settings = Settings(intensity_g_per_kwh=400.0, price_per_kwh=0.3, currency="EUR")
    head = report(transformer_run(meter=metered()), format="html", settings=settings).partition("<nav")[0]
    assert "<dt>energy, measured</dt><dd>3.6<small> kJ</small>" in head
    assert "<dt>CO2e</dt>" in head
    assert "<small> EUR</small>" in head
    assert "CO2e" not in report(transformer_run(), format="html").partition("<nav")[0]


def test_phases_keep_their_colours_apart():
    paths = ["forward", "backward", "train/forward", "train/backward", "mine", "other"]
    found = phase_colors(paths)
    assert list(found) == paths
    assert len(set(found.values())) == len(paths)
    assert found["forward"] == phase_colors(["preprocess", "forward"])["forward"]
    assert len(phase_colors([f"p{i}" for i in range(40)])) == 40


def test_a_page_can_be_made_of_anything():
    """As the dashboard and comparisons do."""
    html = plain_table("Caption", ("A", "B"), [("<x>", "1")], (1,)) + switch("s", "which", [("a", "1"), ("b", "2")])
    text = page("<t>", "<h1>head</h1>", [("one", "One & only", html)], "foot")
    assert "<title>&lt;t&gt; · bitwatt</title>" in text
    assert '<h2 id="one-title">One &amp; only</h2>' in text
    assert "&lt;x&gt;" in text
    assert text.count('type="radio"') == 2
    assert switch("s", "which", [("a", "alone")]) == "alone"


def test_a_chart_that_cannot_be_drawn_costs_nobody_the_report(monkeypatch):
    def broken(chart):
        raise ValueError("no such <scale>\nat line 3")

    monkeypatch.setattr("bitwatt.reports.html.layout.svg", broken)
    monkeypatch.setattr("bitwatt.reports.html.layout.available", lambda: True)
    text = report(training_run(), format="html")
    assert "This chart could not be drawn: no such &lt;scale&gt;</p>" in text
    assert 'role="img" aria-label="forward ' in text
    assert "line 3" not in text


def test_a_figure_is_drawn_twice_and_labelled(monkeypatch):
    pytest.importorskip("vl_convert")
    from bitwatt import charts

    stack = charts.Stack("row", (charts.Piece("<p>", 1, "1", charts.color(0)),))
    text = figure(lambda width: charts.stacks("A & B", [stack], width=width))
    assert text.count("<svg role=") == 2
    assert text.count('aria-label="A &amp; B"') == 2
    assert "<desc>row: &lt;p&gt; 100.0 %</desc>" in text
    monkeypatch.setattr("bitwatt.reports.html.layout.available", lambda: False)
    assert figure(lambda width: pytest.fail("drawn"), "<p>instead</p>") == "<p>instead</p>"
