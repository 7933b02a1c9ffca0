"""What the graph that onnxruntime really executes computes in.

Asking for INT8 is no proof of it: operators without an integer kernel stay in float, and what a quantiser writes is
rewritten when a session loads it. So the optimised graph is written out and read.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bitwatt.deploy.amounts import percent
from bitwatt.deploy.making import optimising
from bitwatt.deploy.records import Precision
from bitwatt.integers import share

#: A graph with this share of its multiply-accumulates in integers is called INT8.
MOST = 0.95
NAMES = {1: "fp32", 10: "fp16", 11: "fp64", 16: "bf16"}  # element types of ONNX


def inspect(path: Path, asked: str = "", device: str = "cpu") -> Precision:
    """Of the graph in the file, as it is executed on this machine."""
    import onnxruntime

    graph = optimised(path, device)
    return told(graph, _floats(graph), asked, f"the graph as onnxruntime {onnxruntime.__version__} executes it")


def told(ran: Any, floats: str, asked: str, evidence: str, rows: int = 1) -> Precision:
    """Of a graph or a run of so many rows, of which what is not integer is in `floats`."""
    integer_macs, macs, integer_nodes, nodes = share(ran) if rows > 1 else share(ran, batch=1)
    mode, note = floats, ""
    if integer_nodes:
        part = integer_macs / macs if macs else 0.0
        mode = "int8" if part >= MOST else "mixed"
        if mode == "mixed":
            some = f"{integer_nodes} of {nodes} nodes are integer"
            note = f"INT8 in part: {some}, with {percent(part)} of the multiply-accumulates"
    elif asked == "int8":
        note = f"INT8 changes nothing: 0 of {nodes} nodes are integer"
    elif asked and asked != floats:
        note = f"{asked} was asked for; kernels of this machine compute in {floats}"
    return Precision(mode, nodes, integer_nodes, macs // rows, integer_macs // rows, note, evidence)


def optimised(path: Path, device: str = "cpu") -> Any:
    """The graph after everything the runtime does to it at load."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "optimised.onnx"
        optimising.optimise(path, out, device)
        return onnx.load(out)


def _floats(model: Any) -> str:
    """The format in which most weights enter products; of the input, where there are none."""
    graph = model.graph
    types = {weight.name: weight.data_type for weight in graph.initializer}
    sizes = {weight.name: len(weight.raw_data) or 1 for weight in graph.initializer}
    found: Counter[str] = Counter()
    for node in graph.node:
        if node.domain == "ai.onnx.ml":
            continue
        for name in node.input:
            if types.get(name) in NAMES:
                found[NAMES[types[name]]] += sizes[name]
    if found:
        return found.most_common(1)[0][0]
    given = [
        NAMES[value.type.tensor_type.elem_type] for value in graph.input if value.type.tensor_type.elem_type in NAMES
    ]
    return given[0] if given else "fp32"
