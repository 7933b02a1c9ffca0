"""What comes out of a node: by onnx's own inference, by computing small constants, by `contrib` for other domains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy
import onnx
import onnx.shape_inference
from onnx.reference import ReferenceEvaluator

from bitwatt.backends.onnx import contrib, estimators, sequences
from bitwatt.backends.onnx.values import SMALL, Value, of_array, of_sparse, of_tensor, of_type, type_of, words

#: Nodes whose results are the same numbers, elsewhere or fewer: they carry what their first input carries.
_MOVES = words(
    "Identity Reshape Flatten Squeeze Unsqueeze Transpose Slice Gather GatherElements GatherND Expand Tile Pad "
    "DepthToSpace SpaceToDepth MaxPool GlobalMaxPool Relu Clip Split Dropout"
)
#: Through which an initializer is still a layer's weight.
_LAID_OUT = words("Identity Transpose Reshape Flatten Squeeze Unsqueeze Cast QuantizeLinear DequantizeLinear")
_DRAWN = words("RandomNormal RandomNormalLike RandomUniform RandomUniformLike Bernoulli Multinomial Dropout")


@dataclass(frozen=True)
class Opsets:
    """Versions of the domains a model imports."""

    versions: Mapping[str, int]
    ir_version: int
    folder: str = ""

    @cached_property
    def imports(self) -> list[Any]:
        return [onnx.helper.make_opsetid(domain, version) for domain, version in self.versions.items()]

    def schema(self, node: onnx.NodeProto) -> Any | None:
        """onnx's description of the node's operator, None for one it does not know."""
        version = self.versions.get(node.domain, 1)
        try:
            return onnx.defs.get_schema(node.op_type, version, node.domain)
        except onnx.defs.SchemaError:
            return None


def outputs(node: onnx.NodeProto, inputs: Sequence[Value | None], schema: Any, opsets: Opsets) -> list[Value]:
    """One value for each output of the node, those without a name too."""
    made = _made(node, inputs, schema, opsets)
    made += [Value()] * (len(node.output) - len(made))
    if hidden := next((value.why for value in inputs if value is not None and value.spec is None and value.why), ""):
        made = [replace(value, why=hidden) if value.spec is None else value for value in made]
    source = next((value for value in inputs if value is not None), None)
    if source is None or node.domain not in ("", "com.microsoft"):
        return made
    if node.op_type == "DequantizeLinear" and source.spec is not None:
        made[0] = replace(made[0], carried=source.spec.dtype)
    elif node.op_type in _MOVES and source.carried:
        made = [replace(value, carried=source.carried) for value in made]
    elif node.op_type == "Concat" and len(carried := {value.carried for value in inputs if value is not None}) == 1:
        made[0] = replace(made[0], carried=carried.pop())
    if node.op_type in _LAID_OUT and source.weight is not None:
        made[0] = replace(made[0], weight=source.weight)
    return made


def _made(node: onnx.NodeProto, inputs: Sequence[Value | None], schema: Any, opsets: Opsets) -> list[Value]:
    if node.domain == "ai.onnx.ml":
        return estimators.outputs(node, inputs)
    if node.op_type in sequences.OPS and not node.domain:
        return sequences.outputs(node, inputs)
    if schema is None:
        return contrib.outputs(node, inputs, opsets)
    if node.op_type == "Identity" and inputs[0] is not None:
        return [inputs[0]]
    if node.op_type == "Constant":
        value = _constant(node.attribute[0], opsets.folder)
        return [replace(value, weight=(node.output[0], value.spec)) if value.spec is not None else value]
    if node.op_type in ("Shape", "Size") and inputs[0] is not None and inputs[0].spec is not None:
        return [_measured(node, inputs[0].spec.shape)]
    inferred = _inferred(node, inputs, schema, opsets)
    if node.op_type not in _DRAWN and inputs and all(v is None or v.data is not None for v in inputs):
        return _computed(node, inputs, inferred, opsets)
    return inferred


def _inferred(node: onnx.NodeProto, inputs: Sequence[Value | None], schema: Any, opsets: Opsets) -> list[Value]:
    types = {name: type_of(value) for name, value in zip(node.input, inputs, strict=True) if value is not None}
    data = {
        name: onnx.numpy_helper.from_array(value.data, name)
        for name, value in zip(node.input, inputs, strict=True)
        if value is not None and value.data is not None and value.data.dtype.kind in "iufb"
    }
    try:
        found = onnx.shape_inference.infer_node_outputs(
            schema, _written_out(node), types, data, opset_imports=opsets.imports, ir_version=opsets.ir_version
        )
    except Exception as error:  # onnx raises many kinds; the node is then reported as missing, with the reason
        alike = contrib.outputs(node, inputs, opsets)
        return alike or [Value(why=" ".join(str(error).split())) for _ in node.output]
    made = [of_type(found[name]) if name in found else Value() for name in node.output]
    if made and made[0].spec is None and made[0].items is None:
        alike = contrib.outputs(node, inputs, opsets)
        return alike if alike and (alike[0].spec is not None or made[0].dims is None) else made
    return made


def _written_out(node: onnx.NodeProto) -> onnx.NodeProto:
    """onnx's inference takes STFT for two-sided where the node does not say; its schema says one-sided."""
    if node.op_type != "STFT" or any(a.name == "onesided" for a in node.attribute):
        return node
    told = onnx.NodeProto()
    told.CopyFrom(node)
    told.attribute.append(onnx.helper.make_attribute("onesided", 1))
    return told


def _alone(node: onnx.NodeProto, opsets: Opsets) -> onnx.FunctionProto:
    """A node of this model's opset; the reference takes a bare one for the newest."""
    inputs = [name for name in dict.fromkeys(node.input) if name]
    outputs = [name for name in node.output if name]
    return onnx.helper.make_function("bitwatt", "alone", inputs, outputs, [node], opsets.imports)


def _constant(attribute: onnx.AttributeProto, folder: str) -> Value:
    if attribute.name == "value":
        return of_tensor(attribute.t, folder)
    if attribute.name == "sparse_value":
        return of_sparse(attribute.sparse_tensor)
    held = onnx.helper.get_attribute_value(attribute)
    formats = {"value_int": "int64", "value_ints": "int64", "value_float": "float32", "value_floats": "float32"}
    array = numpy.array(held, formats.get(attribute.name, "object"))
    if array.dtype == object:
        return Value(onnx.TensorProto.STRING, tuple(array.shape))
    return of_array(array)


def _measured(node: onnx.NodeProto, shape: tuple[int, ...]) -> Value:
    """Of Shape and Size, which is how exporters compute other shapes."""
    if node.op_type == "Size":
        return of_array(numpy.array(numpy.prod(shape, dtype="int64")))
    ends = {attribute.name: attribute.i for attribute in node.attribute}
    return of_array(numpy.array(shape[ends.get("start", 0) : ends.get("end", len(shape))], "int64"))


def _computed(
    node: onnx.NodeProto, inputs: Sequence[Value | None], inferred: list[Value], opsets: Opsets
) -> list[Value]:
    """Small results of constants are computed: lengths and axes of what follows may hang on them."""
    if any(value.spec is not None and not value.is_small for value in inferred):
        return inferred
    feeds = {name: value.data for name, value in zip(node.input, inputs, strict=True) if value is not None}
    try:
        results = ReferenceEvaluator(_alone(node, opsets)).run(None, feeds, attributes={})
        arrays = [numpy.asarray(result) for result in results]
    except Exception:  # what onnx's reference does not implement stays unknown
        return inferred
    if any(array.size > SMALL or array.dtype.kind not in "iufb" for array in arrays):
        return inferred
    named = dict(zip((name for name in node.output if name), arrays, strict=True))
    return [of_array(named[name]) if name else Value() for name in node.output]
