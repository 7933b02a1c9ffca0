"""Random numbers and dropout. A draw is one operation of kind random, whatever the distribution; it is no FLOP."""

from typing import Any

from bitwatt.formulas import dropout as formula
from bitwatt.formulas import sort as order
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, each, written

for _names in (
    "rand randn randint rand_like randn_like randint_like normal normal_functional uniform random exponential",
    "geometric log_normal cauchy bernoulli_ _philox_normal _philox_uniform _fill_mem_eff_dropout_mask_",
    "_cudnn_init_dropout_state",
):
    written(_names, "A number drawn and written", family="random", random=1)

each("bernoulli poisson binomial _standard_gamma", "a number drawn", family="random", random=1)
each("_sample_dirichlet", "gammas drawn, then divided by their sum", family="random", random=1, add=1, div=1)
each("_sobol_engine_draw", "the next point of a sequence", family="random", logic=1, mul=1)
written(
    "_sobol_engine_ff_ _sobol_engine_initialize_state_ _sobol_engine_scramble_", "Bits mixed", family="random", logic=1
)
written("_philox_key_fold_in _philox_key_split", "Bits mixed", family="random", logic=1)


@rule("aten.native_dropout", "aten._fused_dropout", "aten.dropout", "aten.feature_dropout", family="random")
def dropout(out: Specs, p: Any = 0.5, train: bool | None = True, **_: Any) -> Work:
    """x·(mask/(1 - p)): 1 random, 1 div, 1 mul per element, as drawn, scaled and multiplied one after the other;
    nothing in evaluation."""
    if train is False or not out:
        return Work()
    return formula.dropout(out[0].numel, out[0].precision)


each("alpha_dropout feature_alpha_dropout", "a·(x·mask + α'·(1 - mask)) + b", family="random", random=1, mul=3, add=2)
each("native_dropout_backward _masked_scale", "g·(mask/(1 - p))", family="random", mul=1)


@rule("aten.multinomial", family="random")
def multinomial(self: TensorSpec, num_samples: int = 1, replacement: bool = False, **_: Any) -> Work:
    """Without replacement the k largest of p/exponential: 1 random, 1 div per class, then top-k; with it a running sum
    (1 add, 1 div per class) and a binary search for each of k draws."""
    classes = self.shape[-1]
    rows = self.numel // max(classes, 1)
    if not replacement:
        return pointwise(self, self.numel, random=1, div=1) + order.select(self, rows, classes, num_samples)
    draws = rows * num_samples
    table = pointwise(self, self.numel, add=1, div=1) + pointwise(self, draws, random=1)
    return table + order.search(self, draws, classes)


@rule("aten.randperm", family="random")
def randperm(out: Specs, **_: Any) -> Work:
    """Each place swapped with a random one: 1 random, 1 index per element (Knuth 3.4.2, algorithm P)."""
    return pointwise(out[0], out[0].numel, random=1, index=1) + Work(bytes_read=0)
