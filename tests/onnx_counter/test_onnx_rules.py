"""Rules of ONNX's default domain against arithmetic by hand."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import bitwatt
from bitwatt.backends.onnx import count
from onnx_counter.graphs import constant, kinds, macs, model, one, weight, widths

INT8, UINT8, INT32 = TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32


def test_a_convolution_is_the_matrix_product_it_unrolls_to() -> None:
    # 2 pictures, 8·8 places with padding 1, 16 channels, 3/1·3·3 taps
    conv = one("Conv", {"X": (2, 3, 8, 8)}, [weight("W", 16, 3, 3, 3), weight("B", 16)], pads=[1] * 4)
    assert kinds(conv) == {"mac": 2 * 64 * 16 * 27, "add": 2 * 64 * 16}
    grouped = one("Conv", {"X": (1, 8, 5, 5)}, [weight("W", 8, 1, 3, 3)], group=8)
    assert kinds(grouped) == {"mac": 9 * 8 * 9}


def test_a_transposed_convolution_visits_each_place_of_its_input() -> None:
    # 4·4 places of 6 channels, each spread over 3 channels of 2·2
    assert macs(one("ConvTranspose", {"X": (1, 6, 4, 4)}, [weight("W", 6, 3, 2, 2)])) == 16 * 6 * 3 * 4


def test_products_in_all_their_forms() -> None:
    assert macs(one("MatMul", {"A": (7, 4, 5), "B": (5, 6)})) == 7 * 4 * 5 * 6
    assert macs(one("MatMul", {"A": (2, 3, 4, 5), "B": (3, 5, 6)})) == 2 * 3 * 4 * 5 * 6
    gemm = one("Gemm", {"A": (5, 4), "B": (6, 5)}, [weight("C", 6)], transA=1, transB=1, alpha=0.5)
    assert kinds(gemm) == {"mac": 4 * 5 * 6, "add": 4 * 6, "mul": 4 * 6}
    assert macs(one("Einsum", {"A": (2, 3, 4), "B": (2, 5, 4)}, equation="bij,bkj->bik")) == 2 * 3 * 4 * 5
    assert macs(one("Einsum", {"A": (2, 7, 3, 4), "B": (4, 5)}, equation="...ij,jk->...ik")) == 2 * 7 * 3 * 4 * 5


@pytest.mark.parametrize(
    ("op", "options", "expected"),
    [
        ("Relu", {}, {"compare": 24}),
        ("Sigmoid", {}, {"sigmoid": 24}),
        ("Gelu", {"approximate": "tanh"}, {"mul": 6 * 24, "add": 2 * 24, "tanh": 24}),
        ("Softmax", {}, {"compare": 24, "add": 48, "exp": 24, "div": 24}),
        ("LogSoftmax", {"axis": 1}, {"compare": 24, "add": 72, "exp": 24, "log": 8}),
        ("HardSwish", {}, {"mul": 48, "add": 24, "compare": 48}),
        ("ReduceMean", {}, {"add": 24, "div": 1}),
        ("ReduceL2", {}, {"mul": 24, "add": 24, "sqrt": 1}),
        ("LpNormalization", {"axis": 1}, {"mul": 24, "add": 24, "sqrt": 8, "div": 24}),
        ("Transpose", {}, {}),
        ("Det", {}, None),
    ],
)
def test_operators_on_one_tensor(op: str, options: dict, expected: dict | None) -> None:
    shape = (2, 4, 4) if op == "Det" else (2, 3, 4)
    found = kinds(one(op, {"X": shape}, **options))
    assert found == expected if expected is not None else found["mul"] > 0


def test_norms_count_as_those_of_torch() -> None:
    # 6 rows of 8: 3 add, 1 mul for the statistics, 1 mul for 1/σ, 1 mul for γ, 1 add for β; 3 div, 1 add, 1 sqrt a row
    norm = one("LayerNormalization", {"X": (2, 3, 8)}, [weight("S", 8), weight("B", 8)])
    assert kinds(norm) == {"add": 4 * 48 + 6, "mul": 3 * 48, "div": 18, "sqrt": 6}
    batch = one("BatchNormalization", {"X": (2, 3, 5)}, [weight(name, 3) for name in "SBMV"])
    # one line per element; per channel 1/√(v + ε) and the line's two coefficients
    assert kinds(batch) == {"mul": 30 + 6, "add": 30 + 3 + 3, "div": 3, "sqrt": 3}


def test_pooling_and_resizing() -> None:
    assert kinds(one("MaxPool", {"X": (1, 2, 4, 4)}, kernel_shape=[2, 2], strides=[2, 2])) == {"compare": 8 * 4}
    pooled = one("AveragePool", {"X": (1, 2, 4, 4)}, kernel_shape=[2, 2], strides=[2, 2])
    assert kinds(pooled) == {"add": 8 * 4, "div": 8}
    assert kinds(one("GlobalAveragePool", {"X": (1, 2, 4, 4)})) == {"add": 32, "div": 2}
    scales = constant("s", [1, 1, 2, 2], "float32")
    nodes = [helper.make_node("Resize", ["X", "", "s"], ["Y"], mode="linear")]
    # 3 blends of 2 mul, 1 add for each of 2·8·8 results
    assert kinds(model(nodes, {"X": (1, 2, 4, 4)}, [scales])) == {"mul": 6 * 128, "add": 3 * 128}


def test_recurrent_layers() -> None:
    # 5 steps of 2 rows, 3 wide, 4 hidden, 2 directions: 4·4·(3 + 4) products a row
    held = [weight("W", 2, 16, 3), weight("R", 2, 16, 4), weight("B", 2, 32)]
    lstm = one("LSTM", {"X": (5, 2, 3)}, held, hidden_size=4, direction="bidirectional")
    assert macs(lstm) == 2 * 10 * 16 * 7
    gru = one("GRU", {"X": (5, 2, 3)}, [weight("W", 1, 12, 3), weight("R", 1, 12, 4)], hidden_size=4)
    assert macs(gru) == 10 * 12 * 7


def test_attention_counts_keys_of_the_past_and_shared_heads() -> None:
    # 2 sequences of 4 heads, 3 queries on 5 + 3 keys, 8 wide: two products
    node = helper.make_node("Attention", ["Q", "K", "V", "", "pk", "pv"], ["Y", "k", "v"], is_causal=1)
    shapes = {"Q": (2, 4, 3, 8), "K": (2, 2, 3, 8), "V": (2, 2, 3, 8), "pk": (2, 2, 5, 8), "pv": (2, 2, 5, 8)}
    attention = helper.make_model(model([node], shapes).graph, opset_imports=[helper.make_opsetid("", 23)])
    assert macs(attention) == 2 * 8 * 3 * 8 * 8
    # query i sees 6, 7 and 8 keys of 8
    (entry,) = bitwatt.totals(count(attention), "macs").entries
    assert entry.work is not None
    assert {product.visible for product, _ in entry.work.products} == {8 * (6 + 7 + 8) * 8}


def test_powers_whose_exponent_the_graph_holds() -> None:
    def power(y: float) -> dict[str, int]:
        return kinds(model([helper.make_node("Pow", ["X", "y"], ["Z"])], {"X": (5,)}, [constant("y", y, "float32")]))

    assert power(2.0) == {"mul": 5}
    assert power(0.5) == {"sqrt": 5}
    assert power(2.5) == {"pow": 5}


def test_products_of_integers_run_in_integers() -> None:
    integer = one("MatMulInteger", {"A": (UINT8, (4, 5)), "B": (INT8, (5, 6))})
    assert macs(integer) == 120
    assert widths(integer) == {("uint8", "int8", "uint8")}
    scales = [constant("xs", 0.1, "float32"), constant("xz", 0, "uint8")]
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    held = [*scales, weight("w", 8, 3, 3, 3, dtype=INT8), constant("ws", 0.1, "float32"), constant("wz", 0, "int8"),
            constant("ys", 0.1, "float32"), constant("yz", 0, "uint8"), weight("b", 8, dtype=INT32)]  # fmt: skip
    conv = model([helper.make_node("QLinearConv", names, ["y"])], {"x": (UINT8, (1, 3, 6, 6))}, held)
    assert macs(conv) == 16 * 8 * 27
    assert widths(conv) == {("uint8", "int8", "uint8")}
    assert kinds(conv, "quantisation")["cast"] == 16 * 8


def qdq() -> onnx.ModelProto:
    """x and w quantised and expanded again, as a quantizer leaves a graph that nobody has optimised."""
    held = [constant("s", 0.1, "float32"), constant("z", 0, "uint8"), weight("w", 8, 6, dtype=INT8),
            constant("wz", 0, "int8")]  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Reshape", ["d", "shape"], ["r"]),
        helper.make_node("DequantizeLinear", ["w", "s", "wz"], ["e"]),
        helper.make_node("MatMul", ["r", "e"], ["y"]),
    ]
    return model(nodes, {"x": (2, 2, 8)}, [*held, constant("shape", [-1, 8])])


def test_what_was_expanded_carries_what_it_was_expanded_from() -> None:
    assert widths(qdq()) == {("uint8", "int8", "float32")}
    macs_ = 4 * 8 * 6
    run = count(qdq())
    assert bitwatt.totals(run, "bops:product").total == macs_ * 8 * 8
    executed = bitwatt.totals(run, "bops:executed").by("op")
    assert executed["onnx.MatMul"] == 2 * macs_ * 32
    assert bitwatt.totals(run, "flops").by("part")["quantisation"] == 32 * 2 + 32 * 2 + 48 * 2


def test_bytes_are_those_of_inputs_and_outputs() -> None:
    run = count(one("MatMul", {"A": (4, 5)}, [weight("B", 5, 6)]))
    assert bitwatt.totals(run, "bytes").total == 4 * (20 + 30 + 24)
    four = one("DequantizeLinear", {"x": (TensorProto.INT4, (10,)), "s": ()})
    assert bitwatt.totals(count(four), "bytes").total == 5 + 4 + 40


def test_looking_up_rows_reads_only_those() -> None:
    run = count(one("Gather", {"data": (1000, 8), "i": (TensorProto.INT64, (3,))}))
    assert bitwatt.totals(run, "bytes").total == 3 * 8 * 4 * 2 + 3 * 8
    assert np.prod((3, 8)) == kinds(run)["index"]
