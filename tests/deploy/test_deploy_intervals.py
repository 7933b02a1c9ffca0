"""Intervals that are too wide to say anything are told in words, the same in every report; data keep their ends."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
import studies

from bitwatt import charts
from bitwatt.deploy import statistics
from bitwatt.deploy.intervals import TOO_FEW, between, tells
from bitwatt.deploy.records import Call
from bitwatt.deploy.telling.findings import Findings, found

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import deploy_claims_page
import deploy_h200

PLAN = replace(studies.PLAN, processes=2)
POWERS = re.compile(r"\de[+-]\d")


def slow_once(processes: int) -> list[Call]:
    """All steady, but that onnx-int8 took eight times as long in the second process."""
    times = {"sklearn-fp64": 200.0, "onnx-fp32": 210.0, "onnx-int8": 150.0}
    calls = studies.calls(times, replace(PLAN, processes=processes), noise=0.001)
    slow = {(1, "onnx-int8"): 8}
    return [replace(one, wall_ns=slow.get((one.process, one.scenario), 1) * one.wall_ns, cpu_ns=0) for one in calls]


@pytest.fixture(scope="module")
def findings() -> Findings:
    return found(studies.study(plan=PLAN), slow_once(2))


def test_an_interval_tells_where_its_ends_are_near_or_1_is_not_between_them() -> None:
    assert between(0.5, 2.0) == "[0.5, 2]"
    assert between(2.0, 3000.0) == "[2, 3e+03]", "how much is open; that it is more than twice is shown"
    assert between(0.09, 9.0) == "[0.09, 9]"
    assert between(0.09, 9.1) == between(2.4e-8, 5.1e7) == between(0.0, float("inf")) == f"({TOO_FEW})"
    assert between(None, None) == f"({TOO_FEW})"
    assert tells(0.9, 1.1)
    assert not tells(None, 1.1)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_comparison_of_too_few_says_so(processes: int) -> None:
    calls = [call for call in slow_once(2) if call.process < processes]
    one = statistics.compare(calls, "onnx-int8", "sklearn-fp64", 1, 1)
    assert one is not None
    assert one.low < 1e-4
    assert one.high > 1e4
    assert one.told.endswith(f"x as fast ({TOO_FEW}): no difference shown")


def test_reports_have_words_and_no_powers_of_ten(findings: Findings) -> None:
    (duel,) = [one for one in findings.duels if (one.scenario, one.against, one.batch) == ("onnx-int8", "onnx-fp32", 1)]
    assert duel.low is not None
    assert duel.low < 1e-4, "the data have the ends"
    assert duel.told == f"2.02× the latency of onnx-fp32 ({TOO_FEW}): no difference shown"
    text = " ".join(findings.text(200).split())
    page = unescape(findings.page()).replace("<wbr>", "")
    assert f"+102 % latency ({TOO_FEW}) against onnx-fp32: not worthwhile (no gain of latency is shown)" in text
    ends = re.findall(r"<tr[^>]*><th[^>]*>ratio_to_\w+_(?:low|high)<.*?</tr>", page)
    assert len(ends) == 4
    assert all(f">{TOO_FEW}</td>" in row for row in ends)
    for told in (text, findings.markdown(), " ".join(ends)):
        assert TOO_FEW in told
        assert not POWERS.search(told), POWERS.search(told)


def test_an_interval_that_tells_nothing_is_not_drawn(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would leave no room for the bars."""
    drawn: list[charts.Bar] = []
    draw = charts.bars

    def seen(title: str, bars: list[charts.Bar], unit: str, *, width: int) -> charts.Chart:
        drawn[:] = bars
        return draw(title, bars, unit, width=width)

    monkeypatch.setattr(charts, "bars", seen)
    findings.page()
    bars = {bar.series: bar for bar in drawn}
    assert (bars["onnx-int8"].low, bars["onnx-int8"].high) == (None, None)
    assert bars["onnx-int8"].shown.endswith(f" as long ({TOO_FEW}): no difference shown")
    assert bars["onnx-fp32"].low is not None


def test_pages_of_benchmarks_say_it_likewise() -> None:
    ratio = [1.1, 2.4e-8, 5.1e7, "no difference shown"]
    assert deploy_h200._ratio(ratio) == f"**1.1** ({TOO_FEW})"
    cell = {"ratio": 1.1, "low": 2.4e-8, "high": 5.1e7, "scenario": "a", "against": "b", "batch": 1}
    spent = {name: {"cpu_seconds": {}} for name in "ab"}
    assert deploy_claims_page._ratio({"scenarios": spent}, cell) == f"1.1 ({TOO_FEW})"
