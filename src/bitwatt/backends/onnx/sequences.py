"""Sequences of tensors and optional values, item by item."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
import onnx

from bitwatt.backends.onnx.values import Value, of_array, words

OPS = words(
    "SequenceEmpty SequenceConstruct SequenceInsert SequenceErase SequenceAt SequenceLength SplitToSequence "
    "ConcatFromSequence Optional OptionalGetElement OptionalHasElement"
)
_DATA = "which item it is depends on data"


def outputs(node: onnx.NodeProto, inputs: Sequence[Value | None]) -> list[Value]:
    options = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    first = inputs[0] if inputs else None
    match node.op_type:
        case "SequenceEmpty":
            return [Value(options.get("dtype", onnx.TensorProto.FLOAT), items=())]
        case "SequenceConstruct":
            return [_sequence(tuple(value or Value() for value in inputs))]
        case "OptionalHasElement":
            return [Value(onnx.TensorProto.BOOL, ())]
        case "Optional" | "OptionalGetElement":
            return [first or Value()]
        case "SplitToSequence":
            return [_split(first or Value(), inputs[1] if len(inputs) > 1 else None, options)]
    if first is None or first.items is None:
        return [Value(first.elem if first else 0, why="the items of a sequence are not known")]
    place = inputs[-1] if len(inputs) > (2 if node.op_type == "SequenceInsert" else 1) else None
    items, at = list(first.items), None if place is None else place.data
    match node.op_type:
        case "SequenceLength":
            return [of_array(numpy.array(len(items), "int64"))]
        case "SequenceInsert":
            items.insert(len(items) if at is None else int(at), inputs[1] or Value())
            return [_sequence(tuple(items))]
        case "SequenceErase":
            if items:
                items.pop(-1 if at is None else int(at))
            return [_sequence(tuple(items))]
        case "SequenceAt":
            alike = len({item.dims for item in items}) == 1
            if at is None and not alike:
                return [Value(items[0].elem if items else first.elem, why=_DATA)]
            return [items[0 if at is None else int(at)]] if items else [Value(first.elem)]
        case _:
            return [_joined(items, int(options["axis"]), bool(options.get("new_axis", 0)))]


def _sequence(items: tuple[Value, ...]) -> Value:
    return Value(items[0].elem if items else 0, items=items)


def _split(whole: Value, split: Value | None, options: dict[str, int]) -> Value:
    if whole.dims is None:
        return Value(whole.elem, why="the shape of what is split is not known")
    axis = options.get("axis", 0) % len(whole.dims)
    length = whole.dims[axis]
    if length is None or (split is not None and split.data is None):
        return Value(whole.elem, why="into how many parts it is split depends on data")
    if split is None:
        sizes = [1] * length
    elif split.data.ndim:
        sizes = [int(size) for size in split.data]
    else:
        step = int(split.data)
        sizes = [min(step, length - start) for start in range(0, length, step)]
    gone = split is None and not options.get("keepdims", 1)
    rest = (whole.dims[:axis], whole.dims[axis + 1 :])
    dims = [rest[0] + (() if gone else (size,)) + rest[1] for size in sizes]
    return Value(whole.elem, items=tuple(Value(whole.elem, each) for each in dims))


def _joined(items: list[Value], axis: int, stacked: bool) -> Value:
    dims = [item.dims for item in items if item.dims is not None]
    if not items or len(dims) < len(items):
        return Value(items[0].elem if items else 0, why="the items of a sequence are not known")
    axis %= len(dims[0]) + stacked
    if stacked:
        return Value(items[0].elem, (*dims[0][:axis], len(items), *dims[0][axis:]))
    lengths = [each[axis] for each in dims]
    whole = None if None in lengths else sum(size for size in lengths if size is not None)
    return Value(items[0].elem, (*dims[0][:axis], whole, *dims[0][axis + 1 :]))
