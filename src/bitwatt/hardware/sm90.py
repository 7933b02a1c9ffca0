"""An NVIDIA H200 (compute capability 9.0) running torch's CUDA build: what its kernels execute.

Counted as Nsight Compute counts: tensor-core operations plus 2·FMA + ADD + MUL of the CUDA cores; the special function
unit (ex2, lg2, rcp, rsq, sin) is no FMA pipe and counts nothing, so a function costs the arithmetic around it. nvcc
also loads constants with half-precision FMAs (HFMA2), which the counters of shared/truth hold as 2 each: kernels that
compute offsets for broadcast operands show 2 or 3 more per element for that reason, and they are priced here.

A number is [read] where it comes from the counters of 2026-11-15 (torch 2.11+cu130, an H200; the readings are
tests/data/torch_executed_sm90.jsonl) and [code] where it counts the instructions that nvcc makes of CUDA's device
functions. Read on normal random numbers: leaky ReLU, ELU, smooth L1, sin and GELU branch on the value. So, it seems,
does the square root: AdamW reads 37 for a parameter with random gradients, and 34.6 in the language model of
shared/truth, two fifths of whose parameters are embedding rows never looked up. That a root of 0 leaves early (6 fewer)
would explain it to 0.2 %; it was not measured by itself, and 37 is priced.
Re-measure with benchmarks/accuracy/executed_sm90.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bitwatt.hardware import sm90_kernels as kernel
from bitwatt.hardware.processor import Kernel, Processor, elements_of
from bitwatt.records import MASKED, Op, TensorSpec

Args = kernel.Args
EXP, LOG = kernel.EXP, kernel.LOG
DIV, SQRT, RECIPROCAL, POW = 10.0, 6.0, 5.0, 60.4

#: One elementary operation inside a kernel that no table names: what the function alone was [read] to cost; special and
#: fft are [code].
KINDS = {
    "add": 1.0, "mul": 1.0, "div": DIV, "sqrt": SQRT, "exp": EXP, "log": LOG, "pow": POW, "sin": 17.4, "tan": 21.0,
    "tanh": 14.4, "sigmoid": 17.25, "erf": 15.6, "special": 40.0, "fft": 1.0,
}  # fmt: skip

#: Operations per element that comes out [read].
_READ: Mapping[float, str] = {
    0: """relu threshold_backward hardtanh hardtanh_backward rsqrt sgn embedding max_pool2d_with_indices copy""",
    0.5: "leaky_relu leaky_relu_backward",  # the negative half
    1: "abs neg hardsigmoid_backward _foreach_abs _foreach_maximum",
    2: "hardsigmoid native_dropout_backward",
    3: "lerp addcmul hardswish sigmoid_backward tanh_backward flip _foreach_lerp",
    5: "reciprocal mse_loss_backward",
    6: "sqrt _foreach_sqrt",
    8.5: "elu_backward",
    9: "upsample_bilinear2d",
    9.95: "smooth_l1_loss_backward",
    10: "_foreach_reciprocal",
    10.25: "exp",
    12: "addcdiv elu",
    12.7: "hardswish_backward",
    14.4: "tanh",
    15.6: "erf",
    17.25: "sigmoid",
    17.3: "sin",
    17.6: "cos",
    18: "binary_cross_entropy_backward",
    20.25: "expm1",
    21: "tan",
    22.75: "silu",
    23: "silu_backward",
    24.25: "log",
    25: "softplus_backward",
    26.25: "log1p log2",
    27: "xlogy log_sigmoid_backward",
    51: "softplus",
    51.6: "mish",
    77.1: "mish_backward",
}

#: The same, [code].
_CODE: Mapping[float, str] = {
    0: """clamp clamp_min clamp_max ceil floor round trunc maximum minimum where threshold sign amax amin max min
       argmax argmin sort topk cat stack gather index index_select scatter constant_pad_nd im2col clone _to_copy
       fill zero _foreach_copy""",
    1: "square _foreach_neg _foreach_rsqrt",
    10.25: "exp2 _foreach_exp",
    10: "huber_loss_backward",
    26.25: "log10",
}

#: Powers that ATen rewrites; 1, 2 and 3 are [read], any other exponent is CUDA's powf [read at 2.5 and 1.5].
POWERS = {0: 0.0, 1: 0.0, 2: 1.0, 3: 2.0, 0.5: SQRT, -0.5: 0.0, -1: RECIPROCAL, -2: RECIPROCAL + 1}


def power(a: Args, op: Op) -> float:
    exponent: Any = a.get("exponent")
    return (POW if isinstance(exponent, TensorSpec) else POWERS.get(exponent, POW)) * elements_of(op)


def broadcast(each: float, strided: float = 2.0) -> Kernel:
    """`each` for an element, and `strided` more where an operand is repeated: the kernel then computes offsets."""

    def price(a: Args, op: Op) -> float:
        out = op.out[0].shape
        repeated = any(spec.shape != out for spec in op.inputs)
        return (each + strided * repeated) * op.out[0].numel

    return price


def divide(a: Args, op: Op) -> float:
    """By a tensor a division, by a number a product. The gradient of a mean divides a tensor that repeats one element
    (2 more) or rows that do (3 more): told by dividing by the number of elements that were averaged."""
    x, other = a["self"], a.get("other")
    if isinstance(other, TensorSpec):
        return broadcast(DIV, 3.0)(a, op)
    if op.name == "aten.div" and type(other) is int and other > 1:
        if other == x.numel:
            return 3.0 * elements_of(op)
        if other in _trailing(x.shape):
            return 4.0 * elements_of(op)
    return float(elements_of(op))


def _trailing(shape: tuple[int, ...]) -> set[int]:
    """Sizes of the last dimension, the last two, and so on: what a mean over them divides by."""
    found, size = set(), 1
    for extent in reversed(shape):
        size *= extent
        found.add(size)
    return found


def gelu(a: Args, op: Op) -> float:
    exact, tanh = (36.3, 31.3) if "grad_output" in a else (19.6, 22.3)
    return (tanh if a.get("approximate") == "tanh" else exact) * elements_of(op)


def listed(number: float, tensors: float) -> Kernel:
    """A multi-tensor op with a number, or with a second list of tensors."""

    def price(a: Args, op: Op) -> float:
        other: Any = a.get("other")
        return (tensors if isinstance(other, tuple) else number) * elements_of(op)

    return price


def scaled(one: float, value: float) -> Kernel:
    """A multi-tensor a + value·(b, c): a value of 1 is left out of the kernel."""

    def price(a: Args, op: Op) -> float:
        return (one if a.get("value", a.get("scalars", 1)) == 1 else value) * elements_of(op)

    return price


def fused(each: float) -> Kernel:
    return lambda a, op: each * sum(spec.numel for spec in a["self"])


#: [read], save these [code]: flash attention (priced as cuDNN's), native_batch_norm in training, std, var_mean,
#: cumprod, huber_loss, rsub, baddbmm, _foreach_sub, _foreach_div by one number, fused optimizers other than AdamW.
KERNELS: dict[str, Kernel] = {
    "mm": kernel.mm, "addmm": kernel.mm, "bmm": kernel.bmm, "baddbmm": kernel.bmm,
    "convolution": kernel.convolution, "cudnn_convolution": kernel.convolution,
    "convolution_backward": kernel.convolution,
    "_scaled_dot_product_efficient_attention": kernel.efficient_attention,
    "_scaled_dot_product_efficient_attention_backward": kernel.efficient_attention_backward,
    "_scaled_dot_product_cudnn_attention": kernel.flash_attention(2, 4.1, 0),
    "_scaled_dot_product_cudnn_attention_backward": kernel.flash_attention(5, 6, 2.4),
    "_scaled_dot_product_flash_attention": kernel.flash_attention(2, 4.1, 0),
    "_scaled_dot_product_flash_attention_backward": kernel.flash_attention(5, 6, 2.4),
    "_softmax": kernel.softmax(log=False), "_softmax_backward_data": kernel.softmax_backward(log=False),
    "_log_softmax": kernel.softmax(log=True), "_log_softmax_backward_data": kernel.softmax_backward(log=True),
    "native_layer_norm": kernel.layer_norm, "_fused_rms_norm": kernel.rms_norm,
    "native_layer_norm_backward": kernel.norm_backward(14, 3648, 2829, 5, 400),
    "_fused_rms_norm_backward": kernel.norm_backward(10, 2592, 1517, 3, 288),
    "native_group_norm": kernel.group_norm, "native_group_norm_backward": kernel.group_norm_backward,
    "cudnn_batch_norm": kernel.batch_norm, "cudnn_batch_norm_backward": kernel.batch_norm_backward,
    "native_batch_norm": kernel.batch_norm, "native_batch_norm_backward": kernel.native_batch_norm_backward,
    "sum": kernel.reduced(1, 0), "mean": kernel.reduced(1, 1), "linalg_vector_norm": kernel.reduced(2, SQRT),
    "var": kernel.reduced(17, DIV, 53), "std": kernel.reduced(17, DIV + SQRT, 53),
    "var_mean": kernel.reduced(17, DIV, 53), "logsumexp": kernel.logsumexp, "cumsum": kernel.cumulated,
    "cumprod": kernel.cumulated,
    "mse_loss": kernel.loss(2), "smooth_l1_loss": kernel.loss(8.2), "binary_cross_entropy": kernel.loss(58),
    "binary_cross_entropy_with_logits": kernel.loss(42.5),
    "huber_loss": kernel.loss(8.2),
    "nll_loss_forward": lambda a, op: 2.0 * a["target"].numel + 72,
    "nll_loss_backward": lambda a, op: 1.0 * a["target"].numel + 320,
    "log_sigmoid_forward": lambda a, op: 37.5 * a["self"].numel,
    "pow": power, "gelu": gelu, "gelu_backward": gelu, "native_dropout": lambda a, op: 5.25 * a["input"].numel,
    "add": broadcast(2), "sub": broadcast(2), "rsub": broadcast(2), "mul": broadcast(1), "div": divide,
    "true_divide": divide, "masked_fill": broadcast(0),
    "embedding_dense_backward": lambda a, op: 1.0 * a["grad_output"].numel,
    "max_pool2d_with_indices_backward": lambda a, op: 1.0 * a["grad_output"].numel + 2 * a["self"].numel,
    "avg_pool2d": kernel.avg_pool, "avg_pool2d_backward": kernel.avg_pool_backward,
    "upsample_bilinear2d_backward": lambda a, op: 22.0 * a["grad_output"].numel,
    "_foreach_add": listed(1, 2), "_foreach_sub": listed(1, 2), "_foreach_mul": listed(1, 2),
    "_foreach_div": listed(DIV, 11), "_foreach_addcmul": scaled(2, 3), "_foreach_addcdiv": scaled(11, 12),
    "_fused_adamw": fused(41.4), "_fused_adam": fused(40.4),
    "_fused_sgd": fused(5), "_fused_adagrad": fused(20),
}  # fmt: skip

SM90 = Processor(
    name="sm90",
    source="Nsight Compute on an H200, torch 2.11+cu130, 2026-11-15; hardware/sm90.py marks which numbers are read",
    kinds=KINDS,
    product=kernel.product,
    elements={f"aten.{n}": each for table in (_CODE, _READ) for each, names in table.items() for n in names.split()},
    kernels={f"aten.{name}": price for name, price in KERNELS.items()},
    skips=frozenset({MASKED}),
)
