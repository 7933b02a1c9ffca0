"""quanto, the package that became optimum-quanto: the same attributes, read there."""

from bitwatt.precision import optimum

__all__ = ["optimum"]
