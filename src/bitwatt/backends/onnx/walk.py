"""The walk over a graph: each node gets the shapes of what flows in, says what flows out, and is written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import onnx

from bitwatt.backends.onnx import control
from bitwatt.backends.onnx.binding import Bound
from bitwatt.backends.onnx.facts import named, op_of
from bitwatt.backends.onnx.inferring import Opsets, outputs
from bitwatt.backends.onnx.scopes import scope_of
from bitwatt.backends.onnx.values import Value, of_sparse, of_tensor
from bitwatt.backends.onnx.weights import Weights
from bitwatt.ledger import Ledger

PHASE = "forward"
Names = dict[str, Value]


class Walk:
    """One pass over a model. `calls` is how often the graph that is being walked runs, `assumed` whether that is
    a guess. With `once` each node is written down as one call, whatever loops it is in."""

    def __init__(self, opsets: Opsets, bound: Bound, *, once: bool = False) -> None:
        self.opsets, self.bound, self.once = opsets, bound, once
        self.ledger = Ledger()
        self.weights = Weights()
        self.notes: list[str] = []
        self.calls = 1
        self.assumed = False

    def model(self, graph: onnx.GraphProto) -> list[Value]:
        return self.graph(graph, self.bound.inputs(graph))

    def graph(self, graph: onnx.GraphProto, given: Mapping[str, Value], scope: str = "") -> list[Value]:
        """Walk a graph whose inputs, and what it sees of the graphs around it, are `given`."""
        values: Names = {**given, **self._initializers(graph)}
        told = {info.name: info for info in [*graph.value_info, *graph.output]}
        for node in graph.node:
            self._node(node, values, told, scope)
        return [values.get(output.name, Value()) for output in graph.output]

    def _initializers(self, graph: onnx.GraphProto) -> Names:
        found = {tensor.name: of_tensor(tensor, self.opsets.folder) for tensor in graph.initializer}
        found |= {tensor.values.name: of_sparse(tensor) for tensor in graph.sparse_initializer}
        return {
            name: value if (spec := value.spec) is None else replace(value, weight=(name, spec))
            for name, value in found.items()
        }

    def _node(self, node: onnx.NodeProto, values: Names, told: Mapping[str, onnx.ValueInfoProto], scope: str) -> None:
        node = _plain_domain(node)
        inputs = [values.get(name, Value()) if name else None for name in node.input]
        here = scope_of(node, scope)
        if node.op_type in control.OPS and not node.domain:
            made = control.OPS[node.op_type](self, node, inputs, values, here)
        else:
            schema = self.opsets.schema(node)
            made = outputs(node, inputs, schema, self.opsets)
            made = [self._told(name, value, told) for name, value in zip(node.output, made, strict=False)]
            if self.calls:
                self.ledger.add(PHASE, here, op_of(node, inputs, made, schema, self.assumed), self.calls)
            self.weights.read(node, dict(named(node, inputs, schema)), here)
        values.update((name, value) for name, value in zip(node.output, made, strict=False) if name)

    def _told(self, name: str, value: Value, told: Mapping[str, onnx.ValueInfoProto]) -> Value:
        """What the user or the model says of a shape that could not be found out."""
        if name in self.bound.shapes:
            return replace(value, dims=self.bound.shapes[name], data=None)
        if value.spec is not None or value.items is not None or name not in told:
            return value
        said = self.bound.shaped(told[name])
        return replace(value, elem=value.elem or said.elem, dims=said.dims) if said.spec is not None else value

    @contextmanager
    def repeated(self, times: int, *, assumed: bool = False) -> Iterator[None]:
        """What is walked inside runs so often."""
        calls, doubt = self.calls, self.assumed
        self.calls, self.assumed = calls * (min(times, 1) if self.once else times), doubt or assumed
        try:
            yield
        finally:
            self.calls, self.assumed = calls, doubt


def _plain_domain(node: onnx.NodeProto) -> onnx.NodeProto:
    """The default domain has two names."""
    if node.domain != "ai.onnx":
        return node
    same = onnx.NodeProto()
    same.CopyFrom(node)
    same.domain = ""
    return same
