"""What flows along an edge of a graph, as far as it is known without computing: a format, a shape, small constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import onnx

from bitwatt.records import TensorSpec

Dims = tuple[int | None, ...]

_FORMATS = {
    "FLOAT": "float32", "DOUBLE": "float64", "FLOAT16": "float16", "BFLOAT16": "bfloat16",
    "FLOAT8E4M3FN": "float8_e4m3fn", "FLOAT8E4M3FNUZ": "float8_e4m3fnuz", "FLOAT8E5M2": "float8_e5m2",
    "FLOAT8E5M2FNUZ": "float8_e5m2fnuz", "FLOAT8E8M0": "float8_e8m0fnu", "FLOAT4E2M1": "float4_e2m1x2",
    "INT2": "int2x4", "UINT2": "uint2x4", "INT4": "int4x2", "UINT4": "uint4x2", "BOOL": "bool", "STRING": "object",
    "COMPLEX64": "complex64", "COMPLEX128": "complex128",
}  # fmt: skip

#: ONNX's number of a format -> its name here. Formats of less than a byte are packed.
DTYPES: dict[int, str] = {
    number: _FORMATS.get(name, name.lower()) for name, number in onnx.TensorProto.DataType.items() if number
}


def words(text: str) -> frozenset[str]:
    """Names of operators, in a line."""
    return frozenset(text.split())


#: Constants of at most so many elements are read: shapes, axes, scales; never a weight of some size.
SMALL = 4096


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """`dims` is None where not even the rank is known, and has a None for each length that is not.

    `carried` is the format that values were expanded from by DequantizeLinear, `weight` the name and tensor of the
    initializer that they are, perhaps transposed or dequantised. `why` says what hides the shape.
    """

    elem: int = 0
    dims: Dims | None = None
    data: Any = None  # a small constant, as an array
    items: tuple[Value, ...] | None = None  # of a sequence
    carried: str = ""
    weight: tuple[str, TensorSpec] | None = None
    nnz: int | None = None
    why: str = ""

    @property
    def spec(self) -> TensorSpec | None:
        if self.dims is None or self.elem not in DTYPES:
            return None
        known = tuple(size for size in self.dims if size is not None)
        return TensorSpec(known, DTYPES[self.elem], self.nnz) if len(known) == len(self.dims) else None

    @property
    def is_small(self) -> bool:
        spec = self.spec
        return spec is not None and spec.numel <= SMALL


def of_type(given: onnx.TypeProto) -> Value:
    """What a type says; a dimension with a name is not known."""
    kind = given.WhichOneof("value")
    if kind == "sequence_type":
        return Value(given.sequence_type.elem_type.tensor_type.elem_type)
    if kind == "optional_type":
        return of_type(given.optional_type.elem_type)
    if kind not in ("tensor_type", "sparse_tensor_type"):
        return Value()
    tensor = getattr(given, kind)
    dims = tuple(_length(dim) for dim in tensor.shape.dim) if tensor.HasField("shape") else None
    return Value(tensor.elem_type, dims)


def _length(dim: Any) -> int | None:
    return dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def type_of(value: Value) -> onnx.TypeProto:
    if value.items is not None:
        inside = type_of(value.items[0]) if value.items else onnx.helper.make_tensor_type_proto(value.elem, None)
        return onnx.helper.make_sequence_type_proto(inside)
    return onnx.helper.make_tensor_type_proto(value.elem, value.dims)


def of_tensor(tensor: onnx.TensorProto, folder: str = "") -> Value:
    """An initializer or constant; its elements are looked at only where there are few."""
    dims = tuple(tensor.dims)
    value = Value(tensor.data_type, dims)
    if math.prod(dims) > SMALL:
        return value
    return Value(tensor.data_type, dims, _elements(tensor, folder))


def _elements(tensor: onnx.TensorProto, folder: str) -> Any:
    try:
        return onnx.numpy_helper.to_array(tensor, folder)
    except (
        Exception
    ):  # kept in a file that is not here, or in a format that numpy has no name for: only the shape is known
        return None


def of_sparse(tensor: onnx.SparseTensorProto) -> Value:
    return Value(tensor.values.data_type, tuple(tensor.dims), nnz=tensor.values.dims[0])


def of_array(array: Any) -> Value:
    return Value(onnx.helper.np_dtype_to_tensor_dtype(array.dtype), tuple(array.shape), array)
