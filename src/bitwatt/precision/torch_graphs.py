"""Graphs that PT2E has prepared for training or converted: no layers are left, the graph says what is rounded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.precision.formats import integer, spanning
from bitwatt.precision.registry import Widths, precision, quantised
from bitwatt.records import Quantised

_DEQUANTISE = "quantized_decomposed.dequantize_per_"
#: What may stand between a weight and the product it goes into.
_VIEWS = ("t", "transpose", "permute", "view", "reshape", "_to_copy", "clone", "contiguous")
_PRODUCTS = ("linear", "addmm", "mm", "matmul", "bmm", "convolution", "conv1d", "conv2d", "conv3d")


@precision("torch.fx.graph_module.GraphModule")
def graph(module: Any) -> Widths | None:
    """Weights that come out of a rounding node, and what is multiplied with them, if that is one format each."""
    found = [(node, value) for node in module.graph.nodes if (value := _rounded(module, node)) is not None]
    weights = [(node, value, tensor) for node, value in found if (tensor := _tensor(module, node.args[0])) is not None]
    if not weights:
        return None
    formats = {value for _, value, _ in weights}
    if len(formats) > 1:
        raise ValueError(f"its weights have several widths: {', '.join(sorted(f.name for f in formats))}")
    value = formats.pop()
    shapes = tuple(tuple(tensor.shape) for _, _, tensor in weights)
    if left := set(map(_sides, shapes)) & _left_out(module, [node.args[0] for node, *_ in weights]):
        raise ValueError("weights of {} x {} are quantised and others of that size are not".format(*left.pop()))
    stored = all(tensor.dtype.is_floating_point is False for _, _, tensor in weights)
    count = sum(tensor.numel() for _, _, tensor in weights)
    beside = [scale for node, _, _ in weights for scale in _scales(module, node)]
    source = f"{len(weights)} weights of {value.name} in the graph"
    return Widths(
        quantised(value, count, beside=beside, source=source, stored=stored),
        _inputs(module, [node for node, *_ in weights], dict(found)),
        shapes,
    )


def _left_out(module: Any, quantised: list[Any]) -> set[tuple[int, ...]]:
    """Sides of weights that no node rounds. Products are told apart by them, so these may not be among the others."""
    found = (_tensor(module, node) for node in module.graph.nodes if node not in quantised)
    return {_sides(tuple(tensor.shape)) for tensor in found if tensor is not None and len(tensor.shape) > 1}


def _sides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted((shape[0], math.prod(shape[1:]))))


def _rounded(module: Any, node: Any) -> Precision | None:
    """The format that a node leaves its values in: dequantised from one, or held to one by a fake quantiser."""
    if node.op == "call_module":
        return fake_quantised(module._modules.get(node.target))
    if node.op != "call_function" or not str(node.target).startswith(_DEQUANTISE):
        return None
    bounds = [argument for argument in node.args[1:] if type(argument) is int][-2:]
    dtype = str(node.args[-1] if "dtype" not in node.kwargs else node.kwargs["dtype"])
    if "int" not in dtype or len(bounds) < 2:
        return None
    return spanning(*bounds) if bounds[0] < bounds[1] else integer(8)


def fake_quantised(quantiser: Any) -> Precision | None:
    """The width between the bounds of a fake quantiser that is switched on; None for observers."""
    if "FakeQuantize" not in type(quantiser).__name__ or not int(quantiser.fake_quant_enabled[0]):
        return None
    return spanning(int(quantiser.quant_min), int(quantiser.quant_max))


def _tensor(module: Any, node: Any) -> Any:
    """The parameter or buffer that a node reads; None for what is computed."""
    if getattr(node, "op", None) != "get_attr":
        return None
    *path, name = node.target.split(".")
    for step in path:
        module = module._modules[step]
    held = module._parameters.get(name)
    return held if held is not None else module._buffers.get(name)


def _scales(module: Any, node: Any) -> Iterator[Any]:
    if node.op == "call_module":
        quantiser = module._modules[node.target]
        yield from (quantiser._buffers.get("scale"), quantiser._buffers.get("zero_point"))
    else:
        yield from (_tensor(module, argument) for argument in node.args[1:3])


def _inputs(module: Any, weights: list[Any], rounded: dict[Any, Precision]) -> Quantised | None:
    """The format of what is multiplied with the weights; None unless every product has the same."""
    formats: set[Precision | None] = set()
    for weight in weights:
        for product, operand in _products(weight):
            others = [a for a in product.args if hasattr(a, "op") and a is not operand and _tensor(module, a) is None]
            formats.update(rounded.get(other) for other in others)
    value = formats.pop() if len(formats) == 1 else None
    return quantised(value, source=f"every product's input is {value.name}", stored=False) if value else None


def _products(node: Any) -> Iterator[tuple[Any, Any]]:
    """Products that a weight goes into, also turned round, and the node it arrives as."""
    for user in node.users:
        words = str(user.target).split(".")
        name = words[-2] if len(words) > 1 else words[0]
        if name in _PRODUCTS:
            yield user, node
        elif name in _VIEWS:
            yield from _products(user)
