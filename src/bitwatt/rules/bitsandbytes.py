"""bitsandbytes: products with 4- and 8-bit weights, and going to and from those formats."""

import math
from typing import Any

from bitwatt.dtypes import Precision, dtype
from bitwatt.formulas.linalg import bias_add, matrix_product
from bitwatt.precision.formats import format_named
from bitwatt.records import QUANTISATION, Product, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules import _bitsandbytes_optimizers as optimizers
from bitwatt.rules._products import Specs, flat, transposed
from bitwatt.rules._tables import each

__all__ = ["optimizers"]

SPACE = "bitsandbytes"
#: The 4-bit formats have 16 values: a nearest one is found in four comparisons.
_FOUR_BITS = 4
_INT4, _INT8, _BFLOAT16 = format_named("int4"), format_named("int8"), format_named("bfloat16")

each("int8_vectorwise_dequant", "q·scale of its row", family="cast", space=SPACE, part=QUANTISATION, mul=1)


def _expanded(values: int, to: str) -> Work:
    """`code[q]·scale of its block` for each value, written in another dtype. An `.out` variant returns nothing, so that
    the bytes are told here."""
    spec = TensorSpec((values,), to)
    return Work.of(spec.precision, QUANTISATION, index=values, mul=values) + Work(bytes_written=spec.nbytes)


@rule("bitsandbytes.dequantize_4bit", family="cast")
def dequantize_4bit(shape: tuple[int, ...], dtype: str, **_: Any) -> Work:
    """code[q]·scale of its block: 1 index, 1 mul per value."""
    return _expanded(math.prod(shape), dtype)


@rule("bitsandbytes.dequantize_blockwise", family="cast")
def dequantize_blockwise(A: TensorSpec, dtype: str, **_: Any) -> Work:
    """code[q]·scale of its block: 1 index, 1 mul per value."""
    return _expanded(A.numel, dtype)


def _nearest(spec: TensorSpec, bits: int) -> Work:
    n = spec.numel
    return Work.of(spec.precision, QUANTISATION, compare=(1 + bits) * n, mul=n)


@rule("bitsandbytes.quantize_4bit", family="cast")
def quantize_4bit(A: TensorSpec, **_: Any) -> Work:
    """The largest of each block, x/scale, the nearest of 16 codes by halving: 5 compare, 1 mul per value."""
    return _nearest(A, _FOUR_BITS)


@rule("bitsandbytes.quantize_blockwise", family="cast")
def quantize_blockwise(A: TensorSpec, code: TensorSpec, **_: Any) -> Work:
    """The largest of each block, x/scale, the nearest of n codes by halving: 1 + log2 n compare, 1 mul per value."""
    return _nearest(A, max(code.numel - 1, 1).bit_length())


@rule("bitsandbytes.int8_vectorwise_quant", family="cast")
def int8_vectorwise_quant(A: TensorSpec, threshold: Any = 0.0, **_: Any) -> Work:
    """The largest of each row, x/scale rounded: 1 compare, 1 mul, 1 cast per value; 1 compare more to find outliers."""
    n = A.numel
    return Work.of(A.precision, QUANTISATION, compare=n * (2 if threshold else 1), mul=n, cast=n)


@rule("bitsandbytes.int8_double_quant", family="cast")
def int8_double_quant(A: TensorSpec, threshold: Any = 0.0, **_: Any) -> Work:
    """As int8_vectorwise_quant, by rows and again by columns."""
    return int8_vectorwise_quant(A, threshold) * 2


def _product(x: TensorSpec, n: int, weight: Precision, ran: Precision | None = None) -> Work:
    rows, k = flat(x).shape
    if not (rows and k and n):
        return Work()
    return Work(products=((Product(1, rows, n, k, x.precision, weight, ran=ran), 1),))


@rule("bitsandbytes.gemm_4bit", family="matmul")
def gemm_4bit(
    A: TensorSpec,
    shapeB: tuple[int, ...],
    quant_type: str = "nf4",
    bias: TensorSpec | None = None,
    absmax_8bit: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """x·Wᵀ + b with 4-bit weights: rows·in·out multiply-accumulates; code[q]·scale for each weight, and where scales
    are quantised too, code[q]·scale + offset for each block."""
    weights, n = math.prod(shapeB), shapeB[0]
    work = _product(A, n, format_named(quant_type)) + Work.of(A.precision, QUANTISATION, index=weights, mul=weights)
    if absmax_8bit is not None:
        blocks = absmax_8bit.numel
        work += Work.of(format_named("float32"), QUANTISATION, index=blocks, mul=blocks, add=blocks)
    return work if bias is None else work + bias_add(flat(A).shape[0] * n, A.precision)


@rule("bitsandbytes.gemv_4bit", family="matmul")
def gemv_4bit(A: TensorSpec, shapeB: tuple[int, ...], absmax: TensorSpec, **_: Any) -> Work:
    """x·Wᵀ with 4-bit weights: rows·in·out multiply-accumulates; code[q]·scale for each weight. The CPU's kernel, known
    by its bfloat16 scales, multiplies in bfloat16 whatever x is."""
    ran = _BFLOAT16 if absmax.dtype == _BFLOAT16.name else None
    weights = math.prod(shapeB)
    expanded = Work.of(ran or A.precision, QUANTISATION, index=weights, mul=weights)
    return _product(A, shapeB[0], _INT4, ran) + expanded


@rule("bitsandbytes.int8_linear_matmul", family="matmul")
def int8_linear_matmul(A: TensorSpec, B: TensorSpec, **_: Any) -> Work:
    """8-bit x·Wᵀ: rows·in·out multiply-accumulates."""
    return matrix_product(A, transposed(B))


def _rescaled(results: int, to: str | None, bias: TensorSpec | None) -> Work:
    """The sum times a scale per row and per column, and the bias."""
    precision = dtype(to or "float16").precision
    return Work.of(precision, QUANTISATION, mul=2 * results) + bias_add(results * (bias is not None), precision)


@rule("bitsandbytes.int8_mm_dequant", family="cast")
def int8_mm_dequant(A: TensorSpec, dtype: str | None = None, bias: TensorSpec | None = None, **_: Any) -> Work:
    """The sum times a scale per row and per column, and the bias."""
    return _rescaled(A.numel, dtype, bias)


@rule("bitsandbytes.int8_scaled_mm", family="matmul")
def int8_scaled_mm(A: TensorSpec, B: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """8-bit x·Wᵀ, times a scale per row and per column, and the bias."""
    return matrix_product(A, transposed(B)) + _rescaled(out[0].numel, out[0].dtype, bias)


@rule("bitsandbytes.int8_mixed_scaled_mm", family="matmul")
def int8_mixed_scaled_mm(
    A: TensorSpec,
    CA: TensorSpec,
    CB: TensorSpec,
    out: Specs,
    outlier_cols: TensorSpec | None = None,
    bias: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """8-bit x·Wᵀ over all columns, scaled, and the bias; then k columns with outliers once more in x's own precision:
    their weights q·scale, rows·k·out multiply-accumulates, and an addition per result."""
    work = int8_scaled_mm(CA, CB, out, bias)
    columns, n = (outlier_cols.numel if outlier_cols is not None else 0), CB.shape[0]
    if not columns:
        return work
    rows = flat(A).shape[0]
    outliers = TensorSpec((rows, columns), A.dtype)
    work += Work.of(A.precision, QUANTISATION, index=rows * columns, mul=n * columns)
    return work + _product(outliers, n, _INT8, A.precision) + bias_add(rows * n, A.precision)
