"""Norms, softmax and losses: one formula for every kernel, per element as written out."""

from __future__ import annotations

import pytest
import torch
from capture import Number, exp, kinds_of, log, sqrt, tallied
from priced import arithmetic, flops, work
from torch import nn
from torch.nn import functional as F

from bitwatt.records import TensorSpec

ROW = [0.5, 1.5, -2.0, 4.0, 0.25]


def _numbers(values: list[float]) -> list[Number]:
    return [Number(v) for v in values]


def _total(values):
    total = Number(0)
    for value in values:
        total = total + value
    return total


def _no_compare(counts: dict[str, int]) -> dict[str, int]:
    return {kind: n for kind, n in counts.items() if kind not in ("compare", "logic", "index")}


def test_softmax_written_out() -> None:
    def written(x):
        top = max(map(float, x))
        e = [exp(v - top) for v in x]
        total = _total(e)
        return [v / total for v in e]

    value, counts = tallied(written, _numbers(ROW))
    x = torch.tensor(ROW)
    assert value == pytest.approx(x.softmax(0).tolist())
    assert _no_compare(kinds_of("aten._softmax", lambda: x.softmax(0))) == counts


def test_log_softmax_written_out() -> None:
    def written(x):
        top = max(map(float, x))
        shifted = [v - top for v in x]
        norm = log(_total([exp(v) for v in shifted]))
        return [v - norm for v in shifted]

    value, counts = tallied(written, _numbers(ROW))
    x = torch.tensor(ROW)
    assert value == pytest.approx(x.log_softmax(0).tolist())
    assert _no_compare(kinds_of("aten._log_softmax", lambda: x.log_softmax(0))) == counts


def test_the_gradient_of_softmax_written_out() -> None:
    def written(y, g):
        dot = _total([a * b for a, b in zip(y, g, strict=True)])
        return [a * (b - dot) for a, b in zip(y, g, strict=True)]

    x, g = torch.tensor(ROW, requires_grad=True), [1.0, -2.0, 0.5, 3.0, 1.5]
    y = x.softmax(0)
    value, counts = tallied(written, _numbers(y.tolist()), _numbers(g))
    assert kinds_of("aten._softmax_backward_data", lambda: y.backward(torch.tensor(g))) == counts
    assert value == pytest.approx(x.grad.tolist(), rel=1e-4)


def _statistics(x):
    mean = _total(x) / len(x)
    d = [v - mean for v in x]
    variance = _total([v * v for v in d]) / len(x)
    return mean, d, 1 / sqrt(variance + 1e-5)


def test_layer_norm_written_out() -> None:
    def written(x, w, b):
        _, d, rstd = _statistics(x)
        return [v * rstd * p + q for v, p, q in zip(d, w, b, strict=True)]

    layer = nn.LayerNorm(5)
    value, counts = tallied(written, _numbers(ROW), _numbers([1.0] * 5), _numbers([0.0] * 5))
    x = torch.tensor(ROW)
    assert value == pytest.approx(layer(x).tolist(), rel=1e-4)
    assert kinds_of("aten.native_layer_norm", lambda: layer(x)) == counts


def test_batch_norm_written_out_as_a_line_per_channel() -> None:
    def written(x, w, b):
        mean, _, rstd = _statistics(x)
        slope = w * rstd
        offset = b - mean * slope
        return [v * slope + offset for v in x]

    x, layer = torch.tensor(ROW).view(5, 1), nn.BatchNorm1d(1, track_running_stats=False)
    value, counts = tallied(written, _numbers(ROW), Number(1), Number(0))
    assert value == pytest.approx(layer(x).flatten().tolist(), rel=1e-4)
    assert kinds_of("aten.native_batch_norm", lambda: layer(x)) == counts


def test_batch_norm_with_kept_statistics_is_two_operations_per_element() -> None:
    x, layer = torch.ones(64, 16, 10, 10), nn.BatchNorm2d(16).eval()
    n = x.numel()
    counted = flops(lambda: layer(x))["forward"]
    assert counted == 2 * n + 6 * 16  # per channel 1/√(v + ε): 3; slope and offset: 3


@pytest.mark.parametrize("affine", [True, False])
def test_rms_norm_costs_fused_what_its_parts_cost(affine: bool) -> None:
    x, layer = torch.randn(4, 6, requires_grad=True), nn.RMSNorm(6, elementwise_affine=affine)
    parts = flops(lambda: layer(x).backward(torch.ones(4, 6)))
    args = {"input": TensorSpec((4, 6)), "normalized_shape": (6,), "weight": TensorSpec((6,)) if affine else None}
    forward = work("aten._fused_rms_norm", **args, eps="scalar")
    backward = work("aten._fused_rms_norm_backward", **args, output_mask=(True, affine))
    assert {"forward": arithmetic(forward), "backward": arithmetic(backward)} == parts


BATCH = {"input": TensorSpec((8, 16, 10, 10)), "weight": TensorSpec((16,)), "bias": TensorSpec((16,))}
KEPT = {"running_mean": TensorSpec((16,)), "running_var": TensorSpec((16,))}


@pytest.mark.parametrize(
    "name", ["native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit", "batch_norm"]
)
def test_every_library_computes_the_same_batch_norm(name: str) -> None:
    done = work(f"aten.{name}", **BATCH, **KEPT, training=True)
    assert done.ops == work("aten._batch_norm_with_update", **BATCH, **KEPT).ops
    kept = work(f"aten.{name}", **BATCH, **KEPT, training=False)
    assert kept.ops == work("aten._native_batch_norm_legit_no_training", **BATCH, **KEPT).ops


def test_synchronised_batch_norm_in_pieces_is_the_whole_but_for_joining_processes() -> None:
    pieces = work("aten.batch_norm_stats", input=BATCH["input"], eps="scalar")
    pieces += work("aten.batch_norm_elemt", **BATCH)
    whole = work("aten.native_batch_norm", **BATCH, running_mean=None, training=True)
    assert {(kind, n) for kind, _, _, n in pieces.ops} == {(kind, n) for kind, _, _, n in whole.ops}


def test_gradients_are_near_what_the_instrument_read() -> None:
    # valgrind, less the 2 operations per element of the test's own sum: softmax 4.2, group norm 7.6 per element
    x = TensorSpec((8, 16, 10, 10))
    done = work("aten.native_group_norm_backward", input=x, N=8, C=16, output_mask=(True, True, True))
    assert sum(n for *_, n in done.ops) / x.numel == pytest.approx(7.6, rel=0.1)


def test_a_weight_norm_and_its_gradient() -> None:
    v, g = TensorSpec((3, 4)), TensorSpec((3, 1))
    assert {kind: n for kind, _, _, n in work("aten._weight_norm_interface", v=v, g=g).ops} == {
        "mul": 24, "add": 12, "sqrt": 3, "div": 3,
    }  # fmt: skip


def test_cross_entropy_is_log_softmax_and_a_pick() -> None:
    x, target = torch.randn(7, 5), torch.zeros(7, dtype=torch.int64)
    parts = flops(lambda: F.cross_entropy(x, target))["forward"]
    done = work("aten.cross_entropy_loss", self=TensorSpec((7, 5)), target=TensorSpec((7,), "int64"))
    assert sum(n for kind, _, _, n in done.ops if kind not in ("compare", "index", "logic")) == parts
    # per element 3 add, 1 exp; per row 1 log, 1 add; 1 division
    assert parts == 4 * 35 + 7 + 7 + 1


LOSSES = {
    "mse_loss": (F.mse_loss, lambda x, t: (x - t) * (x - t), {"add": -1}),
    "binary_cross_entropy": (
        F.binary_cross_entropy,
        lambda x, t: (t - 1) * log(1 - x) - t * log(x),
        {},
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_written_out(name: str) -> None:
    function, written, shared = LOSSES[name]
    x, t = torch.full((6,), 0.3), torch.full((6,), 0.8)
    value, counts = tallied(written, Number(0.3), Number(0.8))
    assert value == pytest.approx(function(x, t, reduction="none")[0].item(), rel=1e-5)
    expected = {kind: 6 * (n + shared.get(kind, 0)) for kind, n in counts.items()}
    assert kinds_of(f"aten.{name}", lambda: function(x, t, reduction="none")) == expected
    expected["add"] += 6
    assert kinds_of(f"aten.{name}", lambda: function(x, t)) == expected | {"div": 1}


def test_gradients_of_losses_scale_once_for_the_mean() -> None:
    x, t = torch.randn(10, requires_grad=True), torch.zeros(10)
    # 2·(x - t)·g/n: a difference, and two products
    assert kinds_of("aten.mse_loss_backward", lambda: F.mse_loss(x, t).backward()) == {"add": 10, "mul": 20}


@pytest.mark.parametrize(
    "loss",
    [
        nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss(), nn.BCEWithLogitsLoss(), nn.SoftMarginLoss(),
        nn.PoissonNLLLoss(), nn.KLDivLoss(reduction="batchmean"), nn.HingeEmbeddingLoss(),
    ],
    ids=lambda loss: type(loss).__name__,
)  # fmt: skip
def test_every_loss_is_counted_forward_and_backward(loss: nn.Module) -> None:
    x, t = torch.rand(4, 5, requires_grad=True), torch.ones(4, 5)
    counted = flops(lambda: loss(x, t).backward())
    assert counted["forward"] > 20
    assert counted["backward"] > 0
