"""torchao's own operators: products of small formats, and going to and from them."""

from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.attention import attention, causal, dense
from bitwatt.formulas.linalg import bias_add, matmul, matrix_product, two_in_four
from bitwatt.precision.formats import integer
from bitwatt.records import QUANTISATION, Product, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, flat, named
from bitwatt.rules._tables import each, moved
from bitwatt.rules.aten.quantized import dynamic, rescale, scaled

SPACE = "torchao"

each(
    "quantize_affine",
    "x/s + z rounded and held in range",
    family="cast",
    space=SPACE,
    of="in",
    part=QUANTISATION,
    mul=1,
    add=1,
    compare=2,
    cast=1,
)
each("dequantize_affine", "(q - z)·s", family="cast", space=SPACE, part=QUANTISATION, add=1, mul=1, cast=1)
each(
    "quantize_affine_float8_non_decomposed",
    "x/s held in range",
    family="cast",
    space=SPACE,
    of="in",
    part=QUANTISATION,
    div=1,
    compare=2,
    cast=1,
)
each("dequantize_affine_float8_non_decomposed", "q·s", family="cast", space=SPACE, part=QUANTISATION, mul=1, cast=1)
each(
    "mxfp8_quantize mxfp8_quantize_2d_32x1_flydsl mxfp8_quantize_2d_1x32_flydsl mxfp8_quantize_3d_flydsl "
    "mxfp8_quantize_2d_32x1_cutedsl mxfp8_quantize_2d_1x32_cutedsl mxfp8_quantize_3d_cutedsl",
    "the largest of each block, x/scale held in range",
    family="cast",
    space=SPACE,
    of="in",
    part=QUANTISATION,
    compare=3,
    mul=1,
    cast=1,
)
moved(
    "float8_linear_prepack_cpu da8w4_linear_prepack_cpu mx_block_rearrange_2d_M_groups triton_mx_block_rearrange",
    "elements copied into the order a kernel reads",
    space=SPACE,
)


@rule("torchao.choose_qparams_affine", family="reduction")
def choose_qparams_affine(input: TensorSpec | None = None, **_: Any) -> Work:
    """The range of each block: 2 compare per element."""
    return Work.of(input.precision, QUANTISATION, compare=2 * input.numel) if input is not None else Work()


@rule("torchao.choose_scale_float8", family="reduction")
def choose_scale_float8(tensor: TensorSpec, **_: Any) -> Work:
    """The largest magnitude of each block: 1 logic, 1 compare per element."""
    return Work.of(tensor.precision, QUANTISATION, logic=tensor.numel, compare=tensor.numel)


def _linear(x: TensorSpec, out: TensorSpec, weight: Precision, bias: TensorSpec | None, **parts: Any) -> Work:
    rows, k = flat(x).shape
    n = out.shape[-1]
    if not (rows and k and n):
        return Work()
    work = Work(products=((Product(1, rows, n, k, x.precision, weight, **parts), 1),))
    return work if bias is None else work + bias_add(out.numel, out.precision)


@rule("torchao.float8_linear_cpu", family="matmul")
def float8_linear_cpu(
    input: TensorSpec, input_scales: Any, weight: TensorSpec, weight_scales: Any, out: Specs, bias: Any = None, **_: Any
) -> Work:
    """float8 x·Wᵀ, times the scales of rows and columns, plus bias."""
    return _linear(input, out[0], weight.precision, bias) + rescale((input_scales, weight_scales), out[0])


@rule("torchao.da8w4_linear_cpu", family="matmul")
def da8w4_linear_cpu(input: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """8-bit x·Wᵀ with 4-bit weights; scales of rows and columns, 2 mul, and zero points, 2 add, per result; bias."""
    n = out[0].numel
    return _linear(input, out[0], integer(4), bias) + Work.of(out[0].precision, QUANTISATION, mul=2 * n, add=2 * n)


@rule("torchao.reference_dqlinear_int4", family="matmul")
def reference_dqlinear_int4(x_fp32: TensorSpec, out: Specs, bias_fp32: TensorSpec | None = None, **_: Any) -> Work:
    """x rounded to 8 bits on the way in, x·Wᵀ with 4-bit weights, scaled back; bias."""
    n, eight = out[0].numel, TensorSpec(x_fp32.shape, "int8")
    product = _linear(eight, out[0], integer(4), bias_fp32)
    return dynamic(x_fp32) + product + Work.of(out[0].precision, QUANTISATION, mul=2 * n, add=2 * n)


@rule("torchao.scaled_int8_mm", family="matmul")
def scaled_int8_mm(A: TensorSpec, B: TensorSpec, out: Specs, **_: Any) -> Work:
    """8-bit product, times a scale per row and per column."""
    return matrix_product(A, B) + scaled(out[0], 2)


@rule("torchao.mx_fp8_bf16", "torchao.mx_fp4_bf16", "torchao.blockwise_scaled_mm", family="matmul")
def block_scaled_mm(a: TensorSpec, b: TensorSpec, out: Specs, **_: Any) -> Work:
    """A product of values with scales of blocks: a multiplication per result."""
    return matrix_product(a, b) + scaled(out[0])


@rule("torchao.swizzle_mm", family="matmul")
def swizzle_mm(mat1: TensorSpec, mat2: TensorSpec, out: Specs, **_: Any) -> Work:
    """m·n·k multiply-accumulates; operands may be reordered, the result is not."""
    m, n = out[0].shape[-2:]
    return matmul(m, mat1.numel // max(m, 1), n, mat1, mat2)


@rule("torchao.swizzle_scaled_mm", family="matmul")
def swizzle_scaled_mm(
    mat1: TensorSpec,
    mat2: TensorSpec,
    scale_a: Any,
    scale_b: Any,
    out: Specs,
    bias: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """As _scaled_mm, of operands that may be reordered."""
    work = swizzle_mm(mat1, mat2, out) + rescale((scale_a, scale_b), out[0])
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)


@rule("torchao.rowwise_scaled_linear_sparse_cutlass_f8f8", family="matmul")
def sparse_f8f8(
    input: TensorSpec, input_scale: Any, weight: TensorSpec, weight_scale: Any, out: Specs, bias: Any = None, **_: Any
) -> Work:
    """float8 x·Wᵀ with two of every four weights, times the scales of rows and columns, plus bias."""
    rows, k = flat(input).shape
    work = two_in_four(rows, k, out[0].shape[-1], input, weight) + rescale((input_scale, weight_scale), out[0])
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)


each(
    "to_sparse_semi_structured_cutlass_sm9x_f8",
    "the larger two of every four kept, with their places",
    family="index",
    space=SPACE,
    of="in",
    compare=2,
    index=1,
)


@rule("torchao.qscaled_dot_product", family="attention")
def qscaled_dot_product(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    out: Specs,
    attn_mask: TensorSpec | None = None,
    is_causal: bool = False,
    **_: Any,
) -> Work:
    """Attention on 8-bit values; scores and results go back through float: (q - z)·s and round(x/s + z)."""
    batch, heads, lq, d = query.shape
    scores = dense(batch * heads, lq, key.shape[-2], d, value.shape[-1])
    scores = causal(scores) if is_causal else scores
    n = batch * heads * lq * key.shape[-2] + out[0].numel
    work = attention(scores, query, key, value, biased=attn_mask is not None)
    return work + Work.of(TensorSpec(()).precision, QUANTISATION, mul=2 * n, add=2 * n, cast=n)


@rule("torchao._scaled_embedding_bag", family="index")
def scaled_embedding_bag(indices: TensorSpec, out: Specs, **_: Any) -> Work:
    """Rows looked up and added up, then scaled: 1 index, 1 add for each value read, 1 mul per result."""
    result = out[0]
    n = indices.numel * result.shape[-1]
    return Work.of(result.precision, index=n, add=n) + scaled(result)


def _packed_linear(bits: int) -> None:
    @rule(*named(f"_linear_8bit_act_{bits}bit_weight", SPACE), family="matmul")
    def linear(out: Specs, **args: Any) -> Work:
        """Activations quantised to 8 bits, times weights of fewer, scaled back: 1 mul per result."""
        x = next(value for value in args.values() if isinstance(value, TensorSpec))
        return dynamic(x) + _linear(TensorSpec(x.shape, "int8"), out[0], integer(bits), None) + scaled(out[0])


for _bits in range(1, 9):
    _packed_linear(_bits)
