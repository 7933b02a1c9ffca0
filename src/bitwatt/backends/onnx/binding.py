"""The shapes of a model's inputs: fixed by the model, or bound by the user where it leaves them open."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from bitwatt.backends.onnx.values import Value, of_type
from bitwatt.errors import BitwattError

_NAME = re.compile(r"[^\W\d]\w*")
Shapes = Mapping[str, Sequence[int] | int]


class Bound:
    """Lengths by symbol, and shapes by the name of a value, given or found."""

    def __init__(self, shapes: Shapes | None, batch: int | None) -> None:
        given = dict(shapes or {})
        self.symbols = {name: size for name, size in given.items() if isinstance(size, int)}
        self.shapes = {name: tuple(size) for name, size in given.items() if not isinstance(size, int)}
        self.first: dict[str, int] = {}  # batches that have no name
        self.batch = batch
        self.notes: list[str] = []
        if wrong := [size for size in [batch, *self.symbols.values()] if size is not None and size < 0]:
            raise BitwattError(f"a length cannot be {wrong[0]}")

    def inputs(self, graph: onnx.GraphProto) -> dict[str, Value]:
        """What flows in; older models list their initializers among the inputs too."""
        held = {tensor.name for tensor in graph.initializer}
        held |= {tensor.values.name for tensor in graph.sparse_initializer}
        fed = [given for given in graph.input if given.name not in held]
        self._check(graph, fed)
        for given in fed:
            self._learn(given)
        self._batch(fed)
        return {given.name: self.shaped(given, required=True) for given in fed}

    def shaped(self, given: onnx.ValueInfoProto, required: bool = False) -> Value:
        """A value with its named dimensions bound."""
        value = of_type(given.type)
        if given.name in self.shapes:
            return Value(value.elem, self.shapes[given.name])
        if value.dims is None:
            if required and given.type.HasField("tensor_type"):
                raise BitwattError(f"the model does not say the shape of {given.name!r}; {_how(given.name)}")
            return value
        dims = tuple(self._length(dim) for dim in _dims(given))
        if dims and dims[0] is None:
            dims = (self.first.get(given.name), *dims[1:])
        if required and (missing := [_symbol(d) for d, n in zip(_dims(given), dims, strict=True) if n is None]):
            symbol = next((name for name in missing if name.isidentifier()), "")
            raise BitwattError(
                f"the model leaves {', '.join(name or '?' for name in missing)} of {given.name!r} open; "
                f"{_how(given.name, symbol)}"
            )
        return Value(value.elem, dims)

    def _check(self, graph: onnx.GraphProto, fed: list[onnx.ValueInfoProto]) -> None:
        for given in fed:
            rank, wanted = len(_dims(given)), self.shapes.get(given.name)
            if wanted is not None and given.type.tensor_type.HasField("shape") and rank != len(wanted):
                raise BitwattError(f"{given.name!r} has {rank} dimensions, not {len(wanted)}: {wanted}")
            fixed = [dim.dim_value for dim in _dims(given)]
            if any(0 < length != size for length, size in zip(fixed, wanted or (), strict=False)):
                lengths = ", ".join(str(length or "any") for length in fixed)
                raise BitwattError(f"{given.name!r} is {lengths} in the model, not {', '.join(map(str, wanted or ()))}")
        names = {given.name for given in fed} | {name for node in graph.node for name in node.output}
        symbols = {name for given in fed for dim in _dims(given) for name in _NAME.findall(_symbol(dim))}
        if unknown := sorted((set(self.shapes) - names) | (set(self.symbols) - symbols)):
            inputs = ", ".join(given.name for given in fed)
            raise BitwattError(f"nothing in the model is called {', '.join(unknown)}; its inputs are {inputs}")

    def _learn(self, given: onnx.ValueInfoProto) -> None:
        """A shape that is given binds the symbols in it, for the other inputs too."""
        for dim, size in zip(_dims(given), self.shapes.get(given.name, ()), strict=False):
            if _symbol(dim).isidentifier():
                self.symbols.setdefault(_symbol(dim), size)

    def _batch(self, fed: list[onnx.ValueInfoProto]) -> None:
        """The first dimension of an input, where it is open, is the batch."""
        first = [(given, _dims(given)[0]) for given in fed if _dims(given) and given.name not in self.shapes]
        free = [(given, dim) for given, dim in first if self._length(dim) is None]
        if not free:
            fixed = {self._length(dim) for _, dim in first}
            if self.batch is not None and first and self.batch not in fixed:
                raise BitwattError(f"the model's batch is fixed at {', '.join(map(str, fixed))}, not {self.batch}")
            return
        if self.batch is None:
            self.notes.append("the model leaves the batch open: taken as 1")
        size = 1 if self.batch is None else self.batch
        for given, dim in free:
            if _symbol(dim).isidentifier():
                self.symbols[_symbol(dim)] = size
            else:
                self.first[given.name] = size

    def _length(self, dim: Any) -> int | None:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            return int(dim.dim_value)
        return _computed(_symbol(dim), self.symbols)


def _dims(given: onnx.ValueInfoProto) -> Any:
    return given.type.tensor_type.shape.dim


def _symbol(dim: Any) -> str:
    return str(dim.dim_param)


def _how(name: str, symbol: str = "") -> str:
    """How to bind it."""
    whole = f"give shapes={{{name!r}: (...)}}"
    return f"{whole}, or shapes={{{symbol!r}: ...}}" if symbol else whole


def _computed(text: str, symbols: Mapping[str, int]) -> int | None:
    """Exporters write lengths as sums and products of others: `past + sequence`."""
    if text in symbols:
        return symbols[text]
    try:
        return _evaluated(ast.parse(text, mode="eval").body, symbols)
    except (SyntaxError, KeyError, ValueError, ZeroDivisionError):
        return None


def _evaluated(node: ast.expr, symbols: Mapping[str, int]) -> int:
    if isinstance(node, ast.Name):
        return symbols[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.BinOp):
        a, b = _evaluated(node.left, symbols), _evaluated(node.right, symbols)
        match node.op:
            case ast.Add():
                return a + b
            case ast.Sub():
                return a - b
            case ast.Mult():
                return a * b
            case ast.FloorDiv():
                return a // b
    raise ValueError(ast.dump(node))
