"""Normalisations, counted per element, per row of which the statistics are taken, and per channel of the affine map."""

from bitwatt.dtypes import Precision
from bitwatt.records import Work


def statistics(elements: int, rows: int, precision: Precision) -> Work:
    """Mean, variance and 1/√(variance + ε) of each row: per element add to the mean, subtract it, square, add up;
    per row two divisions by the length, add ε, root and reciprocal."""
    return Work.of(precision, add=3 * elements + rows, mul=elements, div=3 * rows, sqrt=rows)


def inverse_deviation(rows: int, precision: Precision) -> Work:
    """1/√(variance + ε)."""
    return Work.of(precision, add=rows, sqrt=rows, div=rows)


def fold(channels: int, precision: Precision) -> Work:
    """γ/σ and β - μ·γ/σ once per channel, so that normalising and the affine map are one line through x."""
    return Work.of(precision, mul=2 * channels, add=channels)


def line(elements: int, precision: Precision) -> Work:
    """a·x + b: a multiplication and an addition per element."""
    return Work.of(precision, mul=elements, add=elements)


def channel_norm(elements: int, rows: int, channels: int, precision: Precision) -> Work:
    """Batch, group and instance norm of a batch's own statistics: 4 operations per element for them, 2 for the line
    (Ioffe & Szegedy 2015, algorithm 1; Wu & He 2018, eq. 7)."""
    return statistics(elements, rows, precision) + fold(channels, precision) + line(elements, precision)


def channel_sums(elements: int, precision: Precision) -> Work:
    """Σ g and Σ g·x."""
    return Work.of(precision, mul=elements, add=2 * elements)


def channel_gradient(elements: int, channels: int, precision: Precision) -> Work:
    """dx = a·g + b·x + c."""
    return Work.of(precision, mul=2 * elements + 6 * channels, add=2 * elements + 4 * channels)


def running_update(channels: int, precision: Precision) -> Work:
    """(1 - m)·old + m·new of mean and unbiased variance."""
    return Work.of(precision, mul=5 * channels, add=2 * channels)


def layer_norm(elements: int, rows: int, precision: Precision, *, weight: bool, bias: bool) -> Work:
    """(x - μ)/σ·γ + β with γ, β per element: the statistics, a multiplication by 1/σ (the difference is at hand), and
    one operation each for γ and β (Ba et al. 2016, 1607.06450)."""
    applied = Work.of(precision, mul=elements * (1 + weight), add=elements * bias)
    return statistics(elements, rows, precision) + applied


def layer_norm_backward(
    elements: int, rows: int, precision: Precision, *, dx: bool, dweight: bool, dbias: bool, weight: bool
) -> Work:
    """x̂ = (x - μ)/σ again (2); dx = (g - mean g - x̂·mean g·x̂)/σ with g = γ·dy: 1 for γ, 3 for the sums, 4 to apply;
    dγ = Σ dy·x̂ (2); dβ = Σ dy (1)."""
    work = Work.of(precision, add=elements, mul=elements) if dx or dweight else Work()
    if dx:
        work += Work.of(precision, mul=elements * (3 + weight), add=4 * elements, div=2 * rows)
    if dweight:
        work += Work.of(precision, mul=elements, add=elements)
    return work + Work.of(precision, add=elements * dbias)


def rms_norm(elements: int, rows: int, precision: Precision, *, weight: bool) -> Work:
    """x/√(mean x² + ε)·γ: square, add up, multiply, and γ; per row divide, add ε, root, reciprocal (Zhang & Sennrich
    2019, eq. 4)."""
    return Work.of(precision, mul=elements * (2 + weight), add=elements + rows, div=2 * rows, sqrt=rows)


def rms_norm_backward(elements: int, rows: int, precision: Precision, *, dx: bool, dweight: bool, weight: bool) -> Work:
    """With r = 1/σ and g = γ·dy: dx = g·r + (2·x/n)·c, c = -½·r³·Σ g·x for each row; dγ = Σ dy·x̂ with x̂ at hand. Per
    element 1 for γ, 1 for g·r, 2 for the sum, 3 for the second term, 1 to join them, 2 for dγ; 4 per row for c."""
    work = Work()
    if dx:
        work += Work.of(precision, mul=elements * (4 + weight) + 4 * rows, add=2 * elements, div=elements)
    if dweight:
        work += Work.of(precision, mul=elements, add=elements)
    return work


def weight_norm(elements: int, rows: int, precision: Precision) -> Work:
    """v·g/‖v‖: square, add up, multiply; a root and a division per row (Salimans & Kingma 2016, eq. 2)."""
    return Work.of(precision, mul=2 * elements, add=elements, sqrt=rows, div=rows)


def weight_norm_backward(elements: int, rows: int, precision: Precision) -> Work:
    """dg = Σ dw·v/‖v‖ and dv = g/‖v‖·(dw - v·dg/‖v‖) (Salimans & Kingma 2016, eq. 3): 2 for the sum, 3 to apply."""
    return Work.of(precision, mul=3 * elements, add=2 * elements, div=3 * rows)
