"""bitsandbytes: products with 4- and 8-bit weights, and going to and from those formats."""

import math
from typing import Any

from bitwatt.formulas.linalg import bias_add, matmul, matrix_product, scaling
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, flat, transposed
from bitwatt.rules._tables import each

SPACE = "bitsandbytes"

each("dequantize_4bit dequantize_blockwise", "code[q]·scale of its block", family="cast", space=SPACE, index=1, mul=1)
each(
    "quantize_4bit quantize_blockwise",
    "the largest of each block, x/scale, the nearest code",
    family="cast",
    space=SPACE,
    of="in",
    compare=5,
    mul=1,
)
each(
    "int8_vectorwise_quant int8_double_quant",
    "the largest of each row, x/scale rounded",
    family="cast",
    space=SPACE,
    of="in",
    compare=1,
    mul=1,
    cast=1,
)
each("int8_vectorwise_dequant", "q·scale of its row", family="cast", space=SPACE, mul=1)


@rule("bitsandbytes.gemv_4bit", "bitsandbytes.gemm_4bit", family="matmul")
def gemm_4bit(A: TensorSpec, shapeB: tuple[int, ...], out: Specs, **_: Any) -> Work:
    """x·Wᵀ with 4-bit weights: rows·in·out multiply-accumulates; code[q]·scale for each weight."""
    rows, n = flat(A), shapeB[0]
    weights = math.prod(shapeB)
    work = matmul(rows.shape[0], rows.shape[1], n, A, TensorSpec(shapeB, "int4"))
    return work + Work.of(A.precision, index=weights, mul=weights)


@rule("bitsandbytes.int8_linear_matmul", family="matmul")
def int8_linear_matmul(A: TensorSpec, B: TensorSpec, **_: Any) -> Work:
    """8-bit x·Wᵀ: rows·in·out multiply-accumulates."""
    return matrix_product(A, transposed(B))


@rule("bitsandbytes.int8_mm_dequant", family="cast")
def int8_mm_dequant(A: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """The sum times a scale per row and per column, and the bias."""
    result = out[0]
    return scaling(2 * A.numel, result.precision) + bias_add(A.numel * (bias is not None), result.precision)


@rule("bitsandbytes.int8_scaled_mm", family="matmul")
def int8_scaled_mm(A: TensorSpec, B: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """8-bit x·Wᵀ, times a scale per row and per column, and the bias."""
    result = out[0]
    work = matrix_product(A, transposed(B)) + scaling(2 * result.numel, result.precision)
    return work if bias is None else work + bias_add(result.numel, result.precision)
