"""Changing the number format, copying between tensors and devices: never free, since bytes move."""

from typing import Any

from bitwatt.formulas.pointwise import pointwise, stored
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, each


def converted(source: TensorSpec, target: TensorSpec) -> Work:
    """One cast for each element where the formats differ; the source read, the target written."""
    casts = stored(source) if source.dtype != target.dtype else 0
    return pointwise(source, casts, cast=1) + Work(bytes_read=source.nbytes, bytes_written=target.nbytes)


@rule("aten._to_copy", "aten.to", "aten.type_as", "aten._autocast_to_reduced_precision", family="cast")
@rule("aten._autocast_to_full_precision", "aten.chalf", "aten._to_cpu", family="cast")
def to_copy(out: Specs, self: Any = None, **_: Any) -> Work:
    """A new tensor: 1 cast per element where the format changes; every element read and written."""
    if not isinstance(self, TensorSpec) or not out:
        return Work()
    return converted(self, out[0])


@rule("aten.copy", "aten._copy_from", "aten._copy_from_and_resize", family="copy")
def copy(out: Specs, self: TensorSpec, src: Any = None, dst: Any = None, **_: Any) -> Work:
    """A tensor copied over another: 1 cast per element where the formats differ; source read, target written."""
    if isinstance(dst, TensorSpec):  # _copy_from(self, dst) goes the other way round than copy_(self, src)
        return converted(self, dst)
    target = out[0] if out else self
    return converted(src, target) if isinstance(src, TensorSpec) else Work(bytes_read=0, bytes_written=target.nbytes)


each(
    "_cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short",
    "a format change",
    family="cast",
    of="in",
    cast=1,
)
