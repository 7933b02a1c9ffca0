"""Small ONNX models for tests, made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

import bitwatt
from bitwatt.backends.onnx import count

FLOAT = TensorProto.FLOAT


def weight(name: str, *shape: int, dtype: int = FLOAT) -> onnx.TensorProto:
    array = np.zeros(shape, helper.tensor_dtype_to_np_dtype(dtype))
    return onnx.numpy_helper.from_array(array, name)


def constant(name: str, value: Any, dtype: str = "int64") -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.array(value, dtype), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Any],
    held: Sequence[onnx.TensorProto] = (),
    outputs: Sequence[str] = (),
    **opsets: int,
) -> onnx.ModelProto:
    """`inputs` are shapes, or pairs of a format and a shape. Domains are named with underscores: ai_onnx_ml=3."""
    given = [
        helper.make_tensor_value_info(
            name, *(shape if isinstance(shape[:1], tuple) and _typed(shape) else (FLOAT, shape))
        )
        for name, shape in inputs.items()
    ]
    names = outputs or list(nodes[-1].output)
    made = [onnx.ValueInfoProto(name=name) for name in names]
    imports = {"": 21} | {domain.replace("_", "."): version for domain, version in opsets.items()}
    graph = helper.make_graph(list(nodes), "test", given, made, list(held))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*pair) for pair in imports.items()])


def _typed(shape: Any) -> bool:
    return len(shape) == 2 and isinstance(shape[1], (tuple, list))


def one(op: str, inputs: Mapping[str, Any], held: Sequence[onnx.TensorProto] = (), domain: str = "", outputs: int = 1,
        **options: Any) -> onnx.ModelProto:  # fmt: skip
    """A model of a single node; inputs first, then what it holds."""
    names = [*inputs, *(tensor.name for tensor in held)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain=domain, **options)
    opsets = {domain.replace(".", "_"): 3 if domain == "ai.onnx.ml" else 1} if domain else {}
    return model([node], inputs, held, **opsets)


def kinds(given: onnx.ModelProto | bitwatt.Run, part: str | None = None) -> dict[str, int]:
    """Operations by kind, multiply-accumulates among them."""
    run = given if isinstance(given, bitwatt.Run) else count(given)
    totals = bitwatt.totals(run, "flops")
    assert totals.missing == {}, [entry.reason for entry in totals.entries]
    found: dict[str, int] = {}
    for entry in totals.entries:
        assert entry.work is not None
        for kind, _, of, n in entry.work.ops:
            if part is None or of == part:
                found[kind] = found.get(kind, 0) + n * entry.row.calls
        for product, times in entry.work.products if part is None else ():
            found["mac"] = found.get("mac", 0) + product.macs * times * entry.row.calls
    return found


def macs(given: onnx.ModelProto | bitwatt.Run) -> int:
    return kinds(given).get("mac", 0)


def widths(given: onnx.ModelProto) -> set[tuple[str, str, str]]:
    """Of its products: both operands, and what they ran in."""
    entries = bitwatt.totals(count(given), "macs").entries
    return {(p.a.name, p.b.name, p.executed.name) for e in entries if e.work for p, _ in e.work.products}
