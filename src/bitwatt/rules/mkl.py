"""MKL operators that compiled graphs call."""

from typing import Any

from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, affine
from bitwatt.rules._tables import moved

moved("_mkl_reorder_linear_weight", "weights copied into the order a kernel reads", space="mkl")


@rule("mkl._mkl_linear", family="matmul")
def mkl_linear(X: TensorSpec, ORI_W: TensorSpec, out: Specs, B: TensorSpec | None = None, **_: Any) -> Work:
    """x·Wᵀ + b."""
    return affine(X, ORI_W, B, out[0])
