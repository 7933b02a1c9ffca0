"""Softmax and its kin, losses."""

from collections.abc import Mapping
from typing import Any

from bitwatt.formulas import softmax as formulas
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs
from bitwatt.rules.aten.loss import MEAN, NONE, SUM, picked

_REDUCTIONS: Mapping[str, int] = {"none": NONE, "mean": MEAN, "sum": SUM}


@rule("onnx.Softmax", family="softmax")
def softmax(input: TensorSpec, **_: Any) -> Work:
    """e^(x - max) / Σ: 1 compare, 2 add, 1 exp, 1 div per element."""
    return formulas.softmax(input.numel, input.precision)


@rule("onnx.LogSoftmax", family="softmax")
def log_softmax(input: TensorSpec, axis: int = -1, **_: Any) -> Work:
    """x - max - log Σ e^(x - max): 1 compare, 3 add, 1 exp per element, 1 log per row."""
    rows = input.numel // max(input.shape[axis], 1) if input.shape else 1
    return formulas.log_softmax(input.numel, rows, input.precision)


@rule("onnx.Hardmax", family="softmax")
def hardmax(input: TensorSpec, **_: Any) -> Work:
    """1 where the maximum is, 0 elsewhere: 1 compare per element."""
    return pointwise(input, input.numel, compare=1)


@rule("onnx.NegativeLogLikelihoodLoss", family="loss")
def nll_loss(
    input: TensorSpec, target: TensorSpec, weight: TensorSpec | None = None, reduction: str = "mean", **_: Any
) -> Work:
    """-x[target]: 1 index, 1 logic per target, 1 mul where weighed; reduced by 1 add each, and 1 div for the mean."""
    return picked(input, target, weight is not None, _REDUCTIONS[reduction])


@rule("onnx.SoftmaxCrossEntropyLoss", family="loss")
def cross_entropy(
    scores: TensorSpec,
    labels: TensorSpec,
    out: Specs,
    weights: TensorSpec | None = None,
    reduction: str = "mean",
    **_: Any,
) -> Work:
    """log_softmax, then the negative log likelihood of the labels."""
    work = formulas.log_softmax(scores.numel, labels.numel, scores.precision)
    return work + picked(scores, labels, weights is not None, _REDUCTIONS[reduction])
