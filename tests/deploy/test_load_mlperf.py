"""MLPerf's LoadGen, the real one, on a runtime whose times are known."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bitwatt.deploy import load
from bitwatt.deploy.load import loadgen, summaries
from bitwatt.deploy.load.settings import Settings
from bitwatt.deploy.records import Plan
from deploy import sleepy

SUMMARY = """
Scenario : Server
Completed samples per second    : 187.43
Result is : INVALID
  Performance constraints satisfied : NO
  Min duration satisfied : Yes
  Early stopping satisfied: NO
Scheduled samples per second : 187.85
Min latency (ns)                : 2119038
Max latency (ns)                : 25514217
Mean latency (ns)               : 3317792
50.00 percentile latency (ns)   : 2232954
90.00 percentile latency (ns)   : 5027297
95.00 percentile latency (ns)   : 10449937
99.00 percentile latency (ns)   : 23393305
99.90 percentile latency (ns)   : 25514217
"""


def test_all_four_scenarios_run_in_a_fresh_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlperf_loadgen")
    sleepy.installed(tmp_path, monkeypatch)
    rows = sleepy.rows(tmp_path, [[float(at)] for at in range(40)])
    found = load.put(
        sleepy.artefact(tmp_path, takes=0.004), Plan(load_seconds=0.5), rows, callers=(2,), rates=(50.0,),
        overload=False, slo="",
    )  # fmt: skip
    by_kind = {point.kind: point for point in found.points}
    assert list(by_kind) == ["closed", "open", "single-stream", "multi-stream", "server", "offline"]
    for kind in loadgen.SCENARIOS.values():
        point = by_kind[kind]
        assert point.requests > 0
        assert point.p50_ms is not None
        assert point.p50_ms >= 4  # nothing is answered before it is computed
        assert point.p99_ms is not None
        assert point.max_ms is not None
        assert point.p50_ms <= point.p99_ms <= point.max_ms
        assert point.achieved_rate is not None
        assert point.achieved_rate > 0
        assert "VALID" in point.note
        assert "not MLPerf-legal" in point.note
        assert point.uss_mb is None  # LoadGen's own queries would be in it
    assert by_kind["multi-stream"].rows == 8  # answered as one batch: not eight times as slow
    assert by_kind["server"].offered_rate == pytest.approx(0.5 * (found.capacity or 0))
    assert (by_kind["offline"].achieved_rate or 0) > 2 * (by_kind["single-stream"].achieved_rate or 0)  # batches of 256
    assert "mlcommons-loadgen" in found.source
    assert "600 s" in found.note
    assert 0.2 < by_kind["single-stream"].seconds < 120


def test_what_fails_is_not_fast_there_either() -> None:
    pytest.importorskip("mlperf_loadgen")
    calls = iter(range(10**9))

    def predict(rows: list[list[float]]) -> None:
        if next(calls) % 3 == 0:
            raise ValueError("no")

    point = loadgen.scenario(
        "Server", predict, [[1.0], [2.0]], Settings(seconds=0.2, slo="p90<5ms"), rate=100, workers=2
    )
    assert point.failed > 0
    assert (point.p50_ms, point.p99_ms, point.achieved_rate) == (None, None, None)
    assert "ValueError: no" in point.note
    assert "p90 below 5 ms" in point.note


def test_a_summary_is_read() -> None:
    point = summaries.point("server", SUMMARY, seconds=1.0, callers=2, queries=190, samples=190, rate=200.0)
    assert point.achieved_rate == pytest.approx(187.43)
    assert point.p50_ms == pytest.approx(2.232954)
    assert point.p99_ms == pytest.approx(23.393305)
    assert point.max_ms == pytest.approx(25.514217)
    assert point.mean_ms == pytest.approx(3.317792)
    assert point.rows == 1
    assert "INVALID (not met: performance constraints, early stopping)" in point.note


def test_a_summary_without_a_result_says_so() -> None:
    point = summaries.point("offline", "", seconds=1.0, callers=1, queries=0, samples=0)
    assert "no result" in point.note
    assert point.p50_ms is None


def test_without_the_package_it_does_not_run_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlperf_loadgen", None)
    sleepy.installed(tmp_path, monkeypatch)
    found = load.put(
        sleepy.artefact(tmp_path), Plan(load_seconds=0.1), sleepy.rows(tmp_path, [[1]]), callers=(1,), rates=(20.0,),
        overload=False,
    )  # fmt: skip
    assert {point.kind for point in found.points} == {"closed", "open"}
    assert "mlcommons-loadgen is not installed" in found.note
