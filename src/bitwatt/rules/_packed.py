"""Products with quantised, prepacked weights: what the quantised namespaces share."""

from typing import Any

from bitwatt.formulas.linalg import bias_add, matmul
from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.rules._products import flat, fused
from bitwatt.rules.aten.conv import convolved
from bitwatt.rules.aten.quantized import dynamic

BYTE = TensorSpec((), "int8")
HALF = TensorSpec((), "float16")


def weight_of(packed: Any) -> TensorSpec:
    """The weight in a packed parameter, which the backend writes down as (weight, bias, ...)."""
    if isinstance(packed, TensorSpec):
        return packed
    if isinstance(packed, tuple) and packed and isinstance(packed[0], TensorSpec):
        return packed[0]
    raise LookupError("a packed weight whose shape was not written down")


def requantised(out: TensorSpec, bias: bool = True) -> Work:
    """The 32-bit sum becomes the result: bias added, scaled, zero point added, rounded."""
    n = out.numel
    return bias_add(n * bias, out.precision) + Work.of(out.precision, QUANTISATION, mul=n, add=n, cast=n)


def scaled_back(out: TensorSpec, bias: bool = True) -> Work:
    """The 32-bit sum becomes a float: scaled, bias added."""
    return Work.of(out.precision, QUANTISATION, mul=out.numel) + bias_add(out.numel * bias, out.precision)


def packed_linear(x: TensorSpec, out: TensorSpec, after: str | None = None) -> Work:
    """8-bit activations times 8-bit weights, then requantised; the weight's sizes are those of input and result."""
    rows = flat(x)
    return matmul(rows.shape[0], rows.shape[1], out.shape[-1], x, BYTE) + requantised(out) + fused(after, out)


def dynamic_linear(x: TensorSpec, out: TensorSpec, after: str | None = None) -> Work:
    """Activations quantised on the way in; the result is scaled back to float and the bias added."""
    rows = flat(x)
    work = dynamic(x) + matmul(rows.shape[0], rows.shape[1], out.shape[-1], BYTE, BYTE)
    return work + scaled_back(out) + fused(after, out)


def half_linear(x: TensorSpec, out: TensorSpec, after: str | None = None) -> Work:
    """Activations times 16-bit float weights, plus bias."""
    rows = flat(x)
    work = matmul(rows.shape[0], rows.shape[1], out.shape[-1], x, HALF)
    return work + bias_add(out.numel, out.precision) + fused(after, out)


def packed_conv(x: TensorSpec, packed: Any, out: TensorSpec, transposed: bool, after: str | None = None) -> Work:
    """A convolution of 8-bit values, then requantised."""
    return convolved(x, weight_of(packed), None, out, transposed) + requantised(out) + fused(after, out)


def dynamic_conv(x: TensorSpec, packed: Any, out: TensorSpec, transposed: bool) -> Work:
    """A convolution whose input is quantised on the way in and whose result is scaled back to float."""
    eight = TensorSpec(x.shape, "int8")
    work = dynamic(x) + convolved(eight, weight_of(packed), None, out, transposed)
    return work + scaled_back(out)
