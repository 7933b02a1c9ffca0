"""Who is best: what is not known never wins, and what cannot be told apart is told so."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import studies

from bitwatt.deploy.records import Joules
from bitwatt.deploy.telling.findings import found

NAMES = tuple(studies.MICROSECONDS)


def summary(*scenarios, times=studies.MICROSECONDS, **more):
    return found(studies.study(*scenarios), studies.calls(times, **more)).summary()


def test_the_best_of_each_dimension():
    told = summary()
    assert told["best_latency"]["scenario"] == told["best_throughput"]["scenario"] == "onnx-int8"
    assert told["best_latency"]["batch_size"] == 32  # a row costs least in a large batch
    assert told["best_latency"]["not_told_apart_from"] == []
    assert told["best_memory"] | {"not_told_apart_from": 0} == {
        "scenario": "onnx-int8", "batch_size": 1, "threads": 1, "memory_mb": 70.0, "not_told_apart_from": 0
    }  # fmt: skip
    assert told["best_energy_proxy"]["scenario"] == "onnx-int8"
    assert told["best_by_setting"]["1x1"]["best_latency"]["batch_size"] == 1


def test_the_best_latency_is_the_least_of_the_table():
    findings = found(studies.study(), studies.calls(studies.MICROSECONDS))
    told = findings.summary()["best_latency"]
    assert told["latency_ms_per_sample"] == min(row["latency_ms_per_sample"] for row in findings.rows)


@pytest.mark.parametrize("missing", NAMES)
def test_a_value_that_is_missing_never_wins(missing):
    """Of each in turn memory, energy and accuracy are not known."""
    given = []
    for name, joules, memory in zip(NAMES, (30.0, 20.0, 10.0), (160.0, 80.0, 70.0), strict=True):
        gone = name == missing
        one = next(one for one in studies.usual() if one.name == name)
        made = studies.scenario(
            name, one.artefact.precision.mode, memory=None if gone else memory, baseline=one.baseline
        )
        energy = {"1x1": Joules(None if gone else joules), "32x1": Joules(None if gone else joules)}
        given.append(replace(made, joules=energy, quality=None if gone else studies.quality(0.9)))
    told = summary(*given)
    rest = [name for name in NAMES if name != missing]
    for dimension in ("best_memory", "best_energy_measured", "best_accuracy", "best_flips"):
        best = told[dimension]
        assert missing not in (best["scenario"], *best["not_told_apart_from"]), dimension
    assert told["best_energy_measured"]["scenario"] == rest[-1]
    assert told["pareto"]["left_out"] == {missing: "accuracy, memory_mb not known"}
    assert missing not in told["pareto"]["front"]


def test_where_nobody_has_a_value_nobody_is_best():
    assert summary()["best_energy_measured"] is None


def test_times_that_are_the_same_are_tied_and_not_decided_by_noise():
    told = summary(times={"sklearn-fp64": 200.0, "onnx-fp32": 20.0, "onnx-int8": 20.0})
    best = told["best_by_setting"]["1x1"]["best_latency"]
    assert {best["scenario"], *best["not_told_apart_from"]} == {"onnx-fp32", "onnx-int8"}


def test_memory_within_the_range_of_processes_is_tied():
    given = [replace(one, footprint=studies.scenario("x", memory=m).footprint)
             for one, m in zip(studies.usual(), (160.0, 70.3, 70.0), strict=True)]  # fmt: skip
    best = summary(*given)["best_memory"]
    assert (best["scenario"], best["not_told_apart_from"]) == ("onnx-int8", ["onnx-fp32"])


@pytest.mark.parametrize(("p", "tied"), [(0.6, True), (0.001, False)])
def test_accuracy_is_told_apart_by_the_labels(p, tied):
    native, onnx, eight = studies.usual()
    best = summary(native, onnx, replace(eight, quality=studies.quality(0.88, 40, p)))["best_accuracy"]
    assert best["scenario"] == "sklearn-fp64"
    assert ("onnx-int8" in best["not_told_apart_from"]) is tied


def test_an_int8_without_integers_is_in_no_ranking():
    native, onnx, eight = studies.usual()
    precision = replace(eight.artefact.precision, mode="fp32", integer_nodes=0, integer_macs=0,
                        note="INT8 changes nothing: 0 of 5 nodes are integer")  # fmt: skip
    same = replace(eight, artefact=replace(eight.artefact, precision=precision, ranked_as="onnx-fp32"))
    told = summary(native, onnx, same)
    assert told["best_latency"]["scenario"] == "onnx-fp32"
    assert told["not_ranked"] == {"onnx-int8": "INT8 changes nothing: 0 of 5 nodes are integer"}
    assert "onnx-int8" not in str([told[name] for name in told if name.startswith("best")])
    assert told["recommendation"]["scenario"] == "onnx-fp32"


def test_the_front_holds_what_none_beats():
    told = summary()["pareto"]
    assert set(told["front"]) == {"onnx-int8", "onnx-fp32"}  # the best accuracy, and the rest
    assert told["beaten"] == {"sklearn-fp64": ["onnx-fp32"]}


def test_who_is_beaten_within_the_noise_is_told():
    native, onnx, eight = studies.usual()
    alike = replace(eight, quality=studies.quality(0.9), footprint=studies.scenario("x", memory=80.1).footprint)
    told = summary(native, onnx, alike, times={"sklearn-fp64": 200.0, "onnx-fp32": 20.0, "onnx-int8": 20.2})["pareto"]
    assert "onnx-int8" in (*told["front"], *told["beaten_within_the_noise"])
    assert "sklearn-fp64" not in told["beaten_within_the_noise"]
