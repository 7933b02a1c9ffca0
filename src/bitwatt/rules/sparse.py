"""Quantised linear layers with block-sparse weights."""

from typing import Any

from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._packed import dynamic_linear, packed_linear
from bitwatt.rules._products import Specs
from bitwatt.rules._tables import moved

moved("qlinear_prepack qlinear_unpack", "weights copied into the order a kernel reads", space="sparse")


@rule("sparse.qlinear", "sparse.qlinear_relu", family="matmul")
def qlinear(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """8-bit x·Wᵀ, every weight counted: which blocks are zero is inside the packed weight."""
    return packed_linear(X, out[0])


@rule("sparse.qlinear_dynamic", "sparse.qlinear_relu_dynamic", family="matmul")
def qlinear_dynamic(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """x quantised on the way in, 8-bit x·Wᵀ, every weight counted."""
    return dynamic_linear(X, out[0])
