"""Fourier transforms, determinants, and texts."""

import math
from typing import Any

from bitwatt.formulas.fft import fft
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._onnx import constant
from bitwatt.rules._products import Specs
from bitwatt.rules._tables import as_twin


@rule("onnx.DFT", family="fft")
def dft(
    input: TensorSpec, out: Specs, axis: int = 1, onesided: int = 0, inverse: int = 0, constants: Any = (), **_: Any
) -> Work:
    """5·N·log2 n real operations (3 add, 2 mul) over N elements, half where one side is real; the inverse scales.

    Complex numbers lie along the last axis, two to each; a real signal has one.
    """
    asked = constant(constants, "axis", axis)
    axis = asked[0] if isinstance(asked, tuple) else asked
    real = input.shape[-1] == 1 or out[0].shape[-1] == 1
    whole = max(input, out[0], key=lambda spec: spec.numel // spec.shape[-1])
    length = whole.shape[axis % len(whole.shape)]
    return fft(input, whole.numel // whole.shape[-1], (length,), real=real, scaled=bool(inverse))


@rule("onnx.STFT", family="fft")
def stft(
    signal: TensorSpec,
    out: Specs,
    window: TensorSpec | None = None,
    onesided: int = 1,
    constants: Any = (),
    **_: Any,
) -> Work:
    """Frames of n, weighed (1 mul per element) and transformed: 2.5·n·log2 n each for a real signal, else 5."""
    batch, frames, bins = out[0].shape[:3]
    told = constant(constants, "frame_length")
    length = window.numel if window is not None else told or (2 * (bins - 1) if onesided else bins)
    elements = batch * frames * length
    weighed = pointwise(signal, elements, mul=int(window is not None))
    return weighed + fft(signal, elements, (length,), real=signal.shape[-1] == 1 or len(signal.shape) == 2)


@rule("onnx.MelWeightMatrix", family="fft")
def mel(out: Specs, **_: Any) -> Work:
    """The corner frequencies (2 add, 2 mul, 1 pow for each band), and a ramp for each element of the matrix: 1 add,
    1 div."""
    return pointwise(out[0], out[0].shape[-1], add=2, mul=2, pow=1) + pointwise(out[0], out[0].numel, add=1, div=1)


@rule("onnx.Det", family="linalg")
def det(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """An LU factorisation of each matrix, and the product of its diagonal."""
    return as_twin("aten.det", {"self": X}, out)


@rule("onnx.StringNormalizer", "onnx.StringConcat", "onnx.StringSplit", "onnx.RegexFullMatch", family="text")
def text(X: TensorSpec, **_: Any) -> Work:
    """One step through each text; how long texts are is data."""
    return Work(Work.of(X.precision, text=X.numel).ops, estimated=True)


@rule("onnx.ImageDecoder", family="other")
def image(encoded_stream: TensorSpec, **_: Any) -> Work:
    """One step through each byte of the stream; what decoding computes depends on the format, which is data."""
    return Work(Work.of(encoded_stream.precision, text=math.prod(encoded_stream.shape)).ops, estimated=True)
