"""Graphs inside nodes: how often they run, and what is said where data decide."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import bitwatt
from bitwatt.backends.onnx import count
from onnx_counter.graphs import FLOAT, constant, kinds, macs, model, weight

BOOL, INT64 = TensorProto.BOOL, TensorProto.INT64


def value(name: str, shape: tuple[int, ...] | None = None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def loop(body: list[onnx.NodeProto], *, trips: list[onnx.TensorProto], given: dict, scans: int = 0) -> onnx.ModelProto:
    """A loop that carries x, and whose condition is handed through."""
    inside = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c_out"]), *body], "body",
        [value("i", (), INT64), value("c", (), BOOL), value("h")],
        [value("c_out", (), BOOL), value("h_out"), *[value("s_out")] * scans],
    )  # fmt: skip
    made = ["y", *["s"] * scans]
    node = helper.make_node("Loop", ["m", "", "x"], made, body=inside, name="loop")
    return model([node], given, trips, outputs=made)


def test_a_loop_runs_as_often_as_its_constant_says() -> None:
    step = [helper.make_node("MatMul", ["h", "w"], ["h_out"])]
    for rounds in (0, 1, 5, 1000):
        given = loop(step, trips=[constant("m", rounds), weight("w", 8, 8)], given={"x": (2, 8)})
        assert macs(given) == rounds * 2 * 8 * 8


@pytest.mark.parametrize("rounds", [5, 100])
def test_a_loop_whose_state_grows_is_counted_round_by_round(rounds: int) -> None:
    # h has 1, 2, 3, ... rows
    step = [helper.make_node("Relu", ["h"], ["r"]), helper.make_node("Concat", ["r", "row"], ["h_out"], axis=0)]
    given = loop(step, trips=[constant("m", rounds), weight("row", 1, 4)], given={"x": (1, 4)})
    assert kinds(given) == {"compare": 4 * rounds * (rounds + 1) // 2}


def test_what_each_round_puts_aside_is_stacked() -> None:
    step = [helper.make_node("Relu", ["h"], ["h_out"]), helper.make_node("Identity", ["h"], ["s_out"])]
    given = loop(step, trips=[constant("m", 7)], given={"x": (2, 3)}, scans=1)
    given.graph.node.append(helper.make_node("Exp", ["s"], ["z"]))
    assert kinds(given)["exp"] == 7 * 6


def test_a_loop_that_data_end_is_counted_once_and_said_so() -> None:
    step = [helper.make_node("MatMul", ["h", "w"], ["h_out"])]
    given = loop(step, trips=[weight("w", 8, 8)], given={"x": (2, 8), "m": (INT64, ())})
    run = count(given)
    totals = bitwatt.totals(run, "macs")
    assert totals.total == 2 * 8 * 8
    assert totals.coverage.estimated > 0
    assert run.notes == ("loop: how often the loop runs depends on data; one round was counted",)


def test_a_scan_runs_along_an_axis() -> None:
    # 11 steps of h·W and a sum
    body = helper.make_graph(
        [helper.make_node("MatMul", ["h", "w"], ["p"]), helper.make_node("Add", ["p", "x"], ["h_out"]),
         helper.make_node("Identity", ["h_out"], ["o"])],
        "body", [value("h"), value("x")], [value("h_out"), value("o")],
    )  # fmt: skip
    node = helper.make_node("Scan", ["h0", "xs"], ["h_end", "os"], body=body, num_scan_inputs=1, scan_input_axes=[1])
    given = model([node, helper.make_node("Exp", ["os"], ["z"])], {"h0": (2, 8), "xs": (2, 11, 8)}, [weight("w", 8, 8)])
    assert kinds(given) == {"mac": 11 * 2 * 8 * 8, "add": 11 * 16, "exp": 11 * 16}


def branches(held: list[onnx.TensorProto], given: dict) -> onnx.ModelProto:
    heavy = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"])], "t", [], [value("b")]
    )
    light = helper.make_graph([helper.make_node("Exp", ["x"], ["c"])], "e", [], [value("c")])
    node = helper.make_node("If", ["cond"], ["y"], then_branch=heavy, else_branch=light, name="fork")
    return model([node], given, [weight("w", 8, 8), *held])


def test_a_branch_that_a_constant_chooses_is_the_only_one_counted() -> None:
    given = {"x": (2, 8)}
    assert kinds(branches([constant("cond", True, "bool")], given)) == {"mac": 128, "compare": 16}
    assert kinds(branches([constant("cond", False, "bool")], given)) == {"exp": 16}


def test_of_branches_that_data_choose_the_larger_is_counted_as_an_estimate() -> None:
    run = count(branches([], {"x": (2, 8), "cond": (BOOL, ())}))
    assert kinds(run) == {"mac": 128, "compare": 16}
    assert bitwatt.totals(run).coverage.estimated == 2
    assert run.notes == ("fork: which branch is taken depends on data; the larger one was counted",)


def test_sequences_are_followed_item_by_item() -> None:
    # (10, 4) split into 4, 4 and 2 rows, each through a body
    body = helper.make_graph([helper.make_node("MatMul", ["e", "w"], ["f"])], "b", [value("e")], [value("f")])
    nodes = [
        helper.make_node("SplitToSequence", ["x", "by"], ["parts"], axis=0),
        helper.make_node("SequenceMap", ["parts"], ["mapped"], body=body),
        helper.make_node("SequenceAt", ["mapped", "last"], ["z"]),
        helper.make_node("Exp", ["z"], ["e2"]),
        helper.make_node("ConcatFromSequence", ["mapped"], ["y"], axis=0),
        helper.make_node("Relu", ["y"], ["r"]),
    ]
    given = model(nodes, {"x": (10, 4)}, [constant("by", 4), constant("last", -1), weight("w", 4, 3)])
    assert kinds(given) == {"mac": 10 * 4 * 3, "exp": 6, "compare": 30}


def test_a_loop_that_grows_for_long_is_estimated_from_some_point_on() -> None:
    step = [helper.make_node("Relu", ["h"], ["r"]), helper.make_node("Concat", ["r", "row"], ["h_out"], axis=0)]
    run = count(loop(step, trips=[constant("m", 1500), weight("row", 1, 4)], given={"x": (1, 4)}))
    # 1000 rounds one by one, then 500 of the size of the next
    assert kinds(run) == {"compare": 4 * (1000 * 1001 // 2 + 500 * 1001)}
    assert "those after 1,000 were taken like the next" in run.notes[0]
    assert bitwatt.totals(run).coverage.estimated > 0
