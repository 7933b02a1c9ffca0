"""Scopes: the module path of every op, forward and backward."""

from __future__ import annotations

import torch
from torch import nn

import bitwatt
from backends.measuring import FC1, FC2, Net, batch, macs, measured

ONE = 32 * 8 * 8


def test_forward_and_backward_ops_belong_to_the_layer_that_made_them() -> None:
    net, (x, _) = Net(), batch()
    run = measured(lambda: net(x).sum().backward())
    assert macs(run, "phase", "scope") == {
        ("forward", "fc1"): FC1,
        ("forward", "fc2"): FC2,
        ("backward", "fc1"): FC1,
        ("backward", "fc2"): 2 * FC2,
    }


def test_module_lists_and_nested_modules_give_their_path() -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Sequential(nn.Linear(8, 8)) for _ in range(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
            return x @ torch.ones(8, 8)

    net, (x, _) = Deep(), batch()
    assert macs(measured(lambda: net(x)), "scope") == {"layers.0.0": ONE, "layers.1.0": ONE, "Deep": ONE}


def test_a_shared_module_is_named_by_the_path_it_was_called_through() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.Linear(8, 8)
            self.a, self.b = nn.Sequential(layer, nn.ReLU()), nn.Sequential(nn.ReLU(), layer)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x))

    net, (x, _) = Shared(), batch()
    run = measured(lambda: net(x).sum().backward())
    assert macs(run, "phase", "scope") == {
        ("forward", "a.0"): ONE,
        ("forward", "b.1"): ONE,
        ("backward", "a.0"): ONE,
        ("backward", "b.1"): 2 * ONE,
    }


def test_functional_code_inside_a_module_belongs_to_its_caller() -> None:
    def helper(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(8, 8)

    class Calls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return helper(self.inner(x))

    net, (x, _) = Calls(), batch()
    assert macs(measured(lambda: net(x)), "scope") == {"inner": ONE, "Calls": ONE}


def test_functional_code_outside_modules_belongs_to_the_function_that_runs_it() -> None:
    x, _ = batch()

    def attention() -> torch.Tensor:
        return x @ torch.ones(8, 8)

    (scope,) = macs(measured(attention), "scope")
    assert scope.endswith("attention")


def test_a_submodule_called_on_its_own_keeps_the_path_in_its_model() -> None:
    net, (x, _) = Net(), batch()

    def both() -> None:
        net.fc1(x)
        net(x)

    assert macs(measured(both), "scope") == {"fc1": 2 * FC1, "fc2": FC2}


def test_wrappers_of_compile_leave_no_trace_in_names() -> None:
    net, (x, _) = torch.compile(Net(), backend="eager"), batch()
    assert macs(measured(lambda: net(x)), "scope") == {"fc1": FC1, "fc2": FC2}


def test_layers_carry_their_class_weights_and_size() -> None:
    net, (x, _) = Net().to(torch.bfloat16), batch()
    layers = measured(lambda: net(x.bfloat16())).layers
    assert (layers["fc1"].kind, layers["fc1"].weight_dtype, layers["fc1"].parameters) == ("Linear", "bfloat16", 144)
    assert layers["Net"].weight_dtype is None


def test_a_layer_added_during_the_session_is_found() -> None:
    net, (x, _) = nn.Sequential(nn.Linear(8, 8)), batch()

    def grow() -> None:
        net(x)
        net.append(nn.Linear(8, 8))
        net(x)

    assert macs(measured(grow), "scope") == {"0": 2 * ONE, "1": ONE}
    assert bitwatt.totals(measured(grow)).missing == {}


def test_weights_used_without_a_call_belong_to_the_layer_that_uses_them() -> None:
    attention, x = nn.MultiheadAttention(16, 2, batch_first=True), torch.randn(2, 4, 16)
    alone = measured(lambda: attention(x, x, x)[0].sum().backward())
    assert set(alone.layers["MultiheadAttention"].shapes) == {(48, 16), (16, 16)}
    net = nn.Sequential(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True))
    inside = measured(lambda: net(x).sum().backward())
    assert set(inside.layers["0.self_attn"].shapes) == {(48, 16), (16, 16)}
    assert inside.layers["0.linear1"].shapes == ((32, 16),)
