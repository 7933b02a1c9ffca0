"""optimum-quanto: products with weights of a byte and less, and going to and from those formats."""

from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.linalg import matmul
from bitwatt.precision.formats import format_named
from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, flat
from bitwatt.rules._tables import each, moved

SPACE = "quanto"

each(
    "quantize_symmetric",
    "x/s rounded and held in range",
    family="cast",
    space=SPACE,
    of="in",
    part=QUANTISATION,
    div=1,
    compare=2,
    cast=1,
)
each(
    "quantize_affine",
    "(x + shift)/s rounded and held in range",
    family="cast",
    space=SPACE,
    of="in",
    part=QUANTISATION,
    add=1,
    div=1,
    compare=2,
    cast=1,
)
each("unpack", "a mask and a shift", family="cast", space=SPACE, part=QUANTISATION, logic=2)
moved("pack_fp8_marlin", "weights copied into the order a kernel reads", space=SPACE)


@rule("quanto.qbytes_mm", family="matmul")
def qbytes_mm(A: TensorSpec, B: TensorSpec, scales: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·Wᵀ with weights of a byte. Bytes by bytes are multiplied as integers, and each sum is scaled; else weights are
    expanded first, w·s, and the product runs in the scales' precision."""
    rows = flat(A)
    integers = A.precision.kind == B.precision.kind == "int"
    ran = None if integers else scales.precision
    work = matmul(rows.shape[0], rows.shape[1], B.shape[0], A, B, ran=ran)
    scaled = out[0].numel if integers else B.numel
    return work + Work.of(scales.precision, QUANTISATION, mul=scaled, cast=scaled)


def _expanding(x: TensorSpec, n: int, weight: Precision, *, shifted: bool) -> Work:
    rows, k = flat(x).shape
    each_weight = n * k
    expanded = Work.of(x.precision, QUANTISATION, mul=each_weight, add=each_weight * shifted)
    return matmul(rows, k, n, x, TensorSpec((n, k), weight.name)) + expanded


@rule("quanto.gemm_f16i4_awq", "quanto.gemm_f16i4_marlin", family="matmul")
def gemm_f16i4(input: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·Wᵀ with 4-bit weights: w·s + shift, 1 mul and 1 add, for each weight."""
    return _expanding(input, out[0].shape[-1], format_named("int4"), shifted=True)


@rule("quanto.gemm_f16f8_marlin", family="matmul")
def gemm_f16f8(a: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·Wᵀ with float8 weights: w·s for each weight."""
    return _expanding(a, out[0].shape[-1], format_named("float8_e4m3fn"), shifted=False)
