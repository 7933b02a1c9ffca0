"""Normalisations of ONNX, by the formulas that torch's have."""

import math
from typing import Any

from bitwatt.formulas import norm as formulas
from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.reduction import variance, vector_norm
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.aten.norm import batch_norm_forward


def rows_of(spec: TensorSpec, axis: int) -> int:
    """How many stretches are normalised, each from `axis` to the end."""
    return math.prod(spec.shape[: axis % len(spec.shape)]) if spec.shape else 1


@rule("onnx.BatchNormalization", family="norm")
def batch_norm(X: TensorSpec, training_mode: int = 0, **_: Any) -> Work:
    """(x - μ)/σ·γ + β as one line a·x + b per channel: 1 mul, 1 add per element; in training also the statistics."""
    return batch_norm_forward(X, bool(training_mode), True)


@rule("onnx.LayerNormalization", family="norm")
def layer_norm(X: TensorSpec, axis: int = -1, B: TensorSpec | None = None, **_: Any) -> Work:
    """(x - μ)/σ·γ + β: per element 3 add, 1 mul for the statistics, 1 mul for 1/σ, 1 mul for γ, 1 add for β; per row
    3 div, 1 add, 1 sqrt."""
    return formulas.layer_norm(X.numel, rows_of(X, axis), X.precision, weight=True, bias=B is not None)


@rule("onnx.RMSNormalization", "onnx.SimplifiedLayerNormalization", family="norm")
def rms_norm(X: TensorSpec, axis: int = -1, **_: Any) -> Work:
    """x/√(mean x² + ε)·γ: per element 3 mul, 1 add; per row 2 div, 1 add, 1 sqrt."""
    return formulas.rms_norm(X.numel, rows_of(X, axis), X.precision, weight=True)


@rule("onnx.InstanceNormalization", family="norm")
def instance_norm(input: TensorSpec, **_: Any) -> Work:
    """(x - μ)/σ·γ + β with statistics of each channel of each sample: 4 operations per element for them, 2 for the
    line."""
    rows = math.prod(input.shape[:2])
    return formulas.channel_norm(input.numel, rows, rows, input.precision)


@rule("onnx.GroupNormalization", family="norm")
def group_norm(X: TensorSpec, num_groups: int, **_: Any) -> Work:
    """(x - μ)/σ·γ + β with statistics of each group: 4 operations per element for them, 2 for the line."""
    samples, channels = X.shape[:2]
    return formulas.channel_norm(X.numel, samples * num_groups, samples * channels, X.precision)


@rule("onnx.MeanVarianceNormalization", family="norm")
def mean_variance(X: TensorSpec, axes: tuple[int, ...] = (0, 2, 3), **_: Any) -> Work:
    """(x - μ)/(σ + ε): 3 add, 1 mul per element and 2 div, 1 sqrt, 1 add per result for the statistics, 1 add, 1 div
    per element to apply them."""
    length = math.prod(X.shape[axis] for axis in axes)
    results = X.numel // max(length, 1)
    work = variance(X, X.numel, results, root=True)
    return work + pointwise(X, X.numel, add=1, div=1) + pointwise(X, results, add=1)


@rule("onnx.LpNormalization", family="norm")
def lp_norm(input: TensorSpec, axis: int = -1, p: int = 2, **_: Any) -> Work:
    """x/‖x‖_p: p=2 is 1 mul, 1 add, 1 div per element and 1 sqrt per result; p=1 1 add, 1 div."""
    results = input.numel // max(input.shape[axis], 1)
    return vector_norm(input, input.numel, results, p) + pointwise(input, input.numel, div=1)


@rule("onnx.LRN", family="norm")
def local_response(X: TensorSpec, size: int, **_: Any) -> Work:
    """x/(k + α·Σ x²)^β over `size` channels: 1 mul for the square, size add, 1 mul, 1 add, 1 pow, 1 div per element
    (Krizhevsky et al. 2012, section 3.3)."""
    return pointwise(X, X.numel, mul=2, add=size + 1, pow=1, div=1)
