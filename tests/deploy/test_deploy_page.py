"""The page, markdown and terminal: everything told, nothing loaded, no name taken for markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import studies

from bitwatt.cli.progress import Bar, line
from bitwatt.deploy.records import Quality
from bitwatt.deploy.telling import terminal
from bitwatt.deploy.telling.findings import found
from bitwatt.deploy.telling.tradeoffs import COLUMNS
from bitwatt.reports.text import length

SECTIONS = ("trade-offs", "scenarios", "selection", "quantisation", "breakdown", "load", "checklist", "all")


@pytest.fixture(scope="module")
def findings():
    return studies.usual_findings()


@pytest.fixture(scope="module")
def page():
    return studies.usual_page()


@pytest.fixture(scope="module")
def hostile():
    evil = studies.scenario(
        studies.EVIL, quality=Quality(studies.EVIL, 0.5, warnings=(studies.EVIL,)), baseline="native"
    )
    failed = replace(studies.scenario(f"{studies.EVIL}2"), failure=studies.EVIL, artefact=None)
    case = {"name": studies.EVIL, "class": studies.EVIL, "rows": 3, "classes": [studies.EVIL]}
    study = studies.study(evil, failed, case=case, machine={studies.EVIL: studies.EVIL}, notes=(studies.EVIL,))
    return found(study, studies.calls({studies.EVIL: 10.0}))


def test_the_page_has_every_section_and_loads_nothing(page):
    assert [id for id in SECTIONS if f'<section id="{id}"' not in page] == []
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "default-src 'none'" in page
    assert 'content="light dark"' in page


def test_the_page_draws_the_trade_offs(page):
    pytest.importorskip("vl_convert")
    page = unescape(page)
    for caption in ("Accuracy against latency, batch 1", "Throughput against peak memory (USS), batch 32",
                    "Throughput against latency × CPU utilisation, batch 1", "Latency against sklearn-fp64, which is 1",
                    "Parts of a call, batch 1", "p95 by rate of arrivals", "p95 by callers"):  # fmt: skip
        assert f"<figcaption>{caption}" in page, caption


def test_every_column_of_the_table_is_on_the_page(findings, page):
    known = [name for name in COLUMNS if any(row[name] is not None for row in findings.rows)]
    assert [name for name in known if name not in page and name != "energy_source"] == []


def test_hostile_names_are_text(hostile):
    for page in (hostile.page(), hostile._repr_html_()):
        assert "<img" not in page
        assert "&lt;img" in page
        assert "\x1b" not in page
    assert "\x1b" not in hostile.text()
    assert not re.search(r"(?<!\\)<img", hostile.markdown())


@pytest.mark.parametrize("width", [60, 100, 200])
def test_the_text_fits_the_terminal(findings, width):
    assert max(map(length, findings.text(width).splitlines())) <= width


def test_a_wide_terminal_has_all_columns(findings):
    text = findings.text(200)
    assert "no room" not in text
    assert "cold start" in text
    assert findings.text(90).count("no room for") == 1


def test_the_text_says_what_to_take_first(findings):
    assert findings.text().splitlines()[1].startswith("Take onnx-int8: ")


def test_what_to_beware_of_comes_before_the_numbers():
    told = found(studies.study(notes=("the machine was busy",)), []).text()
    assert told.index("beware: the machine was busy") < told.index("batch 1")


def test_colours_only_where_asked(findings):
    assert "\x1b" not in findings.text()
    coloured = terminal.text(findings, color=True)
    assert re.sub(r"\x1b\[\d+m", "", coloured) == findings.text()


def test_markdown_has_the_tables_and_the_checklist(findings):
    text = findings.markdown()
    assert "| Need | Scenario | Why | Rule |" in text
    assert "| ✗ | input drift | feature 3 moved |" in text
    assert "worthwhile" in text


def test_the_bar_tells_what_is_left():
    assert line(1, 4, "timing", 30.0) == f"{'█' * 6}{'─' * 18}  25 %  1 min 30 s left  timing"
    assert "left" not in line(0, 4, "timing", 0.0)
    assert "\x1b" not in line(1, 4, "\x1b[31m", 1.0)


def test_the_bar_is_silent_where_there_is_no_terminal(capsys):
    import io

    stream = io.StringIO()
    with Bar(stream) as bar:
        bar(1, 2, "timing")
    assert stream.getvalue() == ""


def test_the_bar_leaves_nothing_behind():
    import io

    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with Bar(stream) as bar:
        bar(1, 2, "timing")
    assert "50 %" in stream.getvalue()
    assert stream.getvalue().rpartition("\r")[2] == ""
