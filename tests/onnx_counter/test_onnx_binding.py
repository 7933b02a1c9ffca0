"""How a model is read and its open dimensions are bound; scopes, layers, and what cannot be known."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import bitwatt
from bitwatt.backends.onnx import count
from bitwatt.errors import BitwattError
from onnx_counter.graphs import constant, kinds, macs, model, weight


def linear(*shape: int | str | None) -> onnx.ModelProto:
    return model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="/head/MatMul")], {"x": shape}, [weight("w", 8, 3)]
    )


def test_a_model_comes_as_a_path_bytes_or_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "linear.onnx"
    onnx.save(linear(4, 8), path)
    runs = [count(path), count(str(path)), count(path.read_bytes()), count(linear(4, 8)), bitwatt.estimate(path),
            bitwatt.estimate(str(path)), bitwatt.estimate(linear(4, 8))]  # fmt: skip
    assert {macs(run) for run in runs} == {4 * 8 * 3}
    assert runs[0].name == "linear.onnx"
    assert bitwatt.totals(runs[0], "macs").by("phase") == {"forward": 96}


def test_what_is_no_model_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("this is no model")
    for wrong in (tmp_path / "absent.onnx", tmp_path / "text.onnx", b"\x00\xff", 3):
        with pytest.raises(BitwattError):
            count(wrong)


def test_an_open_batch_is_bound_or_taken_as_one_and_said_so() -> None:
    for symbol in ("N", None):
        assert macs(count(linear(symbol, 8), batch=5)) == 5 * 24
        run = count(linear(symbol, 8))
        assert macs(run) == 24
        assert run.notes == ("the model leaves the batch open: taken as 1",)
    assert count(linear(4, 8)).notes == ()


def test_counting_changes_no_model() -> None:
    given = linear(None, 8)
    before = given.SerializeToString()
    count(given, batch=5)
    assert given.SerializeToString() == before


def test_named_dimensions_are_bound_everywhere_and_sums_of_them_follow() -> None:
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    open_ = model([node], {"a": ("batch", "length", 8), "b": ("batch", 8, "past + length")})
    assert macs(count(open_, {"length": 4, "past": 6}, batch=2)) == 2 * 4 * 8 * 10
    assert macs(count(open_, {"a": (2, 4, 8), "past": 6})) == 2 * 4 * 8 * 10


@pytest.mark.parametrize(
    ("shapes", "batch", "message"),
    [
        (None, 2, "leaves length of 'a' open"),
        ({"a": (2, 4)}, None, "has 3 dimensions, not 2"),
        ({"c": (2, 4, 8)}, None, "nothing in the model is called c"),
        ({"length": -1}, None, "cannot be -1"),
    ],
)
def test_wrong_shapes_are_told(shapes: dict | None, batch: int | None, message: str) -> None:
    open_ = model([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": ("n", "length", 8), "b": (8, 3)})
    with pytest.raises(BitwattError, match=message):
        count(open_, shapes, batch)


def test_a_fixed_batch_is_not_another() -> None:
    assert macs(count(linear(4, 8), batch=4)) == 96
    with pytest.raises(BitwattError, match="fixed at 4, not 5"):
        count(linear(4, 8), batch=5)


def test_shapes_that_the_graph_computes() -> None:
    # x is flattened to (shape(x)[0], -1), as exporters write it
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axes"], ["u"]),
        helper.make_node("Concat", ["u", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    held = [constant("zero", 0), constant("axes", [0]), constant("rest", [-1]), weight("w", 12, 5)]
    assert macs(count(model(nodes, {"x": ("n", 3, 4)}, held), batch=7)) == 7 * 12 * 5


def test_a_shape_that_data_decide_is_missing_until_it_is_given() -> None:
    nodes = [helper.make_node("NonZero", ["x"], ["i"]), helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
             helper.make_node("MatMul", ["w", "f"], ["y"])]  # fmt: skip
    given = model(nodes, {"x": (4, 5)}, [weight("w", 3, 2)])
    totals = bitwatt.totals(count(given), "macs")
    assert totals.missing == {"onnx.Cast": 1, "onnx.MatMul": 1}
    (entry,) = [entry for entry in totals.entries if entry.op.name == "onnx.MatMul"]
    assert "shapes={'f': (...)}" in entry.reason
    assert macs(count(given, {"i": (2, 9)})) == 3 * 2 * 9


def test_weights_in_other_files_are_not_needed(tmp_path: Path) -> None:
    given = model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (4, 800)}, [weight("w", 800, 300)])
    path = tmp_path / "big.onnx"
    onnx.save(given, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "weights.bin").unlink()
    run = count(path)
    assert macs(run) == 4 * 800 * 300
    assert bitwatt.totals(run, "bytes").total == 4 * (3200 + 240_000 + 1200)


def test_functions_of_a_model_are_unfolded() -> None:
    inner = helper.make_function("mine", "Twice", ["a"], ["c"], [
        helper.make_node("Add", ["a", "a"], ["b"]), helper.make_node("Relu", ["b"], ["c"])
    ], [helper.make_opsetid("", 21)])  # fmt: skip
    given = model([helper.make_node("Twice", ["x"], ["y"], domain="mine")], {"x": (5,)}, mine=1)
    given.functions.append(inner)
    assert kinds(given) == {"add": 5, "compare": 5}


def test_an_operator_that_nobody_knows_is_missing_and_what_follows_by_the_models_word_is_not() -> None:
    nodes = [helper.make_node("Secret", ["x"], ["h"], domain="mine"), helper.make_node("MatMul", ["h", "w"], ["y"])]
    given = model(nodes, {"x": (4, 8)}, [weight("w", 8, 3)], mine=1)
    assert bitwatt.totals(count(given), "macs").missing == {"mine.Secret": 1, "onnx.MatMul": 1}
    given.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, (4, 8)))
    totals = bitwatt.totals(count(given), "macs")
    assert totals.missing == {"mine.Secret": 1}
    assert totals.total == 96


@pytest.mark.parametrize(
    ("name", "scope"),
    [
        ("/layer1/layer1.0/conv1/Conv", "layer1.0.conv1"),
        ("/model/layers.3/attn/MatMul_2", "model.layers.3.attn"),
        ("MatMul_7", "MatMul_7"),
        ("", "y"),
    ],
)
def test_scopes_are_paths_in_names(name: str, scope: str) -> None:
    run = count(model([helper.make_node("MatMul", ["x", "w"], ["y"], name=name)], {"x": (4, 8)}, [weight("w", 8, 3)]))
    assert bitwatt.totals(run, "macs").by("scope") == {scope: 96}
    assert run.layers[scope].shapes == ((8, 3),)
    assert run.layers[scope].parameters == 24


def test_a_weight_is_counted_once_however_many_read_it() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"], name="one"),
             helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
             helper.make_node("MatMul", ["a", "t"], ["y"], name="two")]  # fmt: skip
    run = count(model(nodes, {"x": (4, 8)}, [weight("w", 8, 3)]))
    assert {scope: layer.parameters for scope, layer in run.layers.items()} == {"one": 24, "two": 0}
    assert sum(layer.weight_bytes for layer in run.layers.values()) == 96


def test_a_run_of_a_model_is_kept_and_repriced_like_any_other(tmp_path: Path) -> None:
    from bitwatt.store import load, save

    run = count(linear(4, 8))
    save(run, tmp_path)
    again = load(run.id, tmp_path)
    assert again.ledger == run.ledger
    assert bitwatt.totals(again, "macs").total == 96
    small = bitwatt.what_if(run, weights="int4").run
    assert bitwatt.totals(small, "bops:product").total == 96 * 32 * 4
