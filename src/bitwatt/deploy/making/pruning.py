"""An ONNX graph cut down to the one output that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def prune(model: Any, output: str) -> Any:
    """Without the nodes, weights and inputs that the output does not need; a copy."""
    import onnx

    found = onnx.ModelProto()
    found.CopyFrom(model)
    graph = found.graph
    needed, kept = {output}, []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(read(node))
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(kept)]
    del graph.node[:]
    graph.node.extend(nodes)
    for held, name in ((graph.output, {output}), (graph.initializer, needed), (graph.value_info, needed)):
        stay = [entry for entry in held if entry.name in name]
        del held[:]
        held.extend(stay)
    return imported(found)


def read(node: Any) -> Iterator[str]:
    """Names a node reads, also inside its bodies."""
    yield from node.input
    for attribute in node.attribute:
        for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            for inner in body.node:
                yield from read(inner)
            yield from (value.name for value in body.output)


def imported(model: Any) -> Any:
    """With the standard operators declared, once: the quantiser insists on that, also where there are none."""
    import onnx

    versions = {"": 18} if not any(entry.domain in ("", "ai.onnx") for entry in model.opset_import) else {}
    for entry in model.opset_import:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        versions[domain] = max(entry.version, versions.get(domain, 0))
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*entry) for entry in versions.items())
    return model


def without_zipmap(model: Any) -> Any:
    """Scores as a matrix: a ZipMap makes a Python dict of every row. In place."""
    import onnx

    graph = model.graph
    doubles = {onnx.TensorProto.DOUBLE} & {value.type.tensor_type.elem_type for value in graph.input}
    domains = {name: node.domain for node in graph.node for name in node.output}
    for node in [node for node in graph.node if node.op_type == "ZipMap"]:
        standard = domains[node.input[0]] != "ai.onnx.ml"  # whose operators give scores in float32 always
        kind = onnx.TensorProto.DOUBLE if doubles and standard else onnx.TensorProto.FLOAT
        graph.node.remove(node)
        for value in [value for value in graph.output if value.name == node.output[0]]:
            value.CopyFrom(onnx.helper.make_tensor_value_info(node.input[0], kind, [None, None]))
    return model
