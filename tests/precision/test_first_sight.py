"""When a layer is looked at: once, when it is first called, and again only when its weights have changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torchao.quantization import Int8WeightOnlyConfig, quantize_

import bitwatt
from bitwatt.precision import Widths, precision, quantised, registry, resolve
from bitwatt.pricing import entries_of
from precision.quantised import seen


def macs_by_format(run: bitwatt.Run) -> dict[tuple[str, str], int]:
    """(scope, format of the second operand) -> multiply-accumulates."""
    found: dict[tuple[str, str], int] = {}
    for entry in entries_of(run.ledger, run.layers):
        for product, times in entry.work.products if entry.work else ():
            key = (entry.row.scope, product.b.name)
            found[key] = found.get(key, 0) + product.macs * times * entry.row.calls
    return found


def test_a_layer_quantised_in_between_is_counted_before_and_after() -> None:
    net = nn.Sequential(nn.Linear(64, 32))
    x = torch.randn(8, 64)
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        net(x)
        net(x)
        quantize_(net, Int8WeightOnlyConfig())
        net(x)
    assert macs_by_format(session.run) == {("0", "float32"): 2 * 8 * 64 * 32, ("0 (int8)", "int8"): 8 * 64 * 32}
    assert session.run.layers["0"].weights is None


def test_a_layer_quantised_before_its_first_call_has_one_name() -> None:
    net = nn.Sequential(nn.Linear(64, 32))
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        quantize_(net, Int8WeightOnlyConfig())
        net(torch.randn(8, 64))
    assert macs_by_format(session.run) == {("0", "int8"): 8 * 64 * 32}


def test_a_layer_is_read_once_however_often_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
    quantize_(net, Int8WeightOnlyConfig())
    reads: list[type] = []
    real = registry.reader_of
    monkeypatch.setattr(resolve_module(), "reader_of", lambda kind: reads.append(kind) or real(kind))
    with bitwatt.measure(keep=False), torch.no_grad():
        net(torch.randn(8, 64))
        first = len(reads)
        for _ in range(20):
            net(torch.randn(8, 64))
    assert first > 0
    assert len(reads) == first


def resolve_module() -> Any:
    import importlib

    return importlib.import_module("bitwatt.precision.resolve")


def test_a_reader_that_fails_leaves_the_layer_to_its_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fragile(nn.Linear):
        pass

    def fails(module: object) -> None:
        raise AttributeError("renamed in 2.0")

    name = f"{Fragile.__module__}.{Fragile.__qualname__}"
    monkeypatch.setitem(registry._readers, name, fails)
    found = seen(Fragile(64, 32), torch.randn(8, 64))
    assert found.layer.weights is None
    assert "renamed in 2.0" in found.layer.unknown
    assert "1 layer by dtype only" in bitwatt.report(found.run).splitlines()[0]
    assert "renamed in 2.0" in bitwatt.report(found.run)


def test_a_reader_for_a_class_of_ones_own_is_three_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(nn.Linear):
        pass

    monkeypatch.setattr(registry, "_readers", dict(registry._readers))

    @precision(f"{Mine.__module__}.{Mine.__qualname__}")
    def mine(module: Any) -> Widths:
        return Widths(quantised("int3", stored=False), shapes=(tuple(module.weight.shape),))

    found = seen(Mine(64, 32), torch.randn(8, 64))
    (product,) = found.products("inference")
    assert (product.a.bits, product.b.bits, product.executed.bits) == (32, 3, 32)
    assert found.layer.weight_bytes == 4 * (64 * 32 + 32)


def test_plain_layers_are_plain_and_nothing_is_asked_twice() -> None:
    net = nn.Sequential(nn.Linear(64, 32), nn.LayerNorm(32), nn.BatchNorm1d(32), nn.Embedding(10, 32))
    for module in net:
        assert resolve(module) == (None, "")
    assert seen(copy.deepcopy(net[0]), torch.randn(8, 64)).layer.is_plain


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_in_the_narrow_dtype(dtype: torch.dtype) -> None:
    net, x = nn.Sequential(nn.Linear(64, 32, bias=False)), torch.randn(8, 64)
    with bitwatt.measure(keep=False) as session, torch.no_grad(), torch.autocast("cpu", dtype):
        net(x)
    macs = 8 * 64 * 32
    assert bitwatt.totals(session.run, "bops:paper").by("kind")["paper"] == 2 * macs * 16
    assert bitwatt.totals(session.run, "bops:product").total == macs * 16 * 16
    assert bitwatt.totals(session.run, "bops:executed").by("kind")["mac"] == 2 * macs * 16
    assert session.run.layers["0"].weight_dtype == "float32"
    assert session.run.layers["0"].weight_bytes == 4 * 64 * 32


def test_parts_of_a_quantised_layer_that_do_not_quantise_are_work_of_their_own() -> None:
    import torch.ao.quantization as ao

    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).train()
    net.qconfig = ao.get_default_qat_qconfig("x86")
    net = ao.prepare_qat(ao.fuse_modules_qat(net, [["0", "1", "2"]]))
    with bitwatt.measure(keep=False) as session:
        net(torch.randn(2, 3, 8, 8))
    parts: Any = bitwatt.totals(session.run).by("scope", "part")
    assert parts["0.bn", ""] > 0
    assert ("0.bn", "quantisation") not in parts
    assert parts["0.weight_fake_quant", "quantisation"] > 0


def test_every_weight_of_a_kernel_is_read_as_it_is_kept() -> None:
    layer = nn.LSTM(64, 64)
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        layer(torch.randn(1, 1, 64))
    changed = bitwatt.what_if(session.run, weights="int4")["bytes:effective"]
    values, scales = 2 * 4 * 64 * 64, 2 * 4 * 64  # two matrices, a float32 scale for each row
    assert changed.before - changed.after == values * (4 - 0.5) - 4 * scales


def test_tables_that_parameters_share_are_no_states() -> None:
    import bitsandbytes as bnb

    net = nn.Sequential(nn.Linear(64, 128), nn.Linear(128, 8))
    optimizer = bnb.optim.Adam8bit(net.parameters(), min_8bit_size=0)
    with bitwatt.measure(keep=False) as session:
        net(torch.randn(4, 64)).square().mean().backward()
        optimizer.step()
    assert session.run.layers["Adam8bit"].parameters == 2 * sum(p.numel() for p in net.parameters())
