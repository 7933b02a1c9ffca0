"""What the values of a quantised layer carry: the tensor is asked, then its module, then a probe, then the dtype.

One file for each library, named after it. A reader is given the tensor or module and reads attributes; it computes
nothing and imports nothing.
"""

from bitwatt.precision.registry import Widths, precision, quantised
from bitwatt.precision.resolve import resolve

__all__ = ["Widths", "precision", "quantised", "resolve"]
