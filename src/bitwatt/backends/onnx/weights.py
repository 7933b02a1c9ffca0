"""Which weights a model has, and where: a layer for each scope whose nodes read some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx

from bitwatt.backends.onnx.facts import name_of
from bitwatt.backends.onnx.values import Value, words
from bitwatt.records import Layer, TensorSpec

#: These lay a weight out for the node that computes with it, whose layer it is.
_PREPARES = words("Identity Transpose Reshape Squeeze Unsqueeze Flatten Cast DequantizeLinear QuantizeLinear")
#: Names of inputs that belong to a weight, or are no weight.
_BESIDE = ("_scale", "_zero_point", "scales", "zero_points", "g_idx", "absmax", "initial_h", "initial_c")


class Weights:
    """Layers by scope. A weight that several nodes read counts for the first."""

    def __init__(self) -> None:
        self.layers: dict[str, Layer] = {}
        self._known: set[str] = set()

    def read(self, node: onnx.NodeProto, inputs: Mapping[str, Value | None], scope: str) -> None:
        """A node, and what flows into it by name."""
        if node.op_type in _PREPARES:
            return
        for name, value in inputs.items():
            if value is None or value.weight is None or name.endswith(_BESIDE):
                continue
            tensor, stored = value.weight
            if stored.numel > 1 and _is_format(stored):
                shape = _unpacked(node, name, value.spec or stored)
                self._add(node, scope, stored, shape, new=tensor not in self._known)
                self._known.add(tensor)

    def _add(self, node: onnx.NodeProto, scope: str, stored: TensorSpec, shape: tuple[int, ...], *, new: bool) -> None:
        layer = self.layers.get(scope) or Layer(name_of(node), _format(node, stored))
        if len(shape) > 1:  # of the others (biases, factors of norms) only the size is told
            layer = replace(layer, shapes=(*layer.shapes, shape), weight_dtype=_format(node, stored))
        if new:
            values = TensorSpec(shape).numel
            size = layer.weight_bytes + stored.nbytes
            layer = replace(layer, parameters=layer.parameters + values, weight_bytes=size)
        self.layers[scope] = layer


def _is_format(spec: TensorSpec) -> bool:
    """Whether weights are kept in it: wider integers are shapes, axes and indices."""
    kind, bits = spec.precision.kind, spec.precision.bits
    return kind == "float" or (kind == "int" and bits <= 8)


def _unpacked(node: onnx.NodeProto, name: str, spec: TensorSpec) -> tuple[int, ...]:
    """Its shape as the mathematics sees it; several values may lie in a byte."""
    sizes = {a.name: int(a.i) for a in node.attribute if a.name in ("N", "K")}
    return (sizes["N"], sizes["K"]) if name == "B" and len(sizes) == 2 else spec.shape


def _format(node: onnx.NodeProto, stored: TensorSpec) -> str:
    bits = next((int(a.i) for a in node.attribute if a.name == "bits"), 0)
    return f"int{bits}" if bits and stored.dtype == "uint8" else stored.dtype
