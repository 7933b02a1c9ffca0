"""Normalisations of ATen: one formula for every kernel of a norm."""

import math
from typing import Any

from bitwatt.formulas import norm as formulas
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, named


def _rows(elements: int, normalized_shape: tuple[int, ...]) -> int:
    length = math.prod(normalized_shape)
    return elements // length if length else 0


@rule("aten.native_layer_norm", "aten.layer_norm", family="norm")
def layer_norm(
    input: TensorSpec,
    normalized_shape: tuple[int, ...],
    weight: TensorSpec | None = None,
    bias: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """(x - μ)/σ·γ + β: per element 3 add, 1 mul for the statistics, 1 mul for 1/σ, 1 mul for γ, 1 add for β; per row
    3 div, 1 add, 1 sqrt."""
    rows = _rows(input.numel, normalized_shape)
    return formulas.layer_norm(input.numel, rows, input.precision, weight=weight is not None, bias=bias is not None)


@rule("aten.native_layer_norm_backward", family="norm")
def layer_norm_backward(
    input: TensorSpec,
    normalized_shape: tuple[int, ...],
    output_mask: tuple[bool, bool, bool],
    weight: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """x̂ again, dx = (g - mean g - x̂·mean g·x̂)/σ with g = γ·dy, dγ = Σ dy·x̂, dβ = Σ dy: 13 operations per element."""
    dx, dweight, dbias = output_mask
    return formulas.layer_norm_backward(
        input.numel,
        _rows(input.numel, normalized_shape),
        input.precision,
        dx=dx,
        dweight=dweight,
        dbias=dbias,
        weight=weight is not None,
    )


@rule("aten._fused_rms_norm", "aten.rms_norm", family="norm")
def rms_norm(input: TensorSpec, normalized_shape: tuple[int, ...], weight: TensorSpec | None = None, **_: Any) -> Work:
    """x/√(mean x² + ε)·γ: per element 3 mul, 1 add; per row 2 div, 1 add, 1 sqrt."""
    rows = _rows(input.numel, normalized_shape)
    return formulas.rms_norm(input.numel, rows, input.precision, weight=weight is not None)


@rule("aten._fused_rms_norm_backward", family="norm")
def rms_norm_backward(
    input: TensorSpec,
    normalized_shape: tuple[int, ...],
    output_mask: tuple[bool, bool],
    weight: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """dx = g·r + (2·x/n)·c with g = γ·dy, r = 1/σ, c = -½·r³·Σ g·x; dγ = Σ dy·x̂: 6 mul, 3 add, 1 div per element."""
    rows = _rows(input.numel, normalized_shape)
    dx, dweight = output_mask
    return formulas.rms_norm_backward(
        input.numel, rows, input.precision, dx=dx, dweight=dweight, weight=weight is not None
    )


@rule("aten.native_group_norm", "aten.group_norm", family="norm")
def group_norm(input: TensorSpec, out: Specs, **args: Any) -> Work:
    """(x - μ)/σ·γ + β with statistics of each group: per element 3 add, 1 mul for them, 1 mul, 1 add for the line that
    σ, γ, μ, β make together."""
    groups = args["group"] if "group" in args else args["num_groups"]
    samples, channels = input.shape[0], input.shape[1]
    return formulas.channel_norm(input.numel, samples * groups, samples * channels, input.precision)


@rule("aten.native_group_norm_backward", family="norm")
def group_norm_backward(input: TensorSpec, N: int, C: int, output_mask: tuple[bool, bool, bool], **_: Any) -> Work:
    """Σ g and Σ g·x per channel: 3 operations per element; dx = a·g + b·x + c: 4."""
    work = formulas.channel_sums(input.numel, input.precision)
    return work + formulas.channel_gradient(input.numel, N * C, input.precision) if output_mask[0] else work


def _channels(input: TensorSpec) -> int:
    return input.shape[1] if len(input.shape) > 1 else 1


def batch_norm_forward(input: TensorSpec, training: bool, updates: bool) -> Work:
    """A batch's own statistics in training, else those that are kept; then a line per channel."""
    n, channels, precision = input.numel, _channels(input), input.precision
    if not training:
        folded = formulas.inverse_deviation(channels, precision) + formulas.fold(channels, precision)
        return folded + formulas.line(n, precision)
    work = formulas.channel_norm(n, channels, channels, precision)
    return work + formulas.running_update(channels, precision) if updates else work


def batch_norm_gradient(input: TensorSpec, training: bool, output_mask: tuple[bool, ...]) -> Work:
    """With fixed statistics dx is one product per element; the sums are needed for dγ and dβ alone."""
    n, channels, precision = input.numel, _channels(input), input.precision
    if training:
        work = formulas.channel_sums(n, precision)
        return work + formulas.channel_gradient(n, channels, precision) if output_mask[0] else work
    dx, dweight, dbias = output_mask
    return Work.of(precision, mul=n * (dx + dweight) + channels, add=n * (dweight + dbias))


@rule(
    *named(
        "native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_functional batch_norm cudnn_batch_norm"
    ),
    *named("miopen_batch_norm _batch_norm_impl_index"),
    family="norm",
)
def batch_norm(input: TensorSpec, training: bool, running_mean: TensorSpec | None = None, **_: Any) -> Work:
    """(x - μ)/σ·γ + β as one line a·x + b per channel: 1 mul, 1 add per element; in training also the statistics,
    3 add, 1 mul per element, and the running ones kept."""
    return batch_norm_forward(input, training, running_mean is not None)


@rule("aten._batch_norm_with_update", "aten._batch_norm_with_update_functional", family="norm")
def batch_norm_with_update(input: TensorSpec, **_: Any) -> Work:
    """batch_norm in training."""
    return batch_norm_forward(input, training=True, updates=True)


@rule(
    "aten._native_batch_norm_legit_no_training",
    "aten._batch_norm_no_update",
    "aten.quantized_batch_norm",
    family="norm",
)
def batch_norm_no_training(input: TensorSpec, **_: Any) -> Work:
    """batch_norm with the statistics that are kept."""
    return batch_norm_forward(input, training=False, updates=False)


@rule("aten.instance_norm", family="norm")
def instance_norm(input: TensorSpec, use_input_stats: bool, running_mean: TensorSpec | None = None, **_: Any) -> Work:
    """batch_norm of every sample's own channels."""
    channels = math.prod(input.shape[:2])
    folded = TensorSpec((1, channels, *input.shape[2:]), input.dtype)
    return batch_norm_forward(folded, use_input_stats, running_mean is not None)


@rule("aten.native_batch_norm_backward", "aten._batch_norm_impl_index_backward", family="norm")
def batch_norm_backward(input: TensorSpec, train: bool, output_mask: tuple[bool, ...], **_: Any) -> Work:
    """Σ g and Σ g·x per channel: 3 operations per element; dx = a·g + b·x + c: 4."""
    return batch_norm_gradient(input, train, output_mask)


@rule("aten.batch_norm_backward", family="norm")
def batch_norm_backward_update(input: TensorSpec, update: bool, output_mask: tuple[bool, ...], **_: Any) -> Work:
    """Σ g and Σ g·x per channel: 3 operations per element; dx = a·g + b·x + c: 4."""
    return batch_norm_gradient(input, update, output_mask)


@rule("aten.cudnn_batch_norm_backward", "aten.miopen_batch_norm_backward", family="norm")
def batch_norm_backward_training(input: TensorSpec, **_: Any) -> Work:
    """Σ g and Σ g·x per channel: 3 operations per element; dx = a·g + b·x + c: 4."""
    return batch_norm_gradient(input, True, (True, True, True))


@rule("aten.batch_norm_stats", "aten.batch_norm_update_stats", family="norm")
def batch_norm_stats(input: TensorSpec, **args: Any) -> Work:
    """The statistics of each channel: per element 3 add, 1 mul."""
    channels = _channels(input)
    work = formulas.statistics(input.numel, channels, input.precision)
    kept = args.get("running_mean") is not None
    return work + formulas.running_update(channels, input.precision) if kept else work


@rule("aten.batch_norm_gather_stats", "aten.batch_norm_gather_stats_with_counts", family="norm")
def batch_norm_gather_stats(mean: TensorSpec, out: Specs, running_mean: TensorSpec | None = None, **_: Any) -> Work:
    """The statistics of several processes made one (Chan et al. 1983): per process and channel 5 add, 5 mul, 2 div."""
    channels = out[0].numel
    n, precision = mean.numel, mean.precision
    work = Work.of(precision, add=5 * n, mul=5 * n, div=2 * n) + formulas.inverse_deviation(channels, precision)
    return work + formulas.running_update(channels, precision) if running_mean is not None else work


@rule("aten.batch_norm_elemt", family="norm")
def batch_norm_elemt(input: TensorSpec, **_: Any) -> Work:
    """The line a·x + b per channel: 1 mul, 1 add per element."""
    return formulas.fold(_channels(input), input.precision) + formulas.line(input.numel, input.precision)


@rule("aten.batch_norm_backward_reduce", family="norm")
def batch_norm_backward_reduce(input: TensorSpec, **_: Any) -> Work:
    """Σ g and Σ g·x per channel: 1 mul, 2 add per element."""
    return formulas.channel_sums(input.numel, input.precision)


@rule("aten.batch_norm_backward_elemt", family="norm")
def batch_norm_backward_elemt(input: TensorSpec, **_: Any) -> Work:
    """dx = a·g + b·x + c: 2 mul, 2 add per element."""
    return formulas.channel_gradient(input.numel, _channels(input), input.precision)


@rule("aten._weight_norm_interface", "aten._weight_norm", family="norm")
def weight_norm(v: TensorSpec, g: TensorSpec, **_: Any) -> Work:
    """v·g/‖v‖: 2 mul, 1 add per element, 1 sqrt, 1 div per norm."""
    return formulas.weight_norm(v.numel, g.numel, v.precision)


@rule("aten._weight_norm_interface_backward", "aten._weight_norm_differentiable_backward", family="norm")
def weight_norm_backward(saved_v: TensorSpec, saved_g: TensorSpec, **_: Any) -> Work:
    """dg = Σ dw·v/‖v‖, dv = g/‖v‖·(dw - v·dg/‖v‖): 3 mul, 2 add per element, 3 div per norm."""
    return formulas.weight_norm_backward(saved_v.numel, saved_g.numel, saved_v.precision)
