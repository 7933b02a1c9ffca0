"""To a small format and back: work that is there for the format's sake alone."""

from typing import Any

from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs
from bitwatt.rules.aten.cast import converted


def dynamic_range(x: TensorSpec) -> Work:
    """The range found (2 compare), then round(x/s + z): 1 mul, 1 add, 1 cast, 2 compare per element."""
    n = x.numel
    return Work.of(x.precision, QUANTISATION, compare=2 * n) + quantised(x)


def quantised(x: TensorSpec) -> Work:
    """round(x/s + z) held in range."""
    n = x.numel
    return Work.of(x.precision, QUANTISATION, mul=n, add=n, cast=n, compare=2 * n)


def dequantised(out: TensorSpec, zero_point: bool) -> Work:
    """(q - z)·s."""
    n = out.numel
    return Work.of(out.precision, QUANTISATION, add=n * zero_point, mul=n, cast=n)


@rule("onnx.QuantizeLinear", family="cast")
def quantize(x: TensorSpec, **_: Any) -> Work:
    """round(x/s + z) held in range: 1 mul, 1 add, 1 cast, 2 compare per element."""
    return quantised(x)


@rule("onnx.DequantizeLinear", family="cast")
def dequantize(out: Specs, x_zero_point: TensorSpec | None = None, **_: Any) -> Work:
    """(q - z)·s: 1 add where there is a zero point, 1 mul, 1 cast per element."""
    return dequantised(out[0], x_zero_point is not None)


@rule("onnx.DynamicQuantizeLinear", family="cast")
def dynamic(x: TensorSpec, **_: Any) -> Work:
    """The range found, then round(x/s + z) held in range: 1 mul, 1 add, 1 cast, 4 compare per element."""
    return dynamic_range(x)


@rule("onnx.Cast", "onnx.CastLike", family="cast")
def cast(input: TensorSpec, out: Specs, **_: Any) -> Work:
    """1 cast per element where the format changes; every element read and written."""
    return converted(input, out[0])
