"""What ONNX Runtime makes of graphs: its own operators by hand, and models that it optimised and quantised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import bitwatt
from bitwatt.backends.onnx import count
from bitwatt.backends.onnx.names import INPUTS
from bitwatt.integers import share
from bitwatt.registry import RULES
from onnx_counter.graphs import constant, kinds, macs, model, one, weight, widths

MS = "com.microsoft"
INT8, UINT8 = TensorProto.INT8, TensorProto.UINT8


def ms(op: str, inputs: dict[str, Any], held: Any = (), outputs: int = 1, **options: Any) -> onnx.ModelProto:
    return one(op, inputs, held, domain=MS, outputs=outputs, **options)


def test_names_of_inputs_are_those_of_the_runtime() -> None:
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    schemas: dict[tuple[str, str], Any] = {}
    for schema in get_all_operator_schema():
        known = schemas.get((schema.domain, schema.name))
        if known is None or known.since_version < schema.since_version:
            schemas[schema.domain, schema.name] = schema
    checked = 0
    for name, inputs in INPUTS.items():
        for domain in (MS, "com.microsoft.nchwc", "com.ms.internal.nhwc"):
            if (domain, name) in schemas:
                told = [given.name for given in schemas[domain, name].inputs]
                if domain.endswith("nhwc") and RULES.find(f"com_ms_internal_nhwc.{name}") is None:
                    continue
                assert [given.rstrip("*") for given in inputs][: len(told)] == told[: len(inputs)], (domain, name)
                checked += 1
    assert checked > 60


def test_products_of_integers() -> None:
    scale, zero = constant("s", 0.1, "float32"), constant("z", 0, "int8")
    dynamic = ms("DynamicQuantizeMatMul", {"A": (4, 5)}, [weight("B", 5, 6, dtype=INT8), scale, zero])
    assert macs(dynamic) == 120
    assert widths(dynamic) == {("uint8", "int8", "uint8")}
    # A: a range of 2 compare, then 1 mul, 1 add, 1 cast, 2 compare; the result scaled back
    assert kinds(dynamic, "quantisation") == {"compare": 80, "mul": 20 + 24, "add": 20, "cast": 20}
    names = ["A", "s", "z", "B", "s", "z", "C", "s", "z"]
    node = helper.make_node("QGemm", names, ["Y"], domain=MS, transB=1)
    held = [weight("B", 6, 5, dtype=INT8), weight("C", 6, dtype=TensorProto.INT32), scale, zero]
    gemm = model([node], {"A": (INT8, (4, 5))}, held, com_microsoft=1)
    assert macs(gemm) == 120
    assert widths(gemm) == {("int8", "int8", "int8")}


@pytest.mark.parametrize(("level", "ran"), [(0, "float32"), (4, "int8")])
def test_weights_of_few_bits(level: int, ran: str) -> None:
    # 64 x 48 weights of 4 bits in blocks of 32, two to a byte
    held = [weight("B", 48, 2, 16, dtype=UINT8), weight("scales", 96)]
    given = ms("MatMulNBits", {"A": (2, 3, 64)}, held, K=64, N=48, bits=4, block_size=32, accuracy_level=level)
    assert macs(given) == 6 * 64 * 48
    assert widths(given) == {(ran, "int4", ran)}
    run = count(given)
    assert bitwatt.totals(run, "bytes").total == 4 * 384 + 1536 + 4 * 96 + 4 * 288
    (layer,) = run.layers.values()
    assert (layer.weight_dtype, layer.parameters, layer.weight_bytes) == ("int4", 64 * 48, 1536)


def test_fused_operators() -> None:
    conv = ms("FusedConv", {"X": (1, 3, 8, 8)}, [weight("W", 4, 3, 3, 3), weight("B", 4)], activation="Relu")
    assert kinds(conv) == {"mac": 36 * 4 * 27, "add": 144, "compare": 144}
    last = ms("NhwcFusedConv", {"X": (1, 8, 8, 3)}, [weight("W", 4, 3, 3, 3), weight("B", 4)], activation="Relu")
    assert kinds(last) == kinds(conv)
    product = ms("FusedMatMul", {"A": (2, 5, 4), "B": (2, 6, 5)}, transA=1, transB=1, alpha=0.5)
    assert kinds(product) == {"mac": 2 * 4 * 5 * 6, "mul": 48}
    gelu = ms("BiasGelu", {"A": (4, 8)}, [weight("B", 8)])
    assert kinds(gelu) == {"mul": 96, "add": 64, "erf": 32}
    norm = ms("SkipLayerNormalization", {"a": (2, 3, 8), "b": (2, 3, 8)}, [weight("g", 8), weight("h", 8)], outputs=4)
    assert kinds(norm) == {"add": 48 + 4 * 48 + 6, "mul": 144, "div": 18, "sqrt": 6}


def test_layouts_of_the_runtime_change_no_products() -> None:
    held = [weight("W", 16, 8, 3, 3), weight("B", 16)]
    last = one("Conv", {"X": (2, 6, 6, 8)}, held, domain="com.ms.internal.nhwc")
    blocked = one("Conv", {"X": (2, 8, 6, 6)}, held, domain="com.microsoft.nchwc", activation="Relu")
    assert macs(last) == macs(blocked) == 2 * 16 * 16 * 8 * 9
    assert count(last).ledger != count(blocked).ledger


def test_attention_with_its_products() -> None:
    # 2 sequences of 6, 8 wide, 2 heads: q, k and v in one product, then scores and values
    given = ms("Attention", {"x": (2, 6, 8)}, [weight("w", 8, 24), weight("b", 24)], outputs=2, num_heads=2)
    assert macs(given) == 12 * 8 * 24 + 2 * 2 * 2 * 6 * 6 * 4
    multi = ms("MultiHeadAttention", {"q": (2, 6, 8), "k": (2, 9, 8), "v": (2, 9, 8)}, num_heads=2)
    assert macs(multi) == 2 * 2 * 2 * 6 * 9 * 4


def test_attention_with_shared_heads_and_a_cache() -> None:
    # one new token after 7; 4 query heads over 2 of keys, 8 wide
    inputs = {"q": (1, 1, 32), "k": (1, 1, 16), "v": (1, 1, 16), "pk": (1, 2, 7, 8), "pv": (1, 2, 7, 8),
              "len": (TensorProto.INT32, (1,)), "total": (TensorProto.INT32, ())}  # fmt: skip
    given = ms("GroupQueryAttention", inputs, outputs=3, num_heads=4, kv_num_heads=2)
    assert macs(given) == 2 * 4 * 1 * 8 * 8


def test_experts_are_counted_where_rows_go() -> None:
    # 6 rows, each through 2 of 4 experts: 8 to 16 and back
    node = helper.make_node("MoE", ["x", "r", "w1", "", "w2"], ["y"], domain=MS, k=2)
    held = [weight("w1", 4, 8, 16), weight("w2", 4, 16, 8)]
    given = model([node], {"x": (6, 8), "r": (6, 4)}, held, com_microsoft=1)
    assert macs(given) == 6 * 2 * (8 * 16 + 16 * 8)


def test_quantised_pooling_and_sums() -> None:
    scale, zero = constant("s", 0.1, "float32"), constant("z", 0, "uint8")
    names = ["A", "s", "z", "B", "s", "z", "s", "z"]
    node = helper.make_node("QLinearAdd", names, ["C"], domain=MS)
    given = model([node], {"A": (UINT8, (2, 3)), "B": (UINT8, (3,))}, [scale, zero], com_microsoft=1)
    assert kinds(given, "") == {"add": 6}
    assert share(given) == (0, 0, 1, 1)


def test_what_is_integer_and_what_is_not() -> None:
    # shape arithmetic in 64 bits is no computing; an 8-bit maximum is
    lengths = model(
        [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Add", ["s", "s"], ["y"])], {"x": (3, 4)}
    )
    assert share(lengths) == (0, 0, 0, 0)
    assert share(one("MaxPool", {"X": (UINT8, (1, 2, 4, 4))}, kernel_shape=[2, 2])) == (0, 0, 1, 1)
    assert share(one("MatMul", {"A": (4, 5), "B": (5, 6)})) == (0, 120, 0, 1)
    assert share(one("QuantizeLinear", {"x": (4, 5), "s": ()})) == (0, 0, 0, 0)


class Rows:
    """Calibration data."""

    def __init__(self, name: str, *shape: int) -> None:
        draw = np.random.default_rng(0)
        self._left = [{name: draw.standard_normal(shape).astype("float32")} for _ in range(3)]

    def get_next(self) -> dict[str, Any] | None:
        return self._left.pop() if self._left else None


def network(path: Path) -> int:
    """Two convolutions, a pool and a linear layer; their multiply-accumulates."""
    draw = np.random.default_rng(0)

    def held(name: str, *shape: int) -> onnx.TensorProto:
        return onnx.numpy_helper.from_array(draw.standard_normal(shape).astype("float32"), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1] * 4, name="c1"),
        helper.make_node("Relu", ["c1"], ["r1"], name="r1"),
        helper.make_node("MaxPool", ["r1"], ["p"], kernel_shape=[2, 2], strides=[2, 2], name="p"),
        helper.make_node("Conv", ["p", "w2", "b2"], ["c2"], pads=[1] * 4, name="c2"),
        helper.make_node("Relu", ["c2"], ["r2"], name="r2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["g"], name="g"),
        helper.make_node("Flatten", ["g"], ["f"], name="f"),
        helper.make_node("MatMul", ["f", "w3"], ["m"], name="m"),
        helper.make_node("Add", ["m", "b3"], ["y"], name="a"),
    ]
    weights = [held("w1", 16, 3, 3, 3), held("b1", 16), held("w2", 32, 16, 3, 3), held("b2", 32), held("w3", 32, 10),
               held("b3", 10)]  # fmt: skip
    given = model(nodes, {"x": (2, 3, 16, 16)}, weights)
    given.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 10)))
    given.ir_version = 10
    onnx.save(given, path)
    return 2 * (256 * 16 * 27 + 64 * 32 * 144 + 32 * 10)


def optimised(path: Path, level: str = "ALL") -> Path:
    """The graph that the runtime really executes."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(path.with_suffix(f".{level}.onnx"))
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return Path(options.optimized_model_filepath)


def test_optimising_changes_no_products(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    expected = network(path)
    for graph in (path, optimised(path), optimised(path, "EXTENDED"), optimised(path, "BASIC")):
        totals = bitwatt.totals(count(graph), "macs")
        assert totals.missing == {}
        assert totals.total == expected
        assert share(graph)[:3] == (0, expected, 0)


@pytest.mark.filterwarnings("ignore")
def test_a_quantised_model_is_in_integers_once_it_is_optimised(tmp_path: Path) -> None:
    from onnxruntime.quantization import QuantFormat, quantize_static

    path = tmp_path / "net.onnx"
    expected = network(path)
    for form in (QuantFormat.QDQ, QuantFormat.QOperator):
        made = tmp_path / f"{form}.onnx"
        quantize_static(path, made, Rows("x", 2, 3, 16, 16), quant_format=form)
        assert share(made).macs == expected
        assert share(made).integer_macs == (0 if form is QuantFormat.QDQ else expected)
        for graph in (optimised(made), optimised(made, "EXTENDED")):
            found = share(graph)
            assert (found.integer_macs, found.macs) == (expected, expected)
            assert 0 < found.integer_nodes <= found.nodes
            assert bitwatt.totals(count(graph)).missing == {}
    # before it is optimised, operands carry 8 bits and are multiplied as floats
    before = bitwatt.totals(count(tmp_path / "QDQ.onnx"), "bops:product")
    assert before.total == expected * 64


@pytest.mark.filterwarnings("ignore")
def test_dynamic_quantisation_takes_products_with_weights(tmp_path: Path) -> None:
    from onnxruntime.quantization import quantize_dynamic

    path, made = tmp_path / "net.onnx", tmp_path / "dynamic.onnx"
    expected = network(path)
    quantize_dynamic(path, made, op_types_to_quantize=["MatMul"])
    linear = 2 * 32 * 10
    for graph in (made, optimised(made)):
        assert share(graph)[:2] == (linear, expected)
    assert "com_microsoft.DynamicQuantizeMatMul" in {row.op.name for row in count(optimised(made)).ledger}


@pytest.mark.filterwarnings("ignore")
def test_inferred_shapes_are_those_that_the_runtime_makes(tmp_path: Path) -> None:
    from onnxruntime.quantization import QuantFormat, quantize_static

    path, made = tmp_path / "net.onnx", tmp_path / "quantised.onnx"
    network(path)
    quantize_static(path, made, Rows("x", 2, 3, 16, 16), quant_format=QuantFormat.QOperator)
    for graph in (optimised(path, "EXTENDED"), optimised(made), optimised(made, "EXTENDED")):
        told = onnx.load(graph)
        names = [name for node in told.graph.node for name in node.output if name]
        del told.graph.output[:]
        told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(told.SerializeToString(), options, providers=["CPUExecutionProvider"])
        ran = {name: array.shape for name, array in zip(names, session.run(names, Rows("x", 2, 3, 16, 16).get_next()),
                                                        strict=True)}  # fmt: skip
        found: dict[str, tuple[int, ...]] = {}
        for node, row in zip(onnx.load(graph).graph.node, count(graph).ledger, strict=True):
            found |= dict(zip(node.output, (spec.shape for spec in row.op.out), strict=False))
        assert found == {name: ran[name] for name in found}
        assert len(found) >= len(told.graph.node) - 2
