"""Softmax, its logarithm and their gradients, counted per element and per row that adds up to one."""

from bitwatt.dtypes import Precision
from bitwatt.records import NECESSARY, Work


def softmax(elements: int, precision: Precision, part: str = NECESSARY) -> Work:
    """e^(x - max) / Σ: per element a compare for the maximum, subtract, exp, add to the sum, divide (Bridle 1990)."""
    return Work.of(precision, part, compare=elements, add=2 * elements, exp=elements, div=elements)


def softmax_backward(elements: int, precision: Precision, part: str = NECESSARY) -> Work:
    """y·(g - Σ y·g): multiply, add to the sum, subtract, multiply."""
    return Work.of(precision, part, mul=2 * elements, add=2 * elements)


def log_softmax(elements: int, rows: int, precision: Precision) -> Work:
    """x - max - log Σ e^(x - max): compare, subtract, exp, add to the sum, subtract; a log per row."""
    return Work.of(precision, compare=elements, add=3 * elements, exp=elements, log=rows)


def log_softmax_backward(elements: int, precision: Precision) -> Work:
    """g - e^y·Σ g: add to the sum, exp, multiply, subtract."""
    return Work.of(precision, add=2 * elements, exp=elements, mul=elements)


def logsumexp(elements: int, rows: int, precision: Precision) -> Work:
    """max + log Σ e^(x - max): compare, subtract, exp, add to the sum; a log and an add per row."""
    return Work.of(precision, compare=elements, add=2 * elements + rows, exp=elements, log=rows)
