"""Checkpointed blocks: what runs again in backward is told apart from backward itself."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from backends.measuring import batch, macs, measured


class Blocks(nn.Module):
    """8 -> 8 and two checkpointed blocks of two 8 -> 8 layers; on 32 rows a layer is 32·8·8 MACs."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.first = nn.Linear(8, 8)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return x


ONE = 32 * 8 * 8


@pytest.mark.parametrize(("reentrant", "again"), [(False, 1), (True, 2)])
def test_recomputation_is_a_phase_of_its_own(reentrant: bool, again: int) -> None:
    # Without reentrance torch stops recomputing once the last saved tensor is there: the last layer is not run again.
    net, (x, _) = Blocks(reentrant=reentrant), batch()
    run = measured(lambda: net(x).sum().backward())
    assert macs(run) == {"forward": 5 * ONE, "backward": 2 * 4 * ONE + ONE, "backward/recompute": 2 * again * ONE}


@pytest.mark.parametrize("reentrant", [False, True])
def test_backward_and_recomputation_keep_the_layers(reentrant: bool) -> None:
    net, (x, _) = Blocks(reentrant=reentrant), batch()
    run = measured(lambda: net(x).sum().backward())
    by = macs(run, "phase", "scope")
    assert by["backward", "blocks.0.2"] == by["backward", "blocks.1.0"] == 2 * ONE
    assert by["backward/recompute", "blocks.0.0"] == by["backward/recompute", "blocks.1.0"] == ONE


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_around_the_whole_model_is_a_training_forward(reentrant: bool) -> None:
    net, x = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), torch.randn(32, 8, requires_grad=True)
    run = measured(lambda: checkpoint(net, x, use_reentrant=reentrant).sum().backward())
    again = 2 if reentrant else 1
    assert macs(run) == {"forward": 2 * ONE, "backward": 4 * ONE, "backward/recompute": again * ONE}


def test_a_checkpointed_function_without_modules_is_recomputation_too() -> None:
    x, _ = batch()
    weight = torch.randn(8, 8, requires_grad=True)

    def twice() -> None:
        checkpoint(lambda t: torch.tanh(t @ weight) @ weight, x, use_reentrant=False).sum().backward()

    assert macs(measured(twice)) == {"forward": 2 * ONE, "backward": 3 * ONE, "backward/recompute": ONE}
