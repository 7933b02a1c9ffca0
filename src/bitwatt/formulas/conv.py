"""Convolutions, as the matrix products they are."""

import math
from dataclasses import dataclass

from bitwatt.formulas.linalg import matmul
from bitwatt.records import TensorSpec, Work


@dataclass(frozen=True, slots=True)
class Kernel:
    """A convolution unrolled: `groups` products between rows x `narrow` and rows x `wide` matrices.

    Each row is a place of the output that the kernel visits; `narrow` counts the channels there and `wide` the
    channels times the taps of its window, both per group. The weight is narrow x wide.
    """

    groups: int
    rows: int
    narrow: int
    wide: int


def unrolled(coarse: TensorSpec, fine: TensorSpec, weight: TensorSpec) -> Kernel:
    """The kernel between the tensor that has one row for each visit and the one it slides over.

    A convolution slides over its input and a transposed one over its output: the same picture in a mirror, with the
    weight laid out alike, (coarse channels, fine channels / groups, *window). Channels come before the spatial axes.
    """
    spatial = len(weight.shape) - 2
    channels = len(coarse.shape) - spatial - 1
    sites = math.prod(coarse.shape[:channels]) * math.prod(coarse.shape[channels + 1 :])
    groups = max(fine.shape[channels] // max(weight.shape[1], 1), 1)
    return Kernel(groups, sites, weight.shape[0] // groups, math.prod(weight.shape[1:]))


def gather(kernel: Kernel, x: TensorSpec, weight: TensorSpec) -> Work:
    """Each place sums over its window: rows·narrow·wide MACs per group, taps on padding included (im2col, Chellapilla
    et al. 2006). The forward of a convolution and the input gradient of a transposed one."""
    return matmul(kernel.rows, kernel.wide, kernel.narrow, x, weight, batch=kernel.groups)


def scatter(kernel: Kernel, x: TensorSpec, weight: TensorSpec) -> Work:
    """Each place spreads over its window: the same MACs as gather, summed over the channels of the place. The forward
    of a transposed convolution and the input gradient of a plain one (Dumoulin & Visin 2016, 1603.07285, chapter 4)."""
    return matmul(kernel.rows, kernel.narrow, kernel.wide, x, weight, batch=kernel.groups)


def correlate(kernel: Kernel, x: TensorSpec, gradient: TensorSpec) -> Work:
    """The weight's gradient: narrow x wide, summed over the rows; the same MACs as the forward."""
    return matmul(kernel.narrow, kernel.rows, kernel.wide, gradient, x, batch=kernel.groups)
