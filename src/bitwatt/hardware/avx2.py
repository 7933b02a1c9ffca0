"""An x86 core with AVX2 and FMA running torch's CPU build: what its kernels execute, each number measured.

Measured with fpcount (a valgrind tool that counts executed SSE, AVX and FMA lanes; a fused multiply-add is two) on
torch 2.13.0+cpu with ATEN_CPU_CAPABILITY=avx2 and one thread; re-measure with benchmarks/accuracy/executed_avx2.py.
Element-wise functions come from MKL's VML (exp, log, sin, sqrt, tanh, erf and their kin) or from SLEEF inside fused
loops: tanh alone costs 14, tanh inside GELU about 100. Integer and bool arithmetic executes no lane.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bitwatt.hardware import avx2_kernels as kernel
from bitwatt.hardware import avx2_libraries as library
from bitwatt.hardware.processor import Kernel, Processor, elements_of, up
from bitwatt.records import Op, TensorSpec

Args = kernel.Args

#: One elementary operation inside a fused loop: the functions as SLEEF and ATen's own vector code have them.
KINDS = {
    "add": 1.0, "mul": 1.0, "div": 1.0, "sqrt": 1.0, "exp": 20.0, "log": 27.0, "pow": 141.0, "sin": 17.0, "tan": 56.0,
    "tanh": 95.0, "sigmoid": 23.0, "erf": 20.0, "special": 60.0, "fft": 1.0,
}  # fmt: skip

#: Operations per element that comes out.
_ELEMENTS: Mapping[float, str] = {
    0: """abs neg relu clamp clamp_min clamp_max ceil floor round trunc maximum minimum fmax fmin where masked_fill
       threshold threshold_backward hardtanh hardtanh_backward hardshrink hardshrink_backward softshrink_backward
       nan_to_num copysign heaviside isnan isinf aminmax amax amin max min argmax argmin cummax cummin median sort topk
       kthvalue cat stack embedding gather index index_select scatter constant_pad_nd im2col max_pool2d_with_indices
       max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d upsample_nearest1d upsample_nearest2d
       upsample_nearest3d reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
       replication_pad3d flip roll tril triu complex fill zero copy clone _to_copy nll_loss_backward
       nll_loss2d_backward _foreach_abs _foreach_neg _foreach_maximum _foreach_clamp_min _foreach_clamp_max
       _foreach_copy""",
    0.5: "_prelu_kernel_backward fractional_max_pool2d",
    1: """mul reciprocal square sgn sign leaky_relu leaky_relu_backward hardsigmoid_backward frac rad2deg deg2rad
       cumprod cumsum _foreach_mul _foreach_div _foreach_reciprocal _foreach_sign _prelu_kernel
       rrelu_with_noise_backward""",
    2: "add sub rsub rsqrt bernoulli hardsigmoid softshrink _foreach_add _foreach_sub _foreach_rsqrt linspace arange",
    2.5: "rrelu_with_noise",
    3: """addcmul addcdiv hardswish hardswish_backward sigmoid_backward tanh_backward logit_backward mse_loss_backward
       linalg_cross _foreach_addcmul _foreach_addcdiv renorm""",
    3.0625: "lerp _foreach_lerp",
    3.5: "addr",
    4: "uniform rand rand_like smooth_l1_loss_backward huber_loss_backward",
    4.5: "_weight_norm_interface",
    5: "log_sigmoid_backward",
    7: "_weight_norm_interface_backward",
    13: "special_entr xlogy",
    13.4: "glu_backward",
    14.8: "sinc",
    22: "fmod",
    22.8: "glu",
    23: "sigmoid silu remainder _foreach_sigmoid",
    25: "soft_margin_loss_backward softplus_backward hann_window hamming_window",
    26: "elu_backward logit",
    27.5: "special_erfcx cauchy",
    28: "silu_backward",
    29: "special_xlog1py",
    32: "poisson",
    33.5: "affine_grid_generator log_sigmoid_forward",
    36: "randn randn_like normal normal_functional exponential",
    46.8: "logcumsumexp",
    52.5: "special_log_ndtr",
    59: "hypot",
    63: "logaddexp2 logspace",
    66: "special_i1",
    68: "softplus logaddexp",
    69.6: "log_normal",
    72: "atan2",
    89.6: "elu celu",
    92: "sinh cosh",
    96: "atanh",
    105: "i0",
    142: "ldexp",
    144: "angle",
    175: "mish",
    203: "mish_backward",
    374: "lgamma",
    660: "mvlgamma",
}

#: Functions of MKL's VML: whole vectors of 8, so that a scalar costs as much as eight.
_VML: Mapping[float, str] = {
    13: "sqrt _foreach_sqrt", 14: "tanh _foreach_tanh", 15: "exp2", 16: "log2 _foreach_log2", 17: "sin _foreach_sin",
    18: "exp _foreach_exp", 19: "log10 cos _foreach_log10 _foreach_cos", 20: "erf _foreach_erf", 24: "log _foreach_log",
    25: "erfinv", 33: "atan _foreach_atan", 34: "acos asinh", 35: "erfc _foreach_erfc", 37: "asin", 38: "acosh",
    45: "log1p _foreach_log1p", 56: "tan digamma _foreach_tan", 87: "expm1 _foreach_expm1",
}  # fmt: skip

#: In double precision, and on complex numbers, where the kernel is another one.
DOUBLE = {"aten.tanh": 32.0, "aten.exp": 20.0}
COMPLEX = {
    "aten.abs": 118.0, "aten.sgn": 120.0, "aten.angle": 144.0, "aten.mul": 6.0, "aten.add": 2.0, "aten.exp": 36.8,
    "aten.sigmoid": 70.6,
}  # fmt: skip

#: Powers that ATen rewrites; any other exponent is SLEEF's pow.
POWERS = {0: 0.0, 1: 0.0, 2: 1.0, 3: 2.0, 0.5: 13.0, -0.5: 2.0, -1: 1.0, -2: 2.0}


def power(a: Args, op: Op) -> float:
    exponent: Any = a.get("exponent")
    return (141.0 if isinstance(exponent, TensorSpec) else POWERS.get(exponent, 141.0)) * elements_of(op)


def divide(a: Args, op: Op) -> float:
    """A floor division is 28. The gradient of a mean divides rows that repeat one element, which takes 2: the ledger
    does not hold strides, so it is told by dividing by the length of such rows."""
    n = elements_of(op)
    if a.get("rounding_mode") == "floor":
        return 28 * n
    other = a.get("other")
    if op.name == "aten.div" and type(other) is int and other >= 24 and other in _parts(a["self"].shape):
        return 2 * n
    return n


def _parts(shape: tuple[int, ...]) -> set[int]:
    """The numbers of elements that a mean over the last dimension and perhaps others takes together."""
    parts = {shape[-1]} if shape else set()
    for size in shape[-2:-9:-1]:
        parts |= {part * size for part in parts}
    return parts


def vml(each: float) -> Kernel:
    def price(a: Args, op: Op) -> float:
        first: object = a.get("self")
        specs = op.out or (first if isinstance(first, tuple) else ())
        return each * sum(up(spec.numel, 8) for spec in specs)

    return price


def gelu(a: Args, op: Op) -> float:
    """The exact one is oneDNN's, six vectors at a time."""
    exact, tanh = (39.0, 125.5) if "grad_output" in a else (36.0, 116.0)
    n = elements_of(op)
    return tanh * n if a.get("approximate") == "tanh" else exact * up(n, 48) + 16


def loss(each: float) -> Kernel:
    """`each` for an element of the input, and their sum unless the loss is left unreduced (reduction 0)."""

    def price(a: Args, op: Op) -> float:
        n = a["self"].numel
        if a.get("reduction", 1) == 0:
            return float(each * n)
        return float(each * n + kernel.inner_sum(n) + 1)

    return price


def of_input(name: str, each: float) -> Kernel:
    """`each` for an element of one argument."""
    return lambda a, op: each * a[name].numel


def fused(each: float, **more: float) -> Kernel:
    """`each` for a parameter of a fused optimizer, and more where an option that is on names it."""

    def price(a: Args, op: Op) -> float:
        lists: tuple[TensorSpec, ...] = a["self"]
        extra = sum(cost for option, cost in more.items() if a.get(option) not in (None, False, 0, 0.0, ()))
        return (each + extra) * sum(spec.numel for spec in lists)

    return price


def nll_loss(a: Args, op: Op) -> float:
    return float(a["target"].numel * (3 if a.get("weight") is not None else 1) + 25)


def polygamma(a: Args, op: Op) -> float:
    return (46.6 if a.get("n") == 1 else 741) * elements_of(op)


def embedding_bag(a: Args, op: Op) -> float:
    return float(a["indices"].numel * up(a["weight"].shape[1], 8) + op.out[0].numel * (a.get("mode") == 1))


def ctc(each: float) -> Kernel:
    """So much for each place of the alignment table: time x batch x (2 · targets + 1)."""

    def price(a: Args, op: Op) -> float:
        steps, batch, _ = a["log_probs"].shape
        return float(each * steps * batch * (2 * a["targets"].shape[-1] + 1))

    return price


def trilinear(a: Args, op: Op) -> float:
    """Two products and a sum over the broadcast of all three."""
    sizes: dict[int, int] = {}
    for name, expanded in (("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")):
        rank = len(a[name].shape) + len(a[expanded])
        places = [d for d in range(rank) if d not in a[expanded]]
        sizes |= dict(zip(places, a[name].shape, strict=True))
    return 3.15 * math.prod(sizes.values())


def bilinear(a: Args, op: Op) -> float:
    """7 for each output, and the weights of each place once for all channels."""
    batch, _, *places = op.out[0].shape
    return 7 * op.out[0].numel + 9.2 * batch * math.prod(places)


def bilinear_backward(a: Args, op: Op) -> float:
    return (15.1 if a["align_corners"] else 17.2) * float(a["grad_output"].numel)


def sampled(each: float, place: float) -> Kernel:
    """Grid sampling: so much for each channel of a place and for the place."""

    def price(a: Args, op: Op) -> float:
        batch, *places, _ = a["grid"].shape
        if a.get("interpolation_mode") == 1:
            return float(batch * math.prod(places) * (7 + (each > 20) * a["input"].shape[1]))
        return float(batch * up(math.prod(places), 8) * (each * a["input"].shape[1] + place))

    return price


KERNELS: dict[str, Kernel] = {
    "mm": kernel.mm, "addmm": kernel.addmm, "linear": kernel.linear, "bmm": kernel.bmm, "baddbmm": kernel.bmm,
    "mv": kernel.mv, "addmv": kernel.mv, "dot": kernel.dot, "vdot": kernel.dot,
    "sum": kernel.sum_, "nansum": kernel.sum_, "mean": kernel.mean, "var": kernel.var, "std": kernel.var,
    "var_mean": kernel.var, "std_mean": kernel.var, "logsumexp": kernel.logsumexp,
    "linalg_vector_norm": kernel.vector_norm, "norm": kernel.vector_norm, "dist": of_input("self", 4),
    "_softmax": kernel.softmax, "_safe_softmax": kernel.softmax, "_softmax_backward_data": kernel.softmax_backward,
    "_log_softmax": kernel.log_softmax, "_log_softmax_backward_data": kernel.log_softmax_backward,
    "native_layer_norm": kernel.layer_norm, "native_layer_norm_backward": kernel.layer_norm_backward,
    "native_group_norm": kernel.group_norm, "native_group_norm_backward": kernel.group_norm_backward,
    "native_batch_norm": kernel.batch_norm, "_native_batch_norm_legit": kernel.batch_norm,
    "native_batch_norm_backward": kernel.batch_norm_backward,
    "avg_pool2d": kernel.avg_pool, "avg_pool3d": kernel.avg_pool, "avg_pool1d": kernel.avg_pool,
    "avg_pool2d_backward": kernel.avg_pool_backward, "avg_pool3d_backward": kernel.avg_pool_backward,
    "_adaptive_avg_pool2d": kernel.adaptive_avg_pool, "_adaptive_avg_pool3d": kernel.adaptive_avg_pool,
    "_adaptive_avg_pool2d_backward": kernel.adaptive_avg_pool_backward,
    "_adaptive_avg_pool3d_backward": kernel.adaptive_avg_pool_backward,
    "convolution": library.convolution, "convolution_backward": library.convolution_backward,
    "_scaled_dot_product_flash_attention_for_cpu": library.flash,
    "_scaled_dot_product_flash_attention_for_cpu_backward": library.flash_backward,
    "mkldnn_rnn_layer": library.rnn_layer, "mkldnn_rnn_layer_backward": library.rnn_layer_backward,
    "linalg_cholesky_ex": library.cholesky, "_linalg_solve_ex": library.solve, "linalg_inv_ex": library.inverse,
    "linalg_lu": library.lu, "linalg_lu_factor_ex": library.lu, "_linalg_det": library.lu,
    "_linalg_slogdet": library.lu,
    "linalg_qr": library.qr, "_linalg_svd": library.svd, "_linalg_eigh": library.eigh, "linalg_eig": library.eig,
    "linalg_lstsq": library.lstsq, "_euclidean_dist": library.distances,
    "_fft_r2c": library.fft, "_fft_c2c": library.fft, "_fft_c2r": library.fft,
    "pow": power, "div": divide, "gelu": gelu, "gelu_backward": gelu,
    "mse_loss": loss(2), "l1_loss": loss(1), "smooth_l1_loss": loss(6), "huber_loss": loss(6),
    "binary_cross_entropy": loss(45.5), "binary_cross_entropy_with_logits": loss(72), "soft_margin_loss": loss(64),
    "binary_cross_entropy_backward": lambda a, op: (5 + (a.get("reduction", 1) == 1)) * elements_of(op),
    "multi_margin_loss": of_input("self", 1.85), "multi_margin_loss_backward": of_input("self", 2.85),
    "multinomial": of_input("self", 40), "prod": of_input("self", 1), "polygamma": polygamma,
    "trace": lambda a, op: min(a["self"].shape), "_ctc_loss": ctc(27), "_ctc_loss_backward": ctc(52),
    "_embedding_bag": embedding_bag,
    "_embedding_bag_backward": lambda a, op: 2 * a["indices"].numel * a["grad"].shape[1],
    "_trilinear": trilinear, "linalg_pinv": library.pinv, "linalg_matrix_exp": library.matrix_exp,
    "linalg_householder_product": library.householder, "cholesky_inverse": library.cholesky_inverse,
    "cholesky_solve": library.cholesky_solve, "_cdist_forward": library.pairs(2.75),
    "_cdist_backward": library.pairs(4),
    "nll_loss_forward": nll_loss, "nll_loss2d_forward": nll_loss,
    "max_pool2d_with_indices_backward": of_input("grad_output", 1),
    "max_pool3d_with_indices_backward": of_input("grad_output", 1),
    "adaptive_max_pool2d_backward": of_input("grad_output", 1),
    "fractional_max_pool2d_backward": of_input("grad_output", 1),
    "embedding_dense_backward": of_input("grad_output", 2), "scatter_add": of_input("src", 1),
    "index_add": of_input("source", 1), "index_put": of_input("values", 1), "col2im": of_input("self", 1),
    "upsample_nearest1d_backward": of_input("grad_output", 1),
    "upsample_nearest2d_backward": of_input("grad_output", 1),
    "upsample_nearest3d_backward": of_input("grad_output", 1), "reflection_pad1d_backward": of_input("grad_output", 1),
    "reflection_pad2d_backward": of_input("grad_output", 1), "reflection_pad3d_backward": of_input("grad_output", 1),
    "replication_pad1d_backward": of_input("grad_output", 1), "replication_pad2d_backward": of_input("grad_output", 1),
    "replication_pad3d_backward": of_input("grad_output", 1),
    "upsample_linear1d_backward": of_input("grad_output", 9), "upsample_bilinear2d_backward": bilinear_backward,
    "upsample_trilinear3d_backward": of_input("grad_output", 29.6),
    "upsample_bicubic2d_backward": of_input("grad_output", 94), "upsample_bilinear2d": bilinear,
    "grid_sampler_2d": sampled(7, 14), "grid_sampler_2d_backward": sampled(21.4, 15),
    "_fused_adam": fused(13, amsgrad=0, weight_decay=2), "_fused_adamw": fused(13, weight_decay=1, amsgrad=0),
    "_fused_sgd": fused(2, momentum=3, weight_decay=2, nesterov=2), "_fused_adagrad": fused(7, weight_decay=2),
}  # fmt: skip

ELEMENTS = {f"aten.{name}": each for each, names in _ELEMENTS.items() for name in names.split()}
KERNELS |= {name: vml(each) for each, names in _VML.items() for name in names.split()}
ELEMENTS |= {"aten.upsample_linear1d": 3.2, "aten.upsample_trilinear3d": 21.0, "aten.upsample_bicubic2d": 35.1}

AVX2 = Processor(
    name="avx2",
    source="fpcount (valgrind) on torch 2.13.0+cpu, AVX2 path, one thread, MKL and oneDNN",
    kinds=KINDS,
    product=kernel.product,
    elements=ELEMENTS,
    double=DOUBLE,
    complex=COMPLEX,
    kernels={f"aten.{name}": price for name, price in KERNELS.items()},
)
