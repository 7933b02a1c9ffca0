"""Load on a runtime in a fresh process: real time, so ratios and generous bounds on a machine that others use too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bitwatt.deploy import documents, load
from bitwatt.deploy.records import Load, LoadPoint, Plan
from bitwatt.errors import BitwattError
from deploy import sleepy

PLAN = Plan(load_seconds=0.4)
OPTIONS = ("takes", "dies_at", "stalls_at", "stalls_s", "raises_from", "bytes", "broken")


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sleepy.installed(tmp_path, monkeypatch)


def put(folder: Path, plan: Plan = PLAN, inputs: Any = None, **settings: Any) -> Load:
    known = {name: settings.pop(name) for name in list(settings) if name in OPTIONS}
    rows = sleepy.rows(folder, [[0.0], [1.0], [2.0]] if inputs is None else inputs)
    return load.put(sleepy.artefact(folder, **known), plan, rows, **{"mlperf": False, **settings})


def kinds(found: Load, kind: str) -> list[LoadPoint]:
    return [point for point in found.points if point.kind == kind]


def test_the_whole_load_in_a_fresh_process(tmp_path: Path) -> None:
    told: list[tuple[float, float, str]] = []
    plan = Plan(load_seconds=1.5)
    found = put(tmp_path, plan, takes=0.004, slo="p95<80ms", callers=(1, 3), progress=lambda *now: told.append(now))
    one, three = kinds(found, "closed")
    assert (one.callers, three.callers) == (1, 3)
    assert one.p50_ms is not None
    assert one.p50_ms >= 4
    assert one.achieved_rate is not None
    assert three.achieved_rate is not None
    assert three.p50_ms is not None
    assert three.p50_ms < 2 * one.p50_ms  # sleeping callers do not get in each other's way: one by one they would wait
    assert found.capacity in (one.achieved_rate, three.achieved_rate)
    assert found.capacity >= max(one.achieved_rate, three.achieved_rate) / 1.05
    assert found.highest_rate is None or 0 < found.highest_rate <= found.capacity
    assert kinds(found, "overload")[-1].saturated
    assert all(point.uss_mb is not None and point.uss_mb > 1 for point in found.points)
    assert found.source == "bitwatt's generator"
    assert told
    assert all(0 <= done <= of and what == "sleepy" for done, of, what in told)
    assert documents.of_json(Load, documents.as_json(found)) == found


def test_a_model_that_hangs_is_left_and_told(tmp_path: Path) -> None:
    found = put(
        tmp_path, takes=0.002, stalls_at=30, stalls_s=500, callers=(1,), rates=(100.0, 100.0), timeout_s=0.5,
    )  # fmt: skip
    assert "waited for ever" in found.note
    assert found.points[-1].failed >= 1
    assert "never came back" in found.points[-1].note
    assert found.recovered is None


def test_memory_under_concurrency_grows_with_the_callers(tmp_path: Path) -> None:
    # Each call holds 20 MB: four at once hold at least 40 MB more than one does, samples or not.
    plan = Plan(load_seconds=1.0)
    found = put(tmp_path, plan, takes=0.5, bytes=20_000_000, callers=(1, 4), rates=(2.0,), overload=False)
    one, four = kinds(found, "closed")
    assert one.uss_mb is not None
    assert four.uss_mb is not None
    assert four.uss_mb - one.uss_mb > 38


def test_what_a_model_raises_under_load_is_counted_and_told(tmp_path: Path) -> None:
    found = put(tmp_path, takes=0.002, raises_from=30, callers=(1,), rates=(50.0,), overload=False)
    assert sum(point.failed for point in found.points) > 0
    assert any("out of handles" in point.note for point in found.points)
    assert all(point.p99_ms is None for point in found.points if point.failed)


def test_a_model_that_dies_under_load_is_a_finding(tmp_path: Path) -> None:
    found = put(tmp_path, takes=0.01, dies_at=30, callers=(1,), rates=(50.0, 50.0, 50.0))
    assert "SIGKILL" in found.note
    assert "under load" in found.note
    assert found.recovered is None
    assert found.highest_rate is None


def test_a_model_that_cannot_be_loaded_or_asked_is_told(tmp_path: Path) -> None:
    assert "the file is no model" in put(tmp_path, broken=True).note
    found = put(tmp_path, raises_from=0)
    assert found.points == ()
    assert "out of handles" in found.note


def test_a_runtime_that_is_not_there_is_told(tmp_path: Path) -> None:
    unknown = replace(sleepy.artefact(tmp_path), runtime="tensor-rocket")
    found = load.put(unknown, PLAN, sleepy.rows(tmp_path, [[1]]), mlperf=False)
    assert found.points == ()
    assert "tensor-rocket" in found.note


def test_requests_may_have_more_rows_than_there_are(tmp_path: Path) -> None:
    import numpy as np

    found = put(tmp_path, inputs=np.zeros((5, 2)), batch=32, callers=(1,), rates=(20.0,), overload=False)
    assert {point.rows for point in found.points} == {32}
    assert all(point.failed == 0 for point in found.points)


def test_what_the_plan_says_is_taken_where_nothing_else_is_said(tmp_path: Path) -> None:
    plan = Plan(load_seconds=0.3, callers=(2,), rates=(30.0,))
    found = put(tmp_path, plan, takes=0.001, overload=False)
    assert [(point.kind, point.callers, point.offered_rate) for point in found.points] == [
        ("closed", 2, None), ("open", 2, 30.0),
    ]  # fmt: skip
    assert {round(point.seconds, 3) for point in found.points} == {0.3}


def test_senseless_wishes_are_refused_before_a_process_is_started(tmp_path: Path) -> None:
    with pytest.raises(BitwattError, match="p99<20ms"):
        put(tmp_path, slo="quick")
    with pytest.raises(BitwattError, match="rate"):
        put(tmp_path, rates=(-1,))
    with pytest.raises(BitwattError, match="rows"):
        load.put(sleepy.artefact(tmp_path), PLAN, tmp_path / "nowhere")
    assert "no rows" in put(tmp_path, inputs=[]).note
