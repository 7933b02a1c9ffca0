"""Zeros among the weights: a fact of the layer, which three cost models use."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn.utils import prune

import bitwatt
from precision.quantised import Seen, seen

ROWS, IN, OUT = 24, 64, 32
MACS = ROWS * IN * OUT


def linear() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(IN, OUT, bias=False)


def total(found: Seen, model: str, phase: str = "inference") -> int:
    by_phase = bitwatt.totals(found.run, model).by("phase", "kind")
    return by_phase.get((phase, "mac"), 0)


def masked(amount: float) -> nn.Linear:
    layer = linear()
    prune.l1_unstructured(layer, "weight", amount=amount)
    return layer


def rows_pruned() -> nn.Linear:
    layer = linear()
    prune.ln_structured(layer, "weight", amount=0.25, n=2, dim=0)
    return layer


def removed() -> nn.Linear:
    layer = masked(0.75)
    prune.remove(layer, "weight")  # zeros stay, the mask goes
    return layer


def twice() -> nn.Linear:
    layer = masked(0.5)
    prune.random_unstructured(layer, "weight", amount=0.5)  # half of what is left
    return layer


def in_layout(to: Callable[[torch.Tensor], torch.Tensor]) -> nn.Linear:
    layer = linear()
    dense = layer.weight.detach() * (torch.arange(IN) % 4 == 0)
    layer.weight = nn.Parameter(to(dense), requires_grad=False)
    return layer


def parametrised() -> nn.Module:
    from torch.ao.pruning import WeightNormSparsifier

    net = nn.Sequential(linear())
    sparsifier = WeightNormSparsifier(sparsity_level=1.0, sparse_block_shape=(1, 4), zeros_per_block=2)
    sparsifier.prepare(net, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    return net[0]


CASES: dict[str, tuple[Callable[[], nn.Module], float]] = {
    "dense": (linear, 1.0),
    "mask": (lambda: masked(0.5), 0.5),
    "rows": (rows_pruned, 0.75),
    "removed": (removed, 0.25),
    "twice": (twice, 0.25),
    "csr": (lambda: in_layout(lambda w: w.to_sparse_csr()), 0.25),
    "csc": (lambda: in_layout(lambda w: w.to_sparse_csc()), 0.25),
    "bsr": (lambda: in_layout(lambda w: w.to_sparse_bsr((4, 4))), 1.0),  # each block has values that are not zero
    "2:4 by torch.ao": (parametrised, 0.5),
}


@pytest.mark.parametrize("name", CASES)
def test_density_and_what_the_cost_models_make_of_it(name: str) -> None:
    build, density = CASES[name]
    found = seen(build(), torch.randn(ROWS, IN))
    assert found.layer.density == density
    assert found.layer.unknown == ""
    assert total(found, "flops") == 2 * MACS  # a function of shapes alone
    assert total(found, "flops:effective") == 2 * MACS * density
    assert total(found, "bops:product") == MACS * 32 * 32
    assert total(found, "bops:product_sparse") == MACS * density * 32 * 32
    # m·n·(p·b_a·b_w + b_a + b_w + log2 n) for each of the n terms of the sums, n = 64
    assert total(found, "bops:hawks2021") == MACS * (density * 32 * 32 + 32 + 32 + math.log2(IN))


def test_backward_saves_where_the_weight_is_a_factor_and_not_in_its_own_gradient() -> None:
    found = seen(masked(0.75), torch.randn(ROWS, IN), backward=True)
    assert total(found, "flops", "backward") == 2 * 2 * MACS
    assert total(found, "flops:effective", "backward") == 2 * MACS * 0.25 + 2 * MACS
    assert sorted(product.sparse for product in found.products("backward")) == [0, MACS * 3 // 4]


def test_a_pruned_convolution() -> None:
    layer = nn.Conv2d(4, 8, 3, bias=False)
    prune.random_unstructured(layer, "weight", amount=0.5)
    found = seen(layer, torch.randn(2, 4, 10, 10))
    macs = 2 * 8 * 8 * 8 * 4 * 9
    assert found.layer.density == 0.5
    assert total(found, "flops:effective") == macs
    assert total(found, "bops:product_sparse") == macs * 32 * 32 // 2


def test_a_few_zeros_do_not_make_a_layer_sparse() -> None:
    """Weights are looked at by a sample: a zero here and there, as training leaves, is no pruning."""
    layer = linear()
    with torch.no_grad():
        layer.weight[0, 0] = 0
    assert seen(layer, torch.randn(ROWS, IN)).layer.density == 1.0


def test_pruned_and_quantised() -> None:
    brevitas = pytest.importorskip("brevitas.nn")
    layer = brevitas.QuantLinear(IN, OUT, bias=False, weight_bit_width=4)
    with torch.no_grad():
        layer.weight[:, ::2] = 0
    found = seen(layer, torch.randn(ROWS, IN))
    assert (found.layer.density, found.layer.weights.bits) == (0.5, 4)
    assert total(found, "bops:product_sparse") == MACS // 2 * 4 * 32


def test_a_weight_that_begins_at_zero_is_not_pruned() -> None:
    adapter = nn.Linear(64, 32, bias=False)
    nn.init.zeros_(adapter.weight)
    assert seen(adapter, torch.randn(8, 64)).layer.density == 1.0


def test_masks_of_every_matrix_count() -> None:
    layer = nn.LSTM(8, 16)
    for name in ("weight_ih_l0", "weight_hh_l0"):
        prune.random_unstructured(layer, name, 0.5)
    assert seen(layer, torch.randn(3, 2, 8)).layer.density == 0.5
