"""An NVIDIA H200 (compute capability 9.0) running torch's CUDA build: what its kernels execute.

Counted as Nsight Compute counts: tensor-core operations plus 2·FMA + ADD + MUL of the CUDA cores; the special function
unit (ex2, lg2, rcp, rsq, sin) is no FMA pipe and counts nothing, so a function costs the arithmetic around it. A number
is marked [read] where it was read from hardware counters (torch 2.11+cu130, a training step of an MLP, a ResNet-18 and
an encoder LM) and [code] where it counts the instructions that nvcc makes of CUDA's device function; re-measure with
benchmarks/accuracy/executed_sm90.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bitwatt.hardware.avx2_kernels import Args, per_dim
from bitwatt.hardware.processor import Kernel, Processor, dims_of, elements_of, split, up
from bitwatt.records import MASKED, Op, Product, TensorSpec

DIV, SQRT, EXP, LOG, ERF = 8.0, 8.0, 10.0, 22.0, 15.5
#: One elementary operation. div and sqrt are [read] in AdamW's 34.5, exp in the loss, erf in GELU; others are [code].
KINDS = {
    "add": 1.0, "mul": 1.0, "div": DIV, "sqrt": SQRT, "exp": EXP, "log": LOG, "pow": 60.0, "sin": 17.0, "tan": 34.0,
    "tanh": 9.0, "sigmoid": EXP + DIV + 1, "erf": ERF, "special": 40.0, "fft": 1.0,
}  # fmt: skip

#: Operations per element that comes out. GELU is [read], the rest [code].
_ELEMENTS: Mapping[float, str] = {
    0: """abs neg relu clamp clamp_min clamp_max ceil floor round trunc maximum minimum where masked_fill threshold
       threshold_backward hardtanh hardtanh_backward sign sgn rsqrt amax amin max min argmax argmin sort topk cat stack
       embedding gather index index_select scatter constant_pad_nd im2col max_pool2d_with_indices clone copy _to_copy
       fill zero nll_loss_backward _foreach_abs _foreach_neg _foreach_maximum _foreach_copy""",
    1: "mul cumsum cumprod leaky_relu leaky_relu_backward hardsigmoid_backward square _foreach_mul _foreach_rsqrt",
    2: "add sub rsub hardsigmoid native_dropout_backward mse_loss_backward _foreach_add _foreach_sub",
    3: "lerp addcmul hardswish hardswish_backward sigmoid_backward tanh_backward _foreach_lerp _foreach_addcmul",
    4: "reciprocal _foreach_reciprocal",
    8: "div sqrt true_divide _foreach_div _foreach_sqrt",
    9: "tanh",
    10: "exp exp2 addcdiv _foreach_exp _foreach_addcdiv",
    15.5: "erf",
    17: "sin cos",
    19: "sigmoid silu",
    22: "log log2 log10",
    24: "log1p expm1 elu",
    26: "silu_backward",
    36: "softplus log_sigmoid_forward",
}


def tile(size: int) -> int:
    """Matrix kernels compute whole tiles: 64 wide, 128 from there on [read: 10 columns as 64, 784 as 896 of an MLP]."""
    return up(size, 64) if size <= 64 else up(size, 128)


def gemm(m: int, k: int, n: int, *, half: bool) -> float:
    """Tensor cores in bfloat16, float16 and int8: tiles of 64 or 128. CUDA cores in float32: tiles of 64."""
    if half:
        return 2.0 * max(tile(m), m) * max(tile(n), n) * k if min(m, n) > 1 else 2.0 * m * n * k
    return 2.0 * m * n * k if min(m, n) == 1 else 2.0 * up(m, 32) * up(n, 64) * k


def product(p: Product) -> float:
    components = 4 if "complex" in (p.a.kind, p.b.kind) else 1
    return components * p.batch * gemm(p.m, p.k, p.n, half=max(p.a.bits, p.b.bits) <= 16)


def half(spec: TensorSpec) -> bool:
    return spec.precision.bits <= 16


def mm(a: Args, op: Op) -> float:
    first = a.get("mat1") or a["self"]
    (m, k), n = first.shape, a["mat2"].shape[1]
    return gemm(m, k, n, half=half(first)) + (2 * m * n if "mat1" in a else 0)


def bmm(a: Args, op: Op) -> float:
    first = a.get("batch1") or a["self"]
    second = a.get("batch2") or a["mat2"]
    (batch, m, k), n = first.shape, second.shape[2]
    return float(batch * gemm(m, k, n, half=half(first)))


def convolution(a: Args, op: Op) -> float:
    """An implicit matrix product over the pixels, 32 of them a tile [read: ResNet-18 at batch 1 executes 1.26 times its
    formula, its 4 x 4 maps half empty; at batch 32 its formula]."""
    weight: TensorSpec = a["weight"]
    out = a.get("grad_output") or op.out[0]
    small = a["input"] if a["transposed"] else out
    pixels = up(small.shape[0] * math.prod(small.shape[2:]), 32)
    total = 2.0 * pixels * weight.numel
    if "output_mask" not in a:
        return total
    data, weights, bias = a["output_mask"]
    return total * (bool(data) + bool(weights)) + (out.numel if bias else 0)


def _scores(a: Args) -> tuple[float, float, bool]:
    """(scores computed, width of a head, half precision); keys and queries in tiles of 64."""
    q, k = a["query"], a["key"]
    queries, keys = up(q.shape[-2], 64), up(k.shape[-2], 64)
    scores = math.prod(q.shape[:-2]) * queries * keys
    if a.get("is_causal"):
        scores *= (queries + 64) / (2 * queries) if queries == keys else 1.0
    return scores, q.shape[-1], half(q)


def attention(products: int, each: float) -> Kernel:
    """`products` matrix products; float32 as three TF32 ones [read], and `each` CUDA-core operation for a score [read:
    20 forward, 52 backward, memory-efficient kernel]. A causal mask spares whole tiles."""

    def price(a: Args, op: Op) -> float:
        scores, width, narrow = _scores(a)
        return scores * (2 * width * products * (1 if narrow else 3) + each)

    return price


def rows(each: float, row: float) -> Kernel:
    """`each` for an element and `row` for each row reduced."""

    def price(a: Args, op: Op) -> float:
        x = next(iter(op.inputs))
        size = x.shape[a["dim"]] if x.shape else 1
        return each * x.numel + row * x.numel / max(size, 1)

    return price


def norm(each: float) -> Kernel:
    return lambda a, op: each * a["input"].numel


def reduced(each: float, per_output: float) -> Kernel:
    """A reduction: `each` for an element, and for each output what folds the threads of a block."""

    def price(a: Args, op: Op) -> float:
        x: TensorSpec = a["self"]
        if x.precision.kind not in {"float", "complex"}:
            return 0
        before, _, after = split(x.shape, dims_of(a.get("dim"), len(x.shape)))
        return each * x.numel + (31 + per_output) * before * after

    return price


def loss(each: float) -> Kernel:
    return lambda a, op: (each + (a.get("reduction", 1) != 0)) * a["self"].numel


def power(a: Args, op: Op) -> float:
    exponent: Any = a.get("exponent")
    known = {0: 0.0, 1: 0.0, 2: 1.0, 3: 2.0, 0.5: SQRT, -0.5: 0.0, -1: 4.0, -2: 5.0}
    return (60.0 if isinstance(exponent, TensorSpec) else known.get(exponent, 60.0)) * elements_of(op)


def gelu(a: Args, op: Op) -> float:
    """[read] for the exact one; with tanh [code]."""
    exact, tanh = (36.3, 30.0) if "grad_output" in a else (19.5, 18.0)
    return (tanh if a.get("approximate") == "tanh" else exact) * elements_of(op)


def fused(each: float) -> Kernel:
    return lambda a, op: each * sum(spec.numel for spec in a["self"])


def pooled(a: Args, op: Op) -> float:
    rank = len(op.out[0].shape) - 2
    return op.out[0].numel * (math.prod(per_dim(a["kernel_size"], rank)) + DIV)


KERNELS: dict[str, Kernel] = {
    "mm": mm, "addmm": mm, "bmm": bmm, "baddbmm": bmm, "convolution": convolution, "cudnn_convolution": convolution,
    "convolution_backward": convolution,
    "_scaled_dot_product_efficient_attention": attention(2, 20.2),
    "_scaled_dot_product_efficient_attention_backward": attention(5, 51.7),
    "_scaled_dot_product_flash_attention": attention(2, 20), "_scaled_dot_product_cudnn_attention": attention(2, 20),
    "_scaled_dot_product_flash_attention_backward": attention(5, 50),
    "_scaled_dot_product_cudnn_attention_backward": attention(5, 50),
    "_softmax": rows(EXP + 10, 31), "_softmax_backward_data": rows(4, 31),
    "_log_softmax": rows(15.5, 31), "_log_softmax_backward_data": rows(13.5, 31),  # [read]: 1024 x 33278
    "native_layer_norm": norm(47.2),  # [read]: 1024 x 256, Welford with a division for each element
    "native_layer_norm_backward": norm(24), "native_group_norm": norm(14), "native_group_norm_backward": norm(16),
    "_fused_rms_norm": norm(6), "cudnn_batch_norm": norm(12), "cudnn_batch_norm_backward": norm(20),
    "native_batch_norm": norm(12), "native_batch_norm_backward": norm(20),
    "sum": reduced(1, 0), "mean": reduced(1, 1), "var": reduced(DIV + 5, DIV), "std": reduced(DIV + 5, DIV + SQRT),
    "linalg_vector_norm": reduced(2, SQRT), "logsumexp": reduced(EXP + 2, LOG + 2),
    "mse_loss": loss(2), "l1_loss": loss(1), "smooth_l1_loss": loss(6), "huber_loss": loss(6),
    "binary_cross_entropy": loss(2 * LOG + 4), "binary_cross_entropy_with_logits": loss(EXP + LOG + 6),
    "pow": power, "gelu": gelu, "gelu_backward": gelu, "avg_pool2d": pooled,
    "native_dropout": lambda a, op: 3 * a["input"].numel,
    "embedding_dense_backward": lambda a, op: a["grad_output"].numel,
    "max_pool2d_with_indices_backward": lambda a, op: a["grad_output"].numel,
    "_fused_adam": fused(34), "_fused_adamw": fused(34), "_fused_sgd": fused(5), "_fused_adagrad": fused(20),
}  # fmt: skip

SM90 = Processor(
    name="sm90",
    source="Nsight Compute on an H200, torch 2.11+cu130, and CUDA's device functions; see hardware/sm90.py for which",
    kinds=KINDS,
    product=product,
    elements={f"aten.{name}": each for each, names in _ELEMENTS.items() for name in names.split()},
    kernels={f"aten.{name}": price for name, price in KERNELS.items()},
    skips=frozenset({MASKED}),
)
