"""Phases are found without help, in every way people train."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import bitwatt
from backends.measuring import BACKWARD, FC1, FC2, Net, batch, calls, macs, measured


def test_a_training_step_has_forward_loss_backward_optimizer_and_other() -> None:
    net, (x, y) = Net(), batch()
    optimizer = torch.optim.Adam(net.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    run = measured(step)
    assert macs(run) == {"forward": FC1 + FC2, "backward": BACKWARD}
    assert calls(run, "loss") == {"aten._log_softmax": 1, "aten.detach": 1, "aten.nll_loss_forward": 1}
    assert calls(run, "optimizer")["aten.addcdiv_"] == 4
    assert calls(run, "other")["aten._foreach_norm"] == 1  # clipping


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), nn.CrossEntropyLoss(weight=torch.ones(4)), F.cross_entropy])
def test_a_loss_is_found_as_a_module_with_weights_or_a_function(loss) -> None:  # type: ignore[no-untyped-def]
    net, (x, y) = Net(), batch()
    run = measured(lambda: loss(net(x), y).backward())
    assert calls(run, "loss")["aten.nll_loss_forward"] == 1
    assert macs(run) == {"forward": FC1 + FC2, "backward": BACKWARD}


def test_a_loss_written_by_hand_between_forward_and_backward_is_loss() -> None:
    net, (x, _) = Net(), batch()

    def step() -> None:
        out = net(x)
        similarity = out @ out.T
        (similarity - torch.eye(32)).pow(2).mean().backward()

    run = measured(step)
    assert macs(run)["loss"] == 32 * 32 * 4
    assert calls(run, "loss")["aten.pow"] == 1


def test_a_known_loss_inside_the_model_is_loss() -> None:
    class WithLoss(Net):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return F.cross_entropy(super().forward(x), y)

    net, (x, y) = WithLoss(), batch()
    run = measured(lambda: net(x, y).backward())
    assert calls(run, "loss")["aten._log_softmax"] == 1
    assert calls(run, "forward")["aten.addmm"] == 2


def test_metrics_without_backward_are_other_and_evaluation_is_inference() -> None:
    net, (x, y) = Net(), batch()

    @torch.no_grad()
    def evaluate() -> None:
        net.eval()
        (net(x).argmax(1) == y).float().mean()

    run = measured(evaluate)
    assert macs(run) == {"inference": FC1 + FC2}
    assert calls(run, "other")["aten.argmax"] == 1


def test_a_forward_in_eval_mode_is_inference_unless_backward_follows() -> None:
    net, (x, _) = Net().eval(), batch()
    assert set(macs(measured(lambda: net(x)))) == {"inference"}
    assert set(macs(measured(lambda: net(x).sum().backward()))) == {"forward", "backward"}


def test_an_evaluation_before_training_does_not_disturb_it() -> None:
    net, (x, y) = Net(), batch()

    def both() -> None:
        with torch.no_grad():
            net.eval()(x)
        F.cross_entropy(net.train()(x), y).backward()

    run = measured(both)
    assert macs(run) == {"inference": FC1 + FC2, "forward": FC1 + FC2, "backward": BACKWARD}


def test_inference_mode_shows_the_same_work() -> None:
    net, (x, y) = Net(), batch()

    def inference() -> None:
        with torch.inference_mode():
            F.cross_entropy(net(x), y)
            torch.einsum("bi,oi->bo", x, torch.randn(5, 8))

    run = measured(inference)
    assert macs(run) == {"inference": FC1 + FC2, "other": 32 * 5 * 8}
    assert not bitwatt.totals(run).missing


def test_autograd_grad_is_backward() -> None:
    net, (x, y) = Net(), batch()
    run = measured(lambda: torch.autograd.grad(F.cross_entropy(net(x), y), list(net.parameters())))
    assert macs(run) == {"forward": FC1 + FC2, "backward": BACKWARD}


def test_func_grad_under_vmap_counts_each_sample() -> None:
    net, (x, y) = Net(), batch()
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(p, x, y):  # type: ignore[no-untyped-def]
        return F.cross_entropy(torch.func.functional_call(net, p, (x[None],)), y[None])

    run = measured(lambda: torch.vmap(torch.func.grad(loss), (None, 0, 0))(parameters, x, y))
    assert macs(run) == {"forward": FC1 + FC2, "backward": BACKWARD}


def test_jacrev_over_a_module_does_not_crash() -> None:
    net, (x, _) = Net(), batch()
    run = measured(lambda: torch.func.jacrev(net)(x[0]))
    # 4 rows of the Jacobian: 4 x 4 by 4 x 16, then 4 x 16 by 16 x 8
    assert macs(run)["backward"] == 4 * 4 * 16 + 4 * 16 * 8


def test_gradient_accumulation_keeps_phases_apart() -> None:
    net, (x, y) = Net(), batch()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def accumulate() -> None:
        for _ in range(3):
            scaled = x * 2 - 1
            F.cross_entropy(net(scaled), y).backward()
        optimizer.step()

    run = measured(accumulate)
    assert macs(run) == {"forward": 3 * (FC1 + FC2), "backward": 3 * BACKWARD}
    assert calls(run, "other")["aten.mul"] == 3  # scaling the data is no loss
    assert calls(run, "loss")["aten.nll_loss_forward"] == 3


def test_two_models_with_two_optimizers() -> None:
    generator, critic = nn.Sequential(nn.Linear(3, 8)), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))
    of_generator = torch.optim.Adam(generator.parameters())
    of_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
    x, _ = batch()
    loss = nn.BCEWithLogitsLoss()

    def step() -> None:
        fake = generator(torch.randn(32, 3))
        of_critic.zero_grad()
        (loss(critic(x), torch.ones(32, 1)) + loss(critic(fake.detach()), torch.zeros(32, 1))).backward()
        of_critic.step()
        of_generator.zero_grad()
        loss(critic(fake), torch.ones(32, 1)).backward()
        of_generator.step()

    run = measured(step)
    made, judged = 32 * 3 * 8, 32 * 8 * 8 + 32 * 8
    # critic twice without a gradient of its input (dW of both layers, dX of the second), once with; generator dW
    twice = 2 * (32 * 8 * 8 + 2 * 32 * 8)
    assert macs(run) == {"forward": made + 3 * judged, "backward": twice + 2 * judged + made}
    scopes = macs(run, "scope")
    assert set(scopes) == {"Sequential#1.0", "Sequential#2.0", "Sequential#2.1"}
    assert set(bitwatt.totals(run).by("scope")) >= {"Adam", "SGD"}


def test_a_penalty_on_gradients_is_loss_and_its_backward_keeps_the_layers() -> None:
    net, (x, _) = Net(), batch()

    def penalty() -> None:
        data = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(net(data).sum(), data, create_graph=True)
        ((gradient.norm(dim=1) - 1) ** 2).mean().backward()

    run = measured(penalty)
    assert set(macs(run)) == {"forward", "backward"}
    assert calls(run, "loss")["aten.linalg_vector_norm"] == 1
    assert {scope for phase, scope in macs(run, "phase", "scope") if phase == "backward"} == {"fc1", "fc2"}


def test_a_forward_that_raises_leaves_no_trace() -> None:
    net, (x, y) = Net(), batch()

    def step() -> None:
        with pytest.raises(RuntimeError):
            net(torch.randn(3, 5))
        F.cross_entropy(net(x), y).backward()

    assert macs(measured(step)) == {"forward": FC1 + FC2, "backward": BACKWARD}


def test_frozen_layers_have_no_backward() -> None:
    net, (x, y) = Net(), batch()
    net.fc1.requires_grad_(False)
    run = measured(lambda: F.cross_entropy(net(x), y).backward())
    assert macs(run, "phase", "scope") == {("forward", "fc1"): FC1, ("forward", "fc2"): FC2, ("backward", "fc2"): FC2}


def test_functional_code_without_any_module_has_forward_loss_and_backward() -> None:
    x, _ = batch()
    weight = torch.randn(8, 8, requires_grad=True)

    def model() -> torch.Tensor:
        return x @ weight

    def step() -> None:
        F.mse_loss(model(), torch.zeros(32, 8)).backward()

    run = measured(step)
    assert macs(run, "phase", "scope") == {
        ("forward", step.__qualname__.replace("step", "model").replace(".<locals>", "")): 32 * 8 * 8,
        ("backward", step.__qualname__.replace("step", "model").replace(".<locals>", "")): 32 * 8 * 8,
    }
    assert calls(run, "loss")["aten.mse_loss"] == 1


def test_gradient_scaling_is_other() -> None:
    net, (x, y) = Net(), batch()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")

    def step() -> None:
        scaler.scale(F.cross_entropy(net(x), y)).backward()
        scaler.step(optimizer)
        scaler.update()

    run = measured(step)
    assert calls(run, "loss") == {"aten._log_softmax": 1, "aten.detach": 1, "aten.nll_loss_forward": 1}
    assert calls(run, "other")["aten._amp_foreach_non_finite_check_and_unscale_"] == 1


def test_the_users_phases_nest_with_those_found() -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with bitwatt.phase("attention"):
                return self.fc(x)

    net, (x, _) = Inner(), batch()

    def work() -> None:
        with bitwatt.phase("epoch 1"):
            net(x).sum().backward()
            with bitwatt.phase("evaluate"), torch.no_grad():
                net(x).argmax(1)

    one = 32 * 8 * 8
    run = measured(work)
    assert macs(run) == {
        "epoch 1/forward/attention": one,
        "epoch 1/backward": one,
        "epoch 1/evaluate/inference/attention": one,
    }
    assert calls(run, "epoch 1/evaluate") == {"aten.argmax": 1}


def test_phase_outside_measure_does_nothing() -> None:
    with bitwatt.phase("anything"):
        assert torch.ones(2).sum() == 2
