"""The primitives that decompositions and compilers write: each as the ATen op it stands for."""

import math
from collections.abc import Callable
from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, as_twin, each, idle, moved, named, written

SAME = (
    "abs acos acosh add amax amin as_strided_scatter asin asinh atan atan2 atanh bitwise_and bitwise_not "
    "bitwise_or bitwise_xor cat ceil clone conj_physical cos cosh digamma div empty empty_permuted empty_strided "
    "eq erf erfc exp exp2 expm1 fill floor fmax fmin fmod frexp full full_like gcd ge gt hypot igamma igammac "
    "isfinite item le lgamma log log10 log1p log2 lt maximum minimum mul ne neg nextafter normal prod reciprocal "
    "remainder round rsqrt scalar_tensor sign signbit sin sinh sqrt sub sum tan tanh trunc uniform var where "
)
TWINS = {name: name for name in SAME.split()} | {
    "fft_c2c": "_fft_c2c",
    "fft_c2r": "_fft_c2r",
    "fft_r2c": "_fft_r2c",
    "iota": "arange",
    "svd": "_linalg_svd",
    "convert_element_type": "_to_copy",
    "device_put": "_to_copy",
    "shift_left": "bitwise_left_shift",
    "shift_right_arithmetic": "bitwise_right_shift",
}
ARGUMENTS = {"inp": "self", "a": "self", "dims": "dim"}


def _as(twin: str) -> Callable[..., Work]:
    def function(out: Specs = (), **args: Any) -> Work:
        return as_twin(f"aten.{twin}", {ARGUMENTS.get(name, name): value for name, value in args.items()}, out)

    return function


for _name, _twin in TWINS.items():
    named(_name, f"As aten.{_twin}.", _as(_twin), "pointwise", space="prims")


@rule("prims.prepare_softmax_online", family="softmax")
def prepare_softmax_online(a: TensorSpec, **_: Any) -> Work:
    """The maximum and Σ e^(x - max) of each row: 1 compare, 2 add, 1 exp per element."""
    return pointwise(a, a.numel, compare=1, add=2, exp=1)


@rule("prims._low_memory_max_pool_with_offsets", family="pool")
def low_memory_max_pool(out: Specs, kernel_size: Any = (1,), **_: Any) -> Work:
    """The largest of each window: window compare per result."""
    return pointwise(out[0], out[0].numel, compare=math.prod(kernel_size))


each("bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1", "a Bessel function", space="prims", special=1)
each("cbrt erf_inv erfcx ndtri spherical_bessel_j0 zeta", "a special function", space="prims", special=1)
each("pow", "x^y", space="prims", pow=1)
each("xor_sum", "bits joined", space="prims", of="in", logic=1)
each("fma", "x·y + z", space="prims", mul=1, add=1)
each("_unsafe_index_put_", "values put at indices", family="index", space="prims", index=1)
each("_low_memory_max_pool_offsets_to_indices", "places of the maxima", family="pool", space="prims", add=2, mul=2)
each("inductor_cvt_e8m0_rceil", "a format change", family="cast", space="prims", cast=1)
written("inductor_random inductor_randint", "A number drawn and written", family="random", space="prims", random=1)
written("inductor_rand_eager_offset", "A number drawn and written", family="random", space="prims", random=1)
written("inductor_rand_eager_offsets", "A number drawn and written", family="random", space="prims", random=1)
moved("collapse copy_strided reshape rev", "Every element read and written.", space="prims")
written("copy_to", "One tensor copied over another.", space="prims")
idle(
    "as_strided broadcast_in_dim collapse_view conj imag real resize split_dim squeeze transpose view_of view_of_dtype "
    "maximum_value minimum_value _make_token _sink_tokens inductor_seed inductor_seeds inductor_lookup_seed "
    "inductor_force_stride_order",
    "a view or a constant: no data moves",
    space="prims",
)
