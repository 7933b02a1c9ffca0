"""Sums, means, extremes and norms; running ones too."""

from functools import partial
from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.reduction import vector_norm
from bitwatt.formulas.softmax import logsumexp
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._onnx import SPACE
from bitwatt.rules._tables import Specs, each
from bitwatt.rules.aten.reduction import over as _over

over = partial(_over, space=SPACE)

over("ReduceSum", "Σx", add=1)
over("ReduceProd", "Πx", mul=1)
over("ReduceMax ReduceMin ArgMax ArgMin", "an extreme", of="in", compare=1)
over("ReduceSumSquare", "Σx²", mul=1, add=1)

each("CumSum", "running sum", space=SPACE, family="reduction", add=1)
each("CumProd", "running product", space=SPACE, family="reduction", mul=1)


@rule("onnx.ReduceMean", family="reduction")
def mean(data: TensorSpec, out: Specs, **_: Any) -> Work:
    """Σx/n: 1 add per input element, 1 div per result."""
    return pointwise(data, data.numel, add=1) + pointwise(data, out[0].numel, div=1)


@rule("onnx.ReduceL1", family="reduction")
def l1(data: TensorSpec, out: Specs, **_: Any) -> Work:
    """Σ|x|: 1 logic, 1 add per input element."""
    return vector_norm(data, data.numel, out[0].numel, 1)


@rule("onnx.ReduceL2", family="reduction")
def l2(data: TensorSpec, out: Specs, **_: Any) -> Work:
    """√Σx²: 1 mul, 1 add per input element, 1 sqrt per result."""
    return vector_norm(data, data.numel, out[0].numel, 2)


@rule("onnx.ReduceLogSum", family="reduction")
def log_sum(data: TensorSpec, out: Specs, **_: Any) -> Work:
    """log Σx: 1 add per input element, 1 log per result."""
    return pointwise(data, data.numel, add=1) + pointwise(data, out[0].numel, log=1)


@rule("onnx.ReduceLogSumExp", family="reduction")
def log_sum_exp(data: TensorSpec, out: Specs, **_: Any) -> Work:
    """max + log Σ e^(x - max): 1 compare, 2 add, 1 exp per element, 1 log and 1 add per result."""
    return logsumexp(data.numel, out[0].numel, data.precision)
