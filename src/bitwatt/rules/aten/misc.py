"""What belongs to no family of its own."""

from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, each, idle

each("_rowwise_prune", "rows kept where a mask is set", family="index", index=1)
each("_gather_sparse_backward", "the gradient kept with its indices", family="index", index=1)
each("_spdiags", "diagonals put where they belong", family="index", index=1)
each("_sparse_sum_backward", "the gradient copied to each stored element", family="index", index=1)
idle(
    "_test_check_tensor _test_functorch_fallback _test_ambiguous_defaults _test_autograd_multiple_dispatch "
    "_test_optional_filled_intlist _test_optional_floatlist _test_optional_intlist _test_parallel_materialize "
    "_test_serialization_subcmul _test_string_default _test_warn_in_autograd _foobar",
    "a test of torch's own",
)


@rule("aten.gradient", family="pointwise")
def gradient(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """Central differences in each direction: 1 add, 1 mul per element and direction."""
    return pointwise(self, len(out) * self.numel, add=1, mul=1)


@rule("aten.corrcoef", family="reduction")
def corrcoef(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """As cov, then each result divided by both standard deviations: 2 div per result, 1 sqrt per row."""
    rows = self.shape[0] if len(self.shape) > 1 else 1
    return cov(self=self, out=out) + pointwise(self, out[0].numel, div=2) + pointwise(self, rows, sqrt=1)


@rule("aten.cov", family="reduction")
def cov(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """Deviations (2 add per element), then 1 mul and 1 add per element of each pair of rows, 1 div per result."""
    length = self.shape[-1] if self.shape else 1
    pairs = pointwise(self, out[0].numel * length, mul=1, add=1) + pointwise(self, out[0].numel, div=1)
    return pointwise(self, self.numel, add=2) + pairs
