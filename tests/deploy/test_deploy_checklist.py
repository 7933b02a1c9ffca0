"""The production checklist: each item passed, failed, or could not be found out, with its number."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import studies

from bitwatt.deploy.records import Checked, Joules, Load, LoadPoint, Plan
from bitwatt.deploy.telling.findings import found
from bitwatt.deploy.telling.rules import Rules

NATIVE, ONNX, EIGHT = studies.usual()
ITEMS = (
    "10+ iterations", "A/A control", "accuracy tolerance", "per-class and balanced accuracy", "edge-case rows",
    "input drift", "p95 under load", "memory under concurrency", "cold start", "energy", "runtime versions",
)  # fmt: skip


def checklist(*scenarios, calls=None, rules=None, **more):
    times = studies.calls(studies.MICROSECONDS) if calls is None else calls
    return {one.name: one for one in found(studies.study(*scenarios, **more), times, rules).checklist}


def eight(**changes):
    return checklist(NATIVE, ONNX, replace(EIGHT, **changes))


def test_every_item_is_there_with_what_was_found():
    told = checklist(data=studies.checked_data())
    assert tuple(told) == ITEMS
    assert {name: one.passed for name, one in told.items()} == {
        "10+ iterations": True, "A/A control": None, "accuracy tolerance": True,
        "per-class and balanced accuracy": True, "edge-case rows": True, "input drift": False, "p95 under load": True,
        "memory under concurrency": True, "cold start": True, "energy": None, "runtime versions": True,
    }  # fmt: skip
    assert all(one.told for one in told.values())


def test_iterations_are_counted_where_there_are_fewest():
    few = studies.calls(studies.MICROSECONDS, Plan(batches=(1, 32), processes=1, blocks=3))
    told = checklist(calls=few)["10+ iterations"]
    assert (told.passed, told.told.split()[0]) == (False, "9")


def test_the_control_is_told():
    told = checklist(calls=studies.calls(studies.MICROSECONDS, control="sklearn-fp64"))["A/A control"]
    assert told.passed is True
    assert "false alarms here and now" in told.told


def test_tolerance_follows_the_rule():
    bad = replace(EIGHT, quality=studies.quality(0.87, 60, 0.001))
    assert checklist(NATIVE, ONNX, bad)["accuracy tolerance"].passed is True  # another is recommended
    told = checklist(NATIVE, ONNX, bad, rules=Rules(max_loss=0.05))["accuracy tolerance"]
    assert told.passed is True
    assert told.told == "−3 % accuracy, may lose less than 5 %; 60 of 1,000 labels flip"


def test_a_class_that_is_lost_is_found():
    before = studies.quality(0.9, None, None, balanced=0.9, per_class={"a": 0.9, "b": 0.9})
    after = studies.quality(0.9, 10, 0.9, balanced=0.8, per_class={"a": 0.6, "b": 1.0})
    told = checklist(replace(NATIVE, quality=before), ONNX, replace(EIGHT, quality=after))
    item = told["per-class and balanced accuracy"]
    assert item.passed is False
    assert "lowest 0.6 (class a)" in item.told
    assert "class a −30 %" in item.told


def test_an_slo_that_never_holds_fails():
    assert eight(load=replace(EIGHT.load, highest_rate=None))["p95 under load"].passed is False


def test_what_saturates_at_once_or_does_not_recover_fails():
    assert eight(load=replace(EIGHT.load, recovered=False))["p95 under load"].passed is False
    always = Load(tuple(replace(point, saturated=True) for point in EIGHT.load.points))
    told = eight(load=always)["p95 under load"]
    assert told.passed is False
    assert "saturated at every load" in told.told


def test_points_that_go_too_far_on_purpose_do_not_count():
    wild = LoadPoint("overload", offered_rate=1e6, achieved_rate=9e4, failed=500, p95_ms=900.0)
    probe = LoadPoint("probe", offered_rate=9e3, achieved_rate=9e3, failed=5, p95_ms=50.0)
    told = eight(load=replace(EIGHT.load, points=(*EIGHT.load.points, wild, probe)))["p95 under load"]
    assert told.passed is True
    assert "900 µs at 500/s (open)" in told.told


def test_no_load_cannot_be_found_out():
    told = eight(load=None)
    assert told["p95 under load"].passed is None
    assert told["memory under concurrency"].passed is None


def test_memory_that_grows_fails():
    points = (EIGHT.load.points[0], replace(EIGHT.load.points[1], uss_mb=200.0))
    assert eight(load=replace(EIGHT.load, points=points))["memory under concurrency"].passed is False


def test_measured_energy_passes():
    told = eight(joules={"1x1": Joules(42.0, 1e-5, "RAPL")})["energy"]
    assert (told.passed, told.told) == (True, "42 µJ a call, by RAPL")


def test_without_a_recommendation_nothing_is_ticked():
    told = checklist(calls=[])
    assert {told[name].passed for name in ITEMS[2:10]} == {None}


def test_edge_rows_are_those_of_the_recommended_scenario():
    """That another one differs does not fail the one that is to be deployed."""
    edges = {
        "sklearn-fp64": Checked("edge-case rows", True, "it is the model as it was trained"),
        "onnx-fp32": Checked("edge-case rows", False, "zeros: sklearn-fp64 is 3% away"),
        "onnx-int8": Checked("edge-case rows", True, "it agrees with sklearn-fp64 on zeros"),
    }
    ways = tuple(replace(one, edges=edges[one.name]) for one in studies.usual())
    findings = found(studies.study(*ways), studies.calls(studies.MICROSECONDS))
    assert findings.recommended.scenario == "onnx-int8"
    told = next(one for one in findings.checklist if one.name == "edge-case rows")
    assert told.passed is True
    assert told.told == "onnx-int8: it agrees with sklearn-fp64 on zeros (others that differ: onnx-fp32)"
