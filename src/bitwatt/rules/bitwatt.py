"""bitwatt's own ops, which no program calls: what `what_if` adds for going to and from a format that was not there."""

import math
from typing import Any

from bitwatt.dtypes import dtype
from bitwatt.formulas.linalg import bias_add, matrix_product
from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs


@rule("bitwatt.dequantise", family="cast")
def dequantise(
    values: TensorSpec,
    bits: float,
    out: Specs,
    scales: int = 0,
    zero_point: bool = False,
    code: bool = False,
    **_: Any,
) -> Work:
    """(q - z)·s for each value: 1 mul with a scale, 1 add with a zero point, a look-up for nf4 and fp4 (else a cast), a
    shift and a mask for values that share a byte. Reads the packed values with their scales."""
    n = values.numel
    packed = 2 * n * (values.precision.bits < 8)
    work = Work.of(
        out[0].precision,
        QUANTISATION,
        mul=n * (scales > 0),
        add=n * zero_point,
        index=n * code,
        cast=n * (not code),
        logic=packed,
    )
    return work + Work(bytes_read=math.ceil(n * bits / 8), bytes_written=out[0].nbytes)


@rule("bitwatt.quantise", family="cast")
def quantise(
    values: TensorSpec, bits: float, scaled: bool = True, blocks: bool = False, zero_point: bool = False, **_: Any
) -> Work:
    """round(x/s + z) held in range: 1 mul, 1 cast, 2 compares; 1 add with a zero point; a compare more where each block
    finds its own largest value. A format without scales is 1 cast."""
    n = values.numel
    work = Work.of(
        values.precision,
        QUANTISATION,
        mul=n * scaled,
        add=n * zero_point,
        cast=n,
        compare=n * (2 * scaled + blocks),
    )
    return work + Work(bytes_read=values.nbytes, bytes_written=math.ceil(n * bits / 8))


@rule("bitwatt.rescale", family="cast")
def rescale(out: Specs, groups: int = 1, scale: str = "float32", **_: Any) -> Work:
    """The sum of a narrow product times its scale: 1 mul and 1 cast per result, and where groups along the sum have
    scales of their own as many for each, with 1 add. It happens before the result leaves the kernel: no bytes."""
    n = out[0].numel * groups
    work = Work.of(dtype(scale).precision, QUANTISATION, mul=n, cast=n, add=n * (groups > 1))
    return work + Work(bytes_read=0, bytes_written=0)


@rule("bitwatt.product", family="matmul")
def product(a: TensorSpec, b: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """a·b + bias: m·n·k multiply-accumulates, an addition per output element. Stands for a kernel that multiplied
    weights packed in the format that was recorded."""
    work = matrix_product(a, b)
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)
