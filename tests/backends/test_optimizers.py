"""Optimizers of every make are found; those inside backward or around it keep their place."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from backends.measuring import BACKWARD, FC1, FC2, Net, batch, calls, macs, measured


@pytest.mark.parametrize(
    "options", [{"foreach": False}, {"foreach": True}, {"fused": True}, {"foreach": False, "capturable": False}]
)
def test_every_variant_of_adam_is_optimizer_work(options: dict[str, bool]) -> None:
    net, (x, y) = Net(), batch()
    optimizer = torch.optim.Adam(net.parameters(), **options)

    def step() -> None:
        F.cross_entropy(net(x), y).backward()
        optimizer.step()

    run = measured(step)
    assert sum(calls(run, "optimizer").values()) > 0
    assert {row.scope for row in run.ledger if row.phase == "optimizer"} == {"Adam"}


class NoTorchOptimizer:
    def __init__(self, parameters) -> None:  # type: ignore[no-untyped-def]
        self.param_groups = [{"params": list(parameters)}]

    @torch.no_grad()
    def step(self) -> None:
        for parameter in self.param_groups[0]["params"]:
            self._update(parameter)

    def _update(self, parameter: torch.Tensor) -> None:
        assert parameter.grad is not None
        parameter.sub_(parameter.grad, alpha=0.1)


class ForgetsItsBase(torch.optim.Optimizer):
    def __init__(self, parameters) -> None:  # type: ignore[no-untyped-def]
        self.param_groups = [{"params": list(parameters)}]

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for parameter in self.param_groups[0]["params"]:
            parameter.sub_(parameter.grad, alpha=0.1)


@pytest.mark.parametrize("kind", [NoTorchOptimizer, ForgetsItsBase])
def test_foreign_optimizers_that_fire_no_hooks_are_found(kind) -> None:  # type: ignore[no-untyped-def]
    net, (x, y) = Net(), batch()

    def step() -> None:
        F.cross_entropy(net(x), y).backward()
        kind(net.parameters()).step()

    run = measured(step)
    assert calls(run, "optimizer") == {"aten.sub_": 4}
    assert {row.scope for row in run.ledger if row.phase == "optimizer"} == {kind.__name__}


def test_the_closure_of_lbfgs_keeps_its_own_phases() -> None:
    net, (x, y) = Net(), batch()
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        return loss

    run = measured(lambda: optimizer.step(closure))
    dots = 212 * calls(run, "optimizer")["aten.dot"]  # 8·16 + 16 + 16·4 + 4 parameters in each
    assert macs(run) == {"forward": 2 * (FC1 + FC2), "backward": 2 * BACKWARD, "optimizer": dots}
    assert calls(run, "loss")["aten.nll_loss_forward"] == 2
    assert dots


def test_an_optimizer_inside_backward_wins_over_backward() -> None:
    net, (x, y) = Net(), batch()
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in net.parameters()}
    for parameter in net.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: optimizers[p].step())
    run = measured(lambda: F.cross_entropy(net(x), y).backward())
    assert calls(run, "optimizer") == {"aten.add_": 4} or sum(calls(run, "optimizer").values()) >= 4
    assert macs(run)["backward"] == BACKWARD


def test_a_step_that_raises_does_not_swallow_what_follows() -> None:
    class Breaks(torch.optim.SGD):
        def step(self, closure=None):  # type: ignore[no-untyped-def]
            raise ValueError("no")

    net, (x, y) = Net(), batch()

    def work() -> None:
        F.cross_entropy(net(x), y).backward()
        with pytest.raises(ValueError, match="no"):
            Breaks(net.parameters(), lr=0.1).step()
        F.cross_entropy(net(x), y).backward()

    assert macs(measured(work)) == {"forward": 2 * (FC1 + FC2), "backward": 2 * BACKWARD}
