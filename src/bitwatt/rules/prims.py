"""The primitives that decompositions and compilers write: each as the ATen op it stands for."""

from collections.abc import Callable
from typing import Any

from bitwatt.records import Work
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

each("bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1", "a Bessel function", space="prims", special=1)
each("cbrt erf_inv erfcx ndtri spherical_bessel_j0 zeta", "a special function", space="prims", special=1)
each("pow", "x^y", space="prims", pow=1)
each("xor_sum", "bits joined", space="prims", of="in", logic=1)
moved("collapse copy_strided reshape rev", "Every element read and written.", space="prims")
written("copy_to", "One tensor copied over another.", space="prims")
idle(
    "as_strided broadcast_in_dim collapse_view conj imag real resize split_dim squeeze transpose view_of view_of_dtype "
    "maximum_value minimum_value _make_token _sink_tokens",
    "a view or a constant: no data moves",
    space="prims",
)
