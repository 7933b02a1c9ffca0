"""The view holds every number once, in the order people think of a step, and folds layers so that they fit."""

import pytest

from bitwatt.errors import UnknownNameError
from bitwatt.ledger import Row
from bitwatt.pricing import totals
from bitwatt.records import Layer, Op
from bitwatt.reports import report
from bitwatt.reports.model import View
from bitwatt.reports.scopes import folded
from factories import add_op, make_run, mm_op, transformer_run


def test_phases_come_in_the_order_of_a_step_and_the_users_own_after():
    names = ["evaluate/inference", "mine", "other", "optimizer", "backward/recompute", "backward", "loss", "forward",
             "preprocess", "inference", "evaluate", "evaluate/forward"]  # fmt: skip
    view = View(make_run(Row(name, "", mm_op(1, 1, 1), 1) for name in names))
    assert [line.name for line in view.phases] == [
        "preprocess", "forward", "loss", "backward", "backward/recompute", "optimizer", "inference", "other",
        "evaluate", "evaluate/forward", "evaluate/inference", "mine"]  # fmt: skip


def test_a_phase_adds_up_work_and_bytes_over_its_calls():
    # 2x3 by 3x4: 24 MACs, 48 FLOPs, 1536 BOPs; reads (6 + 12)·4 = 72 bytes and writes 8·4 = 32; three times
    (line,) = View(make_run([Row("forward", "fc", mm_op(2, 3, 4), 3)])).phases
    assert line.amounts == {"flops": 144, "bops": 4608, "macs": 72}
    assert (line.bytes_read, line.bytes_written, line.calls) == (216, 96, 3)
    assert line.intensity == 144 / 312


def test_work_outside_the_model_is_unknown_not_zero():
    run = make_run([Row("preprocess", "", Op("toy.tokenize", (("characters", 50),)), 2)])
    (line,) = View(run).phases
    assert line.amounts == {"flops": None, "bops": None, "macs": None}
    assert line.text_steps == 100


def test_a_phase_in_which_nothing_was_called_keeps_its_time():
    (line,) = View(make_run(phase_seconds={"download": 2.5})).phases
    assert (line.name, line.seconds, line.calls) == ("download", 2.5, 0)


def test_what_is_missing_is_named_with_calls_and_reason():
    run = make_run([Row("", "", Op("toy.unknown"), 2), Row("", "", Op("toy.broken"), 7)])
    gaps = View(run).missing
    assert [(gap.op, gap.calls) for gap in gaps] == [("toy.broken", 7), ("toy.unknown", 2)]
    assert "its rule failed: KeyError" in gaps[0].reason


def test_folding_loses_no_work_and_fits():
    run = transformer_run(layers=40)
    for limit in (1, 3, 12, 1000):
        lines = View(run).layers(limit)
        assert len(lines) <= limit + 1
        assert sum(line.amounts["flops"] or 0 for line in lines) == totals(run).total


def test_equal_layers_fold_into_one_line_that_says_how_many():
    line = View(transformer_run(layers=40)).layers(12)[0]
    assert (line.name, line.about) == ("transformer.h.*.mlp.up", "40 × Linear")


def test_few_layers_are_shown_each():
    rows = [Row("forward", f"net.{i}", mm_op(2, 3, 4 + i), 1) for i in range(3)]
    lines = View(make_run(rows, layers={"net.0": Layer("Linear"), "net.2": Layer("Head")})).layers(12)
    assert [(line.name, line.about) for line in lines] == [("net.2", "Head"), ("net.1", ""), ("net.0", "Linear")]


def test_a_place_with_work_of_its_own_and_children_shows_both():
    groups = folded({"a": 5, "a.b": 3, "a.b.c": 1, "": 2}, 10)
    assert {group.name for group in groups} == {"a", "a.b", "a.b.c", ""}


def test_layers_tell_forward_from_backward():
    rows = [Row("forward", "fc", mm_op(2, 3, 4), 1), Row("backward", "fc", mm_op(2, 4, 3), 2)]
    rows += [Row("backward/recompute", "fc", mm_op(2, 3, 4), 1), Row("evaluate/inference", "fc", mm_op(2, 3, 4), 1)]
    (line,) = View(make_run(rows)).layers(5)
    assert (line.during("forward", "inference"), line.during("backward")) == (96, 144)


@pytest.mark.parametrize("problem", [{"format": "pdf"}, {"by": "colour"}, {"cost_model": "calories"}])
def test_a_name_that_does_not_exist_is_answered_with_those_that_do(problem):
    with pytest.raises(UnknownNameError, match=r"there are|choose from"):
        report(make_run([Row("forward", "", add_op(2), 1)]), **problem)


def test_many_light_places_take_no_room_from_the_model() -> None:
    light = {f"helper_{i}": 1 for i in range(30)}
    groups = folded({"model.layers.0.up": 4000, "model.layers.0.down": 3000, "model.head": 2000, **light}, 5)
    assert [group.name for group in groups[:3]] == ["model.layers.0.up", "model.layers.0.down", "model.head"]
