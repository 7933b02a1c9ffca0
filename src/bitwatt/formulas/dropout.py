"""Dropout."""

from bitwatt.dtypes import Precision
from bitwatt.records import Work


def dropout(elements: int, precision: Precision) -> Work:
    """A drawn 0 or 1 divided by the share kept, times the element (Srivastava et al. 2014, inverted form)."""
    return Work.of(precision, random=elements, div=elements, mul=elements)


def dropout_backward(elements: int, precision: Precision) -> Work:
    """The gradient times the same scaled mask."""
    return Work.of(precision, mul=elements)
