"""Programs that reviewers broke an earlier version with."""

from __future__ import annotations

import contextlib
import contextvars
import os
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import bitwatt
from backends.measuring import BACKWARD, FC1, FC2, Net, batch, calls, macs, measured


def test_a_weight_that_is_computed_is_not_computed_by_us() -> None:
    def run() -> torch.Tensor:
        torch.manual_seed(0)
        net = nn.Sequential(torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 4)))
        return net(torch.ones(2, 8))

    plain = run()
    with bitwatt.measure(keep=False):
        watched = run()
    assert torch.equal(plain, watched)


def test_lazy_unhashable_and_oddly_overridden_modules_run() -> None:
    @dataclass
    class Unhashable(nn.Module):
        width: int = 8

        def __post_init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(self.width, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x)

    class Overrides(Net):
        def parameters(self, group: str):  # type: ignore[no-untyped-def,override]
            raise RuntimeError(group)

        def named_modules(self):  # type: ignore[no-untyped-def,override]
            raise RuntimeError("no")

    x, _ = batch()
    assert macs(measured(lambda: nn.LazyLinear(4)(x))) == {"forward": 32 * 8 * 4}
    net = Unhashable()
    assert macs(measured(lambda: net(x)), "scope") == {"fc": 32 * 8 * 4}
    odd = Overrides()
    assert macs(measured(lambda: odd(x)), "scope") == {"fc1": FC1, "fc2": FC2}


def test_an_estimate_inside_a_session_counts_for_itself_alone() -> None:
    x, _ = batch()
    estimates = []

    def both() -> None:
        Net()(x)
        estimates.append(bitwatt.estimate(lambda: Net()(torch.randn(32, 8))))

    assert macs(measured(both)) == {"forward": FC1 + FC2}
    assert macs(estimates[0]) == {"forward": FC1 + FC2}


def test_a_session_in_a_forked_child_is_its_own() -> None:
    net, (x, _) = Net(), batch()
    read, write = os.pipe()

    def fork() -> None:
        net(x)
        child = os.fork()
        if child == 0:
            with bitwatt.measure(keep=False) as inner:
                net(x)
            os.write(write, str(bitwatt.totals(inner.run, "macs").total).encode())
            os._exit(0)
        os.waitpid(child, 0)

    run = measured(fork)
    assert int(os.read(read, 100)) == FC1 + FC2
    assert macs(run) == {"forward": FC1 + FC2}


def test_generators_are_measured_as_they_run() -> None:
    net, (x, _) = Net(), batch()

    @bitwatt.measure(keep=False)
    def stream():  # type: ignore[no-untyped-def]
        for _ in range(3):
            yield net(x)

    assert len(list(stream())) == 3
    assert bitwatt.totals(stream.session.run, "macs").total == 3 * (FC1 + FC2)


def test_a_phase_may_be_closed_in_another_context() -> None:
    def phased():  # type: ignore[no-untyped-def]
        with bitwatt.phase("a"):
            yield

    with bitwatt.measure(keep=False):
        generator = phased()
        contextvars.copy_context().run(next, generator)
        assert contextvars.copy_context().run(lambda: next(generator, "closed")) == "closed"


def test_one_measure_object_may_be_entered_twice() -> None:
    net, (x, _) = Net(), batch()
    measure = bitwatt.measure(keep=False)
    with measure as outer:
        with measure as inner:
            net(x)
        net(x)
    assert macs(inner.run) == {"forward": FC1 + FC2}
    assert macs(outer.run) == {"forward": 2 * (FC1 + FC2)}


def test_export_and_tracing_work_inside_a_session() -> None:
    net, (x, _) = Net(), batch()
    with bitwatt.measure(keep=False):
        torch.export.export(net, (x,)).run_decompositions()
        if torch.__version__ >= (2, 11):  # see docs/limits.md
            torch.export.export(net, (x,), strict=True)
    fresh = Net()
    with bitwatt.measure(keep=False):
        traced = torch.jit.trace(fresh, x)
    assert torch.equal(traced(x), fresh(x))


def test_a_layer_added_while_others_come_and_go_keeps_its_path() -> None:
    class Grows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(8, 8)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = nn.ReLU()(layer(x))
            return x

    net, (x, _) = Grows(), batch()

    def grow() -> None:
        for _ in range(6):
            net(x)
            net.layers.append(nn.Linear(8, 8))

    assert set(macs(measured(grow), "scope")) == {f"layers.{i}" for i in range(6)}


def test_an_evaluation_without_no_grad_is_inference_though_training_follows() -> None:
    net, (x, y) = Net(), batch()

    def both() -> None:
        net.eval()(x)
        F.cross_entropy(net.train()(x), y).backward()

    assert macs(measured(both)) == {"inference": FC1 + FC2, "forward": FC1 + FC2, "backward": BACKWARD}


def test_a_frozen_teacher_is_inference() -> None:
    teacher, net, (x, _) = Net().eval().requires_grad_(False), Net(), batch()
    run = measured(lambda: F.mse_loss(net(x), teacher(x)).backward())
    assert macs(run) == {"inference": FC1 + FC2, "forward": FC1 + FC2, "backward": BACKWARD}


def test_metrics_between_forward_and_backward_are_other() -> None:
    net, (x, y) = Net(), batch()

    def step() -> None:
        out = net(x)
        (out.argmax(1) == y).float().mean()
        F.cross_entropy(out, y).backward()

    run = measured(step)
    assert calls(run, "other") == {"aten.argmax": 1, "aten.eq": 1, "aten._to_copy": 1, "aten.mean": 1}
    assert calls(run, "loss") == {"aten._log_softmax": 1, "aten.detach": 1, "aten.nll_loss_forward": 1}


def test_time_before_the_first_forward_is_not_loss() -> None:
    import time

    net, (x, y) = Net(), batch()

    begins = []

    def step() -> None:
        time.sleep(0.3)
        begins.append(time.perf_counter())
        F.cross_entropy(net(x), y).backward()
        begins.append(time.perf_counter())

    seconds = measured(step).phase_seconds
    assert seconds["other"] >= 0.3
    assert seconds["loss"] < begins[1] - begins[0]


def test_a_model_used_through_other_methods_than_forward() -> None:
    class VAE(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.enc, self.dec = nn.Linear(8, 4), nn.Linear(4, 8)

        def encode(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.enc(x))

        def decode(self, z: torch.Tensor) -> torch.Tensor:
            return self.dec(z * 2)

        def training_step(self, x: torch.Tensor) -> torch.Tensor:
            return (self.decode(self.encode(x)) - x).pow(2).mean()

    net, (x, _) = VAE(), batch()
    run = measured(lambda: net.training_step(x).backward())
    assert macs(run, "phase", "scope") == {
        ("forward", "enc"): 32 * 8 * 4,
        ("forward", "dec"): 32 * 8 * 4,
        ("backward", "enc"): 32 * 8 * 4,
        ("backward", "dec"): 2 * 32 * 8 * 4,
    }
    assert {"aten.tanh", "aten.mul"} <= set(calls(run, "forward"))
    assert calls(run, "loss") == {"aten.sub": 1, "aten.pow": 1, "aten.mean": 1}


def test_a_model_that_is_a_list_of_layers_has_its_activations_in_forward() -> None:
    layers, (x, y) = [nn.Linear(8, 16), nn.Linear(16, 4)], batch()

    def train() -> None:
        loss = ((layers[1](torch.tanh(layers[0](x))) - y[:, None]) ** 2).mean()
        loss.backward()

    ops = {row.op.name: row.phase for row in measured(train).ledger if row.phase in ("forward", "loss")}
    assert ops["aten.tanh"] == "forward"
    assert ops["aten.pow"] == "loss"


def test_the_loss_of_one_model_is_no_part_of_the_next() -> None:
    first, second, (x, y) = nn.Linear(8, 4), nn.Linear(8, 4), batch()

    def train() -> None:
        one = (torch.sinh(first(x)) - y[:, None]).mean()
        two = (torch.cosh(second(x)) - y[:, None]).mean()
        (one + two).backward()

    phases = {row.op.name: row.phase for row in measured(train).ledger if "backward" not in row.phase}
    assert phases["aten.sinh"] == phases["aten.cosh"] == "loss"


def test_functional_code_after_a_model_is_a_forward_of_its_own() -> None:
    net, weight, (x, y) = Net(), torch.randn(8, 4, requires_grad=True), batch()

    def train() -> None:
        F.cross_entropy(net(x), y).backward()
        (torch.sinh(x @ weight)).sum().backward()

    phases = {row.op.name: row.phase for row in measured(train).ledger if "backward" not in row.phase}
    assert phases["aten.sinh"] == "forward"


def test_a_second_backward_through_the_same_forward_differentiates_a_loss() -> None:
    net, (x, y) = Net(), batch()

    def train() -> None:
        out = net(x)
        F.cross_entropy(out, y).backward(retain_graph=True)
        torch.sinh(out).sum().backward()

    phases = {row.op.name: row.phase for row in measured(train).ledger if "backward" not in row.phase}
    assert phases["aten.sinh"] == "loss"


def test_a_module_that_is_given_its_weights_is_a_forward() -> None:
    class Given(nn.Module):
        def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return torch.sinh(x @ weight)

    net, weight, (x, _) = Given(), torch.randn(8, 4, requires_grad=True), batch()
    run = measured(lambda: (net(x, weight) ** 2).mean().backward())
    assert {row.phase for row in run.ledger if row.op.name == "aten.sinh"} == {"forward"}


def test_ctrl_c_that_the_program_catches_leaves_no_layer_behind() -> None:
    class Stops(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 8)
            self.stop = True

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.stop:
                raise KeyboardInterrupt
            return self.inner(x)

    net, (x, _) = nn.Sequential(Stops()), batch()

    def interrupted() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            net(x)
        with torch.no_grad():
            torch.sinh(x)

    (row,) = [row for row in measured(interrupted).ledger if row.op.name == "aten.sinh"]
    assert row.phase == "other"
    assert "Stops" not in row.scope


def test_numbers_that_change_each_time_do_not_fill_the_ledger() -> None:
    ids = torch.arange(10)
    run = measured(lambda: [(ids + step) % (step + 7) for step in range(100, 200)])
    assert len([row for row in run.ledger if row.op.name in ("aten.add", "aten.remainder")]) == 2


def test_scripted_modules_run_and_are_counted() -> None:
    scripted, (x, _) = torch.jit.script(Net()), batch()
    assert macs(measured(lambda: scripted(x).sum().backward()))["forward"] == FC1 + FC2
    inside = nn.Sequential(torch.jit.script(nn.Sequential(nn.Linear(8, 4), nn.ReLU())))
    assert macs(measured(lambda: inside(x).sum().backward()))["forward"] == 32 * 8 * 4


def test_parameters_without_sizes_do_not_disturb() -> None:
    class Ragged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows = nn.Parameter(torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]))
            self.fc = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x)

    run = measured(lambda: Ragged()(batch()[0]))
    assert run.notes == ()
    assert "fc" in run.layers


def test_an_op_that_cannot_be_written_down_is_missing() -> None:
    net = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(8, 4)), {nn.Linear})
    with pytest.warns(RuntimeWarning, match="could not be recorded"):
        run = bitwatt.estimate(net, torch.randn(2, 8))
    assert bitwatt.totals(run).missing == {"quantized.linear_dynamic": 1}
