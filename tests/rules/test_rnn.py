"""Recurrent layers: the products are the closed form, and a fused layer costs what its steps cost one by one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from priced import flops, macs, work
from torch import nn

from bitwatt.records import TensorSpec

GATES = {nn.LSTM: 4, nn.GRU: 3, nn.RNN: 1}


def _step(layer: nn.Module, x: torch.Tensor):
    def step() -> None:
        y = layer(x)[0]
        y.backward(torch.ones_like(y))

    return step


SMALL = st.integers(1, 4)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(GATES)), SMALL, SMALL, SMALL, SMALL, st.integers(1, 2), st.booleans(), st.booleans())
def test_products_are_steps_times_batch_times_gates_times_input_and_hidden(
    kind: type, steps: int, batch: int, width: int, hidden: int, layers: int, both_ways: bool, bias: bool
) -> None:
    layer = kind(width, hidden, layers, bidirectional=both_ways, bias=bias)
    directions = 1 + both_ways
    widths = [width] + [directions * hidden] * (layers - 1)
    expected = sum(directions * steps * batch * GATES[kind] * hidden * (w + hidden) for w in widths)
    assert macs(lambda: layer(torch.ones(steps, batch, width)))["forward"] == expected


def test_the_programs_lstm_is_exact() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(128, 256, 2, batch_first=True), nn.Linear(256, 10)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.lstm(x)[0][:, -1])

    net = Net()
    # 64 steps·16 samples·4·256·((128 + 256) + (256 + 256)) and the head's 16·256·10
    assert 2 * macs(lambda: net(torch.ones(16, 64, 128)))["forward"] == 1_879_130_112


def test_backward_is_twice_the_forwards_products() -> None:
    counted = macs(_step(nn.LSTM(8, 6, 2), torch.ones(5, 3, 8, requires_grad=True)))
    assert counted["backward"] == 2 * counted["forward"]


def _stepwise(layer: nn.LSTM, x: torch.Tensor) -> int:
    cell = nn.LSTMCell(layer.input_size, layer.hidden_size)
    state = (torch.zeros(x.shape[1], layer.hidden_size),) * 2
    return x.shape[0] * flops(lambda: cell(x[0], state))["forward"]


def test_a_fused_lstm_costs_what_its_cell_costs_step_by_step() -> None:
    layer, x = nn.LSTM(8, 6), torch.ones(5, 3, 8)
    assert flops(lambda: layer(x))["forward"] == _stepwise(layer, x)


def test_the_layer_that_inference_mode_shows_costs_the_same() -> None:
    layer, x = nn.LSTM(8, 6, 2, bidirectional=True), torch.ones(5, 3, 8)
    params = tuple(TensorSpec(tuple(p.shape)) for p in layer.parameters())
    done = work(
        "aten.lstm", input=TensorSpec((5, 3, 8)), hx=(), params=params, has_biases=True, num_layers=2, dropout=0.0,
        train=False, bidirectional=True, batch_first=False, out=(TensorSpec((5, 3, 12)),),
    )  # fmt: skip
    priced = flops(lambda: layer(x))["forward"]
    assert 2 * done.macs + sum(n for *_, n in done.ops) == priced


@pytest.mark.parametrize("mode", [2, 3])
def test_cudnn_costs_what_onednn_costs(mode: int) -> None:
    gates = 4 if mode == 2 else 3
    weights = (
        TensorSpec((gates * 6, 8)),
        TensorSpec((gates * 6, 6)),
        TensorSpec((gates * 6,)),
        TensorSpec((gates * 6,)),
    )
    x, y = TensorSpec((5, 3, 8)), TensorSpec((5, 3, 6))
    cudnn = work(
        "aten._cudnn_rnn", input=x, weight=weights, weight_stride0=4, mode=mode, num_layers=1, batch_first=False,
        dropout=0.0, train=True, batch_sizes=(), out=(y,),
    )  # fmt: skip
    onednn = work(
        "aten.mkldnn_rnn_layer", input=x, weight0=weights[0], mode=mode, hidden_size=6, has_biases=True, out=(y,)
    )
    assert (cudnn.ops, cudnn.products) == (onednn.ops, onednn.products)


def test_ragged_batches_count_their_rows() -> None:
    packed = nn.utils.rnn.pack_sequence([torch.ones(4, 8), torch.ones(2, 8)])
    layer = nn.LSTM(8, 6)
    assert macs(lambda: layer(packed))["forward"] == 6 * 24 * (8 + 6)
    weights = (TensorSpec((24, 8)), TensorSpec((24, 6)), TensorSpec((24,)), TensorSpec((24,)))
    done = work(
        "aten._cudnn_rnn", input=TensorSpec((6, 8)), weight=weights, weight_stride0=4, mode=2, num_layers=1,
        batch_first=False, dropout=0.0, train=False, batch_sizes=(2, 2, 1, 1), out=(TensorSpec((6, 6)),),
    )  # fmt: skip
    assert done.macs == 6 * 24 * (8 + 6)


def test_a_projected_state_is_narrower_and_costs_its_projection() -> None:
    layer, x = nn.LSTM(8, 6, proj_size=4), torch.ones(5, 3, 8)
    # the state has 4 of 6 units, and 6 are projected to 4 at each step
    expected = 15 * (24 * (8 + 4) + 6 * 4)
    assert macs(lambda: layer(x))["forward"] == expected
    params = tuple(TensorSpec(tuple(p.shape)) for p in layer.parameters())
    done = work(
        "aten.lstm", input=TensorSpec((5, 3, 8)), params=params, num_layers=1, dropout=0.0, train=False,
        bidirectional=False, batch_first=False, out=(TensorSpec((5, 3, 4)),),
    )  # fmt: skip
    assert done.macs == expected


def test_the_gates_after_both_products_are_those_of_the_cell() -> None:
    gates, state = TensorSpec((3, 24)), TensorSpec((3, 6))
    bias = TensorSpec((24,))
    done = work(
        "aten._thnn_fused_lstm_cell", input_gates=gates, hidden_gates=gates, cx=state, input_bias=bias, hidden_bias=bias
    )
    counts: dict[str, int] = {}
    for kind, _, _, n in done.ops:
        counts[kind] = counts.get(kind, 0) + n
    # per unit: 4 sums of gates and one of c', 2·4 biases; f·c, i·g, o·tanh
    assert counts == {"add": 18 * 13, "mul": 18 * 3, "sigmoid": 18 * 3, "tanh": 18 * 2}
