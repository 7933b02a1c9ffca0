"""A node as an op: its name, its inputs and attributes by the names ONNX gives them, and small constants among them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import onnx

from bitwatt.backends.onnx import trees
from bitwatt.backends.onnx.names import INPUTS
from bitwatt.backends.onnx.values import Value, of_tensor, words
from bitwatt.records import Op, TensorSpec

#: The first word of an op's name, which is where its rule is found.
SPACES = {"": "onnx", "ai.onnx": "onnx", "ai.onnx.ml": "onnx_ml"}
#: Lists of numbers that an operator reads like a tensor, not like an option.
_FEW = 16


def name_of(node: onnx.NodeProto) -> str:
    space = SPACES.get(node.domain) or node.domain.removeprefix("ai.").replace(".", "_").replace("-", "_")
    return f"{space}.{node.op_type}"


def op_of(
    node: onnx.NodeProto, inputs: Sequence[Value | None], made: Sequence[Value], schema: Any, assumed: bool
) -> Op:
    """Where a shape is not known, what stands in its place is the reason."""
    name = name_of(node)
    reason = unknown(node, inputs, made)
    if reason:
        return Op(name, (("unrecorded", reason),), overload="unrecorded")
    args = [*_inputs(node, inputs, schema), *_attributes(node), *_constants(node, inputs, schema)]
    carried = tuple((of, value.carried) for of, value in named(node, inputs, schema) if value and value.carried)
    if carried:
        args.append(("carried", carried))
    out = tuple(value.spec for value in made if value.spec is not None)
    return Op(name, tuple(args), out, overload="assumed" if assumed else "")


#: How much comes out of these depends on data; what they do is told by what goes in.
_FROM_DATA = words(
    "NonZero Unique Compress NonMaxSuppression StringSplit ZipMap ImageDecoder Tokenizer DictVectorizer CastMap "
    "TfIdfVectorizer StringNormalizer"
)


def unknown(node: onnx.NodeProto, inputs: Sequence[Value | None], made: Sequence[Value]) -> str:
    for name, value in zip(node.input, inputs, strict=True):
        if value is not None and value.spec is None and value.items is None:
            return f"the shape of {name!r} is not known{_because(value)}; it can be given: shapes={{{name!r}: (...)}}"
    if made and made[0].spec is None and made[0].items is None and node.op_type not in _FROM_DATA:
        name = node.output[0]
        return f"the shape of {name!r} is not known{_because(made[0])}; it can be given: shapes={{{name!r}: (...)}}"
    return ""


def _because(value: Value) -> str:
    return f" ({value.why})" if value.why else ""


def named(node: onnx.NodeProto, inputs: Sequence[Value | None], schema: Any) -> Iterator[tuple[str, Value | None]]:
    """Inputs with their names; all of a list have the same."""
    told = [(given.name, given.option == _VARIADIC) for given in schema.inputs] if schema is not None else [
        (name.rstrip("*"), name.endswith("*")) for name in INPUTS.get(node.op_type, ())
    ]  # fmt: skip
    for at, value in enumerate(inputs):
        if at < len(told):
            yield told[at][0], value
        elif told and told[-1][1]:
            yield told[-1][0], value
        else:
            yield f"input{at}", value


_VARIADIC = onnx.defs.OpSchema.FormalParameterOption.Variadic


def _inputs(node: onnx.NodeProto, inputs: Sequence[Value | None], schema: Any) -> list[tuple[str, Any]]:
    found: dict[str, list[Any]] = {}
    for name, value in named(node, inputs, schema):
        if value is not None:
            found.setdefault(name, []).append(_spec(value))
    lists = {given.name for given in schema.inputs if given.option == _VARIADIC} if schema is not None else {
        name.rstrip("*") for name in INPUTS.get(node.op_type, ()) if name.endswith("*")
    }  # fmt: skip
    return [(name, tuple(specs) if name in lists else specs[0]) for name, specs in found.items()]


def _spec(value: Value) -> TensorSpec | tuple[Any, ...] | None:
    return value.spec if value.items is None else tuple(_spec(item) for item in value.items)


def _attributes(node: onnx.NodeProto) -> Iterator[tuple[str, Any]]:
    if node.op_type in trees.OPS and node.domain == "ai.onnx.ml":
        yield from trees.facts(node)
        return
    for attribute in node.attribute:
        value = _plain(attribute, node.domain == "ai.onnx.ml")
        if value is not None:
            yield attribute.name, value


def _plain(attribute: onnx.AttributeProto, estimator: bool) -> Any:
    """Numbers and texts as they are; coefficients and vocabularies as the tensors they amount to."""
    held = attribute
    match held.type:
        case onnx.AttributeProto.INT:
            return int(held.i)
        case onnx.AttributeProto.FLOAT:
            return float(held.f) if math.isfinite(held.f) else str(held.f)
        case onnx.AttributeProto.STRING:
            return held.s.decode("utf-8", "replace") if len(held.s) < 200 else None
        case onnx.AttributeProto.TENSOR:
            return of_tensor(held.t).spec
    for values, dtype in ((held.floats, "float32"), (held.ints, "int64"), (held.strings, "object")):
        if values:
            few = len(values) <= _FEW and (not estimator or held.name == "kernel_params")
            plain = tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values) if few else None
            return plain if few else TensorSpec((len(values),), dtype)
    return None


def _constants(node: onnx.NodeProto, inputs: Sequence[Value | None], schema: Any) -> Iterator[tuple[str, Any]]:
    """Shapes, axes and exponents, where the graph holds them; a rule finds them under `constants`."""
    found = []
    for name, value in named(node, inputs, schema):
        if value is None or value.data is None or value.data.size > _FEW or value.data.dtype.kind not in "iufb":
            continue
        plain = value.data.tolist()
        if value.data.dtype.kind == "f" and (value.data.size != 1 or not math.isfinite(value.data.item())):
            continue  # a bias or a table of scales is no option
        found.append((name, tuple(plain) if isinstance(plain, list) and value.data.ndim == 1 else plain))
    plain_ones = tuple((name, value) for name, value in found if not isinstance(value, list))
    if plain_ones:
        yield "constants", plain_ones
