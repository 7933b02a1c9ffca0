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
from bitwatt.deploy.records import SAME_ROWS, Precision, Quality
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
    told = page.replace("<wbr>", "")
    assert [name for name in known if name not in told and name != "energy_source"] == []


def test_long_names_of_columns_break_after_underscores(page):
    """A break of the line is no letter: who copies a name gets it as it is."""
    assert ">throughput_<wbr>samples_<wbr>per_<wbr>sec</th>" in page
    _, _, numbers = page.partition('<section id="all"')
    names = re.findall(r'role="rowheader">(.*?)</th>', numbers)
    assert names
    assert not [name for name in names if re.search(r"_(?!<wbr>)|\w{14}", name)], "no part is wider than the column"


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


def test_a_model_calibrated_on_the_rows_that_judge_it_is_told():
    plain = studies.scenario("onnx-int8")
    for rows, said in ((f"512 {SAME_ROWS}", True), ("512 training rows", False)):
        one = replace(plain, artefact=replace(plain.artefact, notes=(f"calibrated with {rows}",)))
        findings = found(studies.study(studies.scenario("sklearn-fp64", baseline="native"), one), [])
        assert ("beware: onnx-int8: calibrated with" in findings.text(200)) is said
        assert ("> onnx-int8: calibrated with" in findings.markdown()) is said
        assert ("note: onnx-int8: calibrated with" in findings.text(200)) is not said
        before, _, _ = unescape(findings.page()).partition("onnx-int8: calibrated with")
        assert ('<section id="scenarios"' in before) is not said, "it comes before the numbers"


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


def test_what_was_measured_is_written_before_anything_is_drawn(tmp_path, monkeypatch):
    """A page that cannot be drawn costs the page."""
    findings = studies.usual_findings()
    monkeypatch.setattr(type(findings), "page", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        findings.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} >= {"study.json", "stat_benchmark_runs.csv"}


def test_what_should_be_known_of_how_a_scenario_was_made_is_told_once():
    native, onnx, eight = studies.usual()
    locale, part, nothing = "a machine needs the locale C.UTF-8", "INT8 in part", "INT8 changes nothing: 0 of 5 nodes"
    onnx = replace(onnx, artefact=replace(onnx.artefact, notes=(locale, f"calibrated with 5 {SAME_ROWS}")))
    eight = replace(eight, artefact=replace(eight.artefact, notes=(locale, part)))
    told = found(studies.study(native, onnx, eight), studies.calls(studies.MICROSECONDS))
    text = " ".join(terminal.text(told, 100).split())
    assert f"note: onnx-fp32 and onnx-int8: {locale} note: onnx-int8: {part}" in text
    assert text.count(SAME_ROWS) == 1  # a warning
    same = replace(eight.artefact, ranked_as="onnx-fp32", notes=(nothing,), precision=Precision("fp32", note=nothing))
    told = found(studies.study(native, onnx, replace(eight, artefact=same)), studies.calls(studies.MICROSECONDS))
    assert "note: onnx-int8" not in terminal.text(told, 100)
