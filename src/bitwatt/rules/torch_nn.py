"""Fused losses that torch.nn registers as ops of its own."""

from typing import Any

from bitwatt.formulas.linalg import matmul
from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.softmax import logsumexp
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule


def _logits(x: TensorSpec, weight: TensorSpec, bias: Any) -> Work:
    (classes, features), rows = weight.shape, x.numel // max(weight.shape[-1], 1)
    biased = int(isinstance(bias, TensorSpec))
    return matmul(rows, features, classes, x, weight) + pointwise(x, rows * classes, add=biased)


def _gradients(x: TensorSpec, weight: TensorSpec, *, of_input: bool, of_weight: bool, of_bias: bool) -> Work:
    """The softmax scaled, less 1 at the target; then one product for the input and one for the weight."""
    (classes, features), rows = weight.shape, x.numel // max(weight.shape[-1], 1)
    if not (of_input or of_weight or of_bias):
        return Work()
    work = pointwise(x, rows * classes, mul=1, add=int(of_bias)) + pointwise(x, rows, add=1)
    if of_input:
        work += matmul(rows, classes, features, x, weight)
    return work + matmul(classes, rows, features, x, x) if of_weight else work


@rule("torch_nn._linear_cross_entropy_batch_chunked", family="loss")
def chunked(
    input: TensorSpec,
    linear_weight: TensorSpec,
    linear_bias: Any = None,
    compute_input_grad: bool = False,
    compute_linear_weight_grad: bool = False,
    compute_linear_bias_grad: bool = False,
    **_: Any,
) -> Work:
    """Logits x·Wᵀ, their log-sum-exp and the loss; the gradients too, already in forward: a matrix product for each of
    logits, input and weight."""
    rows = input.numel // max(linear_weight.shape[-1], 1)
    loss = logsumexp(rows * linear_weight.shape[0], rows, input.precision) + pointwise(input, rows, add=2, mul=1)
    gradients = _gradients(
        input,
        linear_weight,
        of_input=compute_input_grad,
        of_weight=compute_linear_weight_grad,
        of_bias=compute_linear_bias_grad,
    )
    return _logits(input, linear_weight, linear_bias) + loss + gradients


@rule("torch_nn._linear_cross_entropy_batch_chunked_no_reduction", family="loss")
def chunked_no_reduction(input: TensorSpec, linear_weight: TensorSpec, linear_bias: Any = None, **_: Any) -> Work:
    """Logits x·Wᵀ, their log-sum-exp and the loss of each row: one matrix product. Backward shows as ops of its own."""
    return chunked(input=input, linear_weight=linear_weight, linear_bias=linear_bias)
