"""Which to take, and whether quantisation was worthwhile: by rules that are told, with the numbers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import studies

from bitwatt.deploy.records import Breakdown, Precision, Quality, Stage
from bitwatt.deploy.telling.findings import found
from bitwatt.deploy.telling.rules import Rules

NATIVE, ONNX, EIGHT = studies.usual()


def findings(*scenarios, times=studies.MICROSECONDS, rules=None, **more):
    return found(studies.study(*scenarios, **more), studies.calls(times), rules)


def matrix(told):
    return {choice.need: choice for choice in told.selection}


def test_the_matrix_names_a_scenario_a_rule_and_a_reason_for_every_need():
    chosen = matrix(findings())
    assert {need: choice.scenario for need, choice in chosen.items()} == {
        "low latency": "onnx-int8", "accuracy-critical": "onnx-fp32", "resource-constrained": "onnx-int8",
        "simple deployment": "sklearn-fp64",
    }  # fmt: skip
    assert all(choice.rule and choice.why for choice in chosen.values())
    assert "less than 1 %" in chosen["low latency"].rule
    assert "the price of not converting" in chosen["simple deployment"].why


def test_a_good_int8_is_worthwhile():
    [one, many] = findings().worths
    assert (one.worthwhile, many.worthwhile) == (True, True)
    assert one.loss == pytest.approx(0.001)
    assert one.gain == pytest.approx(0.5, abs=0.03)
    assert one.told.startswith("INT8 (onnx-int8), batch 1: −0.1 % accuracy, −50 % latency [")
    assert one.told.endswith("against onnx-fp32: worthwhile")


def test_where_neighbours_stretched_the_longer_calls_the_gain_of_cpu_time_is_told():
    stretched = [
        replace(call, wall_ns=3 * call.wall_ns) if call.scenario == "onnx-fp32" else call
        for call in studies.calls(studies.MICROSECONDS)
    ]
    one = found(studies.study(), stretched).worths[0]
    assert re.search(r"−83 % latency \[.*\] \(−50 % by CPU time\) against onnx-fp32: worthwhile", one.told), one.told


def test_what_loses_too_much_is_not_worthwhile_and_not_taken():
    bad = replace(EIGHT, quality=studies.quality(0.87, 60, 0.001))
    told = findings(NATIVE, ONNX, bad)
    assert [one.worthwhile for one in told.worths] == [False, False]
    assert "it loses 3 % and may lose less than 1 %" in told.worths[0].told
    assert told.worths[0].why == ()  # it was quick: there is nothing to explain
    assert told.recommended.scenario == matrix(told)["low latency"].scenario == "onnx-fp32"


def test_the_limits_can_be_set():
    bad = replace(EIGHT, quality=studies.quality(0.87, 60, 0.001))
    told = findings(NATIVE, ONNX, bad, rules=Rules(max_loss=0.05))
    assert told.recommended.scenario == "onnx-int8"
    strict = findings(rules=Rules(min_gain=0.6))
    assert [one.worthwhile for one in strict.worths] == [False, False]
    assert "which is not more than 60 %" in strict.worths[0].told
    assert strict.recommended.scenario == "onnx-fp32"


def test_an_int8_without_gain_says_so():
    told = findings(times={"sklearn-fp64": 200.0, "onnx-fp32": 20.0, "onnx-int8": 20.1})
    assert told.worths[0].worthwhile is False
    assert "no gain of latency is shown" in told.worths[0].told
    assert told.recommended.scenario == "onnx-fp32"


def slow(eight, onnx=ONNX, flags="avx2 avx512_vnni"):
    told = findings(NATIVE, onnx, eight, times={"sklearn-fp64": 200.0, "onnx-fp32": 20.0, "onnx-int8": 30.0},
                    machine={"flags": flags})  # fmt: skip
    assert told.worths[0].worthwhile is False
    assert "it is slower" in told.worths[0].told
    return "; ".join(told.worths[0].why)


def test_why_it_was_slower_no_integer_kernel():
    none = replace(EIGHT.artefact, precision=Precision("fp32", 7, 0, 1000, 0))
    assert "no integer kernel: 0 of 7 nodes are integer" in slow(replace(EIGHT, artefact=none))


def test_why_it_was_slower_no_vnni():
    assert "no VNNI" in slow(EIGHT, flags="avx2 avx512f")
    assert "VNNI" not in slow(EIGHT)
    assert "VNNI" not in slow(EIGHT, flags="asimd asimddp")


def test_why_it_was_slower_quantising_takes_its_time():
    stages = (Stage("QuantizeLinear_1", "linear", 0.006), Stage("DynamicQuantizeMatMul", "linear", 0.02))
    assert "takes 20 % of a call" in slow(replace(EIGHT, breakdown={1: Breakdown(1, stages, 0.5, 0.03)}))


def test_why_it_was_slower_little_to_gain():
    small = (Stage("Gemm", "linear", 0.002), Stage("rest", "postprocess", 0.018))
    told = slow(EIGHT, replace(ONNX, breakdown={1: Breakdown(1, small, 0.5, 0.02)}))
    assert "only 10 % of a call of onnx-fp32" in told


def test_a_forest_is_not_quantisable():
    note = "INT8 changes nothing: 0 of 1 nodes are integer"
    forest = replace(EIGHT.artefact, precision=Precision("fp32", 1, 0, 0, 0, note), ranked_as="onnx-fp32")
    told = findings(NATIVE, ONNX, replace(EIGHT, artefact=forest))
    assert [(one.worthwhile, one.told) for one in told.worths] == [
        (False, f"INT8 (onnx-int8): not quantisable: {note}")
    ]  # fmt: skip
    failed = replace(EIGHT, artefact=None, failure="trees have no products")
    assert findings(NATIVE, ONNX, failed).worths[0].told == "INT8 (onnx-int8): not possible: trees have no products"


def test_int8_of_another_runtime_is_held_against_its_own():
    times = {"eager-fp32": 100.0, "onnx-fp32": 20.0, "torchao-int8": 60.0}
    eager = studies.scenario("eager-fp32", baseline="native")
    told = findings(eager, ONNX, studies.scenario("torchao-int8", "int8"), times=times)
    assert {one.against for one in told.worths} == {"eager-fp32"}


def test_the_native_model_stays_where_nothing_is_worth_a_conversion():
    times = {"sklearn-fp64": 20.0, "onnx-fp32": 19.0, "onnx-int8": 18.0}
    told = findings(times=times)
    assert told.recommended.scenario == "sklearn-fp64"
    assert "no other is worth its conversion" in told.recommended.why


def test_among_those_not_told_apart_the_smaller_is_taken_and_the_tie_told():
    lean = replace(studies.scenario("lean"), footprint=studies.scenario("x", memory=40.0).footprint)
    told = findings(NATIVE, ONNX, lean, times={"sklearn-fp64": 200.0, "onnx-fp32": 20.0, "lean": 20.1})
    assert (told.recommended.scenario, told.recommended.tied) == ("lean", ("onnx-fp32",))
    assert "no difference of latency shown to onnx-fp32" in told.recommended.why


def test_without_labels_flips_are_the_loss():
    def unlabelled(one, flips):
        return replace(one, quality=replace(studies.quality(None, flips, None), interval=None))

    told = findings(unlabelled(NATIVE, None), unlabelled(ONNX, 0), unlabelled(EIGHT, 100))
    assert told.worths[0].loss == pytest.approx(0.1)
    assert told.recommended.scenario == "onnx-fp32"
    assert "fewest predictions that flip" in matrix(told)["accuracy-critical"].rule


def test_nothing_known_of_quality_is_told():
    told = findings(*(replace(one, quality=None) for one in studies.usual()))
    assert told.worths[0].worthwhile is None
    assert "what it loses is not known" in told.worths[0].told
    assert matrix(told)["accuracy-critical"].scenario == "sklearn-fp64"


def test_without_a_native_baseline_the_quickest_is_taken():
    told = findings(replace(NATIVE, failure="it cannot be loaded"), ONNX, EIGHT)
    assert told.recommended.scenario == "onnx-int8"
    assert matrix(told)["simple deployment"].scenario is None


def test_without_a_native_baseline_a_loss_is_against_the_onnx_model_in_floats():
    bad = replace(EIGHT, quality=studies.quality(0.87, 60, 0.001))
    told = findings(replace(NATIVE, failure="it cannot be loaded"), ONNX, bad)
    assert told.recommended.scenario == matrix(told)["low latency"].scenario == "onnx-fp32"


def test_nothing_timed_nothing_taken():
    told = found(studies.study(), [])
    assert matrix(told)["low latency"].scenario is None
    assert (told.recommended.scenario, told.recommended.why) == (None, "nothing was timed in this setting")
    assert told.text().splitlines()[1].startswith("Take none")


def test_loss_is_in_points_or_relative():
    rules = Rules()
    assert rules.loss(0.39, 0.40) == pytest.approx(0.01)
    assert rules.loss(-110.0, -100.0) == pytest.approx(0.1)
    assert rules.loss(None, 0.4) is None
    assert rules.loss(float("nan"), 0.4) is None
    assert rules.loss(3.0, 0.0) is None


def test_of_values_the_difference_is_told_and_no_labels():
    def valued(one, difference):
        return replace(one, quality=Quality("r2", 0.9, flips=None, rows=1000, max_difference=difference))

    told = findings(valued(NATIVE, None), valued(ONNX, 1e-6), valued(EIGHT, 0.25))
    assert "values differ by 0.25 at most" in told.recommended.why
    assert "labels" not in told.recommended.why + matrix(told)["accuracy-critical"].why


def test_without_labels_no_accuracy_is_claimed():
    """Of a clustering, or of rows without targets, only what flips is known."""

    def unlabelled(one, flips):
        return replace(one, quality=Quality("accuracy", None, flips=flips, rows=1000))

    told = findings(unlabelled(NATIVE, None), unlabelled(ONNX, 0), unlabelled(EIGHT, 4))
    assert told.recommended.scenario == "onnx-int8"
    assert "−0.4 % labels kept, 4 of 1,000 labels flip" in told.recommended.why
    critical = matrix(told)["accuracy-critical"]
    assert critical.scenario == "onnx-fp32"
    assert "no difference of predictions shown to sklearn-fp64" in critical.why
    assert "% accuracy" not in told.text()
