"""Softmax, its logarithm and logsumexp of ATen."""

from typing import Any

from bitwatt.formulas import softmax as formulas
from bitwatt.formulas.pointwise import stored
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, named


def _rows(spec: TensorSpec, dim: int) -> int:
    """How many sums are taken along `dim`; one for each component row of a nested tensor."""
    if spec.parts is not None:
        return sum(TensorSpec(part).numel // part[dim] for part in spec.parts if part[dim])
    length = spec.shape[dim] if spec.shape else 1
    return spec.numel // length if length else 0


@rule(
    *named("_softmax softmax special_softmax _safe_softmax _masked_softmax"),
    *named("_sparse_softmax _nested_tensor_softmax_with_shape"),
    family="softmax",
)
def softmax(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """e^(x - max) / Σ: 1 compare, 2 add, 1 exp, 1 div per element."""
    return formulas.softmax(stored(self), out[0].precision)


@rule(
    *named("_softmax_backward_data _masked_softmax_backward _sparse_softmax_backward_data"),
    family="softmax",
)
def softmax_backward(output: TensorSpec, **_: Any) -> Work:
    """y·(g - Σ y·g): 2 mul, 2 add per element."""
    return formulas.softmax_backward(stored(output), output.precision)


@rule("aten._log_softmax", "aten.log_softmax", "aten.special_log_softmax", "aten._sparse_log_softmax", family="softmax")
def log_softmax(self: TensorSpec, dim: int, out: Specs, **_: Any) -> Work:
    """x - max - log Σ e^(x - max): 1 compare, 3 add, 1 exp per element, 1 log per row."""
    return formulas.log_softmax(stored(self), _rows(self, dim), out[0].precision)


@rule("aten._log_softmax_backward_data", "aten._sparse_log_softmax_backward_data", family="softmax")
def log_softmax_backward(output: TensorSpec, **_: Any) -> Work:
    """g - e^y·Σ g: 2 add, 1 exp, 1 mul per element."""
    return formulas.log_softmax_backward(stored(output), output.precision)


@rule("aten.logsumexp", "aten.special_logsumexp", family="softmax")
def logsumexp(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """max + log Σ e^(x - max): 1 compare, 2 add, 1 exp per element, 1 log and 1 add per result."""
    return formulas.logsumexp(stored(self), out[0].numel, out[0].precision)
