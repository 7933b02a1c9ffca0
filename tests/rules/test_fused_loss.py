"""A loss in chunks costs what the layer and the loss cost apart."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from bitwatt.pricing import totals
from rules.capture import ledger_of

options = pytest.importorskip("torch.nn.modules.linear_cross_entropy_options").LinearCrossEntropyOptions


def test_a_chunked_loss_has_the_products_of_the_layer_it_hides() -> None:
    def macs(**chosen: object) -> int:
        torch.manual_seed(0)
        x, w = torch.randn(64, 16, requires_grad=True), torch.randn(50, 16, requires_grad=True)
        target = torch.randint(0, 50, (64,))
        ledger = ledger_of(lambda: F.linear_cross_entropy(x, w, target, **chosen).backward())
        assert not totals(ledger).missing
        return totals(ledger, "macs").total

    # forward, gradient of the input, gradient of the weight: 3·64·16·50
    assert macs() == macs(options=options()) == 3 * 64 * 16 * 50
