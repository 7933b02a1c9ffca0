"""torch.ao in eager mode, and graphs that PT2E (which lives in torchao) has prepared or converted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.ao.quantization as aq
from torch import nn

import bitwatt
from bitwatt.pricing import entries_of
from bitwatt.records import Product, Run

ROWS, IN, OUT = 24, 64, 32
PRODUCT = 2 * ROWS * IN * OUT


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    engine = torch.backends.quantized.engine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # every call says that torch.ao has moved
        yield
    torch.backends.quantized.engine = engine


class Stubbed(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.quant, self.layer, self.dequant = aq.QuantStub(), layer, aq.DeQuantStub()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dequant(self.layer(self.quant(x)))


def measured(net: nn.Module, x: torch.Tensor, *, backward: bool = False) -> Run:
    with bitwatt.measure(keep=False) as session:
        if backward:
            net(x.requires_grad_()).sum().backward()
        else:
            with torch.no_grad():
                net(x)
    assert session.run is not None
    assert bitwatt.totals(session.run).missing == {}
    return session.run


def products(run: Run, phase: str = "inference") -> list[Product]:
    return [
        product
        for entry in entries_of(run.ledger, run.layers)
        if entry.row.phase == phase and entry.work
        for product, times in entry.work.products
        for _ in range(times * entry.row.calls)
    ]


def formats(run: Run, phase: str = "inference") -> list[tuple[str, str, str]]:
    return [(product.a.name, product.b.name, product.executed.name) for product in products(run, phase)]


def flops(run: Run, **wanted: str) -> int:
    keys = tuple(wanted)
    sums: Any = bitwatt.totals(run).by(*keys, "op")
    return sum(n for group, n in sums.items() if group[:-1] == tuple(wanted.values()))


def static(engine: str, layer: nn.Module, x: torch.Tensor) -> nn.Module:
    torch.backends.quantized.engine = engine
    net = Stubbed(layer).eval()
    net.qconfig = aq.get_default_qconfig(engine)
    aq.prepare(net, inplace=True)
    net(x)
    return aq.convert(net, inplace=True)


@pytest.mark.parametrize("engine", ["x86", "fbgemm", "onednn", "qnnpack"])
def test_static_int8(engine: str) -> None:
    x = torch.randn(ROWS, IN)
    run = measured(static(engine, nn.Linear(IN, OUT), x), x)
    layer = run.layers["layer"]
    scales = 1 if engine == "qnnpack" else OUT  # a double and a 64-bit zero point each, as torch keeps them
    assert layer.unknown == ""
    assert layer.weights.effective_bits == 8 + scales * (64 + 64) / (IN * OUT)
    assert layer.shapes == ((OUT, IN),)
    assert formats(run) == [("quint8", "int8", "quint8")]
    assert flops(run, kind="mac") == PRODUCT
    # x/s + z going in; (sum·s + z) and bias for each result; (q - z)·s coming out
    assert flops(run, part="quantisation") == 2 * ROWS * IN + 2 * ROWS * OUT + 2 * ROWS * OUT
    assert flops(run, part="") == PRODUCT + ROWS * OUT


def test_static_convolution() -> None:
    x = torch.randn(2, 8, 10, 10)
    run = measured(static("x86", nn.Conv2d(8, 16, 3), x), x)
    assert run.layers["layer"].weights.effective_bits == 8 + 16 * 128 / (16 * 8 * 9)
    assert formats(run) == [("quint8", "int8", "quint8")]
    assert flops(run, kind="mac") == 2 * 2 * 16 * 8 * 8 * 8 * 9


def test_fused_modules_of_a_traced_graph() -> None:
    from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

    x = torch.randn(ROWS, IN)
    net = nn.Sequential(nn.Linear(IN, OUT), nn.ReLU()).eval()
    prepared = prepare_fx(net, aq.get_default_qconfig_mapping("x86"), (x,))
    prepared(x)
    run = measured(convert_fx(prepared), x)
    (layer,) = (layer for layer in run.layers.values() if layer.kind == "LinearReLU")
    assert layer.weights.bits == 8
    assert formats(run) == [("quint8", "int8", "quint8")]
    assert flops(run, kind="mac") == PRODUCT


def dynamic(layer: nn.Module, dtype: torch.dtype = torch.qint8) -> nn.Module:
    return aq.quantize_dynamic(nn.Sequential(layer), {type(layer)}, dtype=dtype)


def test_dynamic_int8() -> None:
    run = measured(dynamic(nn.Linear(IN, OUT)), torch.randn(ROWS, IN))
    layer = run.layers["0"]
    assert layer.weights.effective_bits == 8 + 128 / (IN * OUT)
    assert layer.activations.bits == 8
    assert formats(run) == [("int8", "int8", "int8")]
    assert flops(run, kind="mac") == PRODUCT
    assert flops(run, part="quantisation") == 2 * ROWS * IN + ROWS * OUT


def test_dynamic_float16() -> None:
    run = measured(dynamic(nn.Linear(IN, OUT), torch.float16), torch.randn(ROWS, IN))
    assert run.layers["0"].weights.effective_bits == 16
    assert run.layers["0"].activations is None
    assert formats(run) == [("float32", "float16", "float32")]


@pytest.mark.parametrize(("build", "gates"), [(nn.LSTM, 4), (nn.GRU, 3)])
def test_dynamic_recurrent_layers(build: Callable[..., nn.Module], gates: int) -> None:
    steps, batch, width, hidden = 5, 3, 16, 32
    run = measured(dynamic(build(width, hidden, bidirectional=True)), torch.randn(steps, batch, width))
    layer = run.layers["0"]
    each = gates * hidden * (width + hidden)
    assert layer.shapes == 2 * ((gates * hidden, width), (gates * hidden, hidden))
    assert layer.parameters == 2 * each
    assert layer.weights.effective_bits == 8 + 4 * 128 / (2 * each)
    assert set(formats(run)) == {("int8", "int8", "int8")}
    assert flops(run, kind="mac") == 2 * 2 * steps * batch * each
    # both inputs of each direction quantised, both sums scaled back
    rows = 2 * steps * batch
    assert flops(run, part="quantisation") == 2 * rows * (width + hidden) + 2 * rows * gates * hidden


def test_dynamic_cell() -> None:
    run = measured(dynamic(nn.LSTMCell(16, 32)), torch.randn(3, 16))
    assert run.layers["0"].shapes == ((128, 16), (128, 32))
    assert set(formats(run)) == {("int8", "int8", "int8")}
    assert flops(run, kind="mac") == 2 * 3 * 128 * (16 + 32)


def test_embedding() -> None:
    table = torch.ao.nn.quantized.Embedding(100, 64)
    run = measured(nn.Sequential(table), torch.arange(ROWS))
    # eight bits, and a float32 scale and zero point for each row of 64
    assert run.layers["0"].weights.effective_bits == 8 + (32 + 32) / 64
    assert flops(run, part="quantisation") == 2 * ROWS * 64


def trained(layer: nn.Module) -> nn.Module:
    net = Stubbed(layer).train()
    net.qconfig = aq.get_default_qat_qconfig("x86")
    return aq.prepare_qat(net, inplace=True)


def test_quantisation_aware_training() -> None:
    run = measured(trained(nn.Linear(IN, OUT)), torch.randn(ROWS, IN), backward=True)
    layer = run.layers["layer"]
    assert layer.unknown == ""
    assert layer.weights.effective_bits == 8 + 32 * OUT / (IN * OUT)
    assert not layer.weights.stored
    assert layer.activations.bits == 7  # x86 reduces the range to 0..127
    assert formats(run, "forward") == [("uint7", "int8", "float32")]
    assert sorted(formats(run, "backward")) == [("float32", "float32", "float32"), ("float32", "int8", "float32")]
    assert flops(run, phase="forward", kind="mac") == PRODUCT
    assert flops(run, phase="backward", kind="mac") == 2 * PRODUCT
    # weight, input and output each: x/s + z, and back
    assert flops(run, phase="forward", part="quantisation") == 4 * (IN * OUT + ROWS * IN + ROWS * OUT)


def test_a_fake_quantiser_that_is_switched_off_rounds_nothing() -> None:
    net = trained(nn.Linear(IN, OUT))
    net.apply(aq.disable_fake_quant)
    run = measured(net, torch.randn(ROWS, IN), backward=True)
    assert run.layers["layer"].weights is None
    assert formats(run, "forward") == [("float32", "float32", "float32")]


def test_fused_training_modules() -> None:
    block = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
    net = Stubbed(aq.fuse_modules_qat(block.train(), [["0", "1", "2"]]))
    net.qconfig = aq.get_default_qat_qconfig("x86")
    aq.prepare_qat(net.train(), inplace=True)
    run = measured(net, torch.randn(2, 3, 8, 8), backward=True)
    (layer,) = (layer for layer in run.layers.values() if layer.kind == "ConvBnReLU2d")
    assert (layer.weights.bits, layer.activations.bits) == (8, 7)
    assert flops(run, phase="forward", kind="mac") == 2 * 2 * 8 * 6 * 6 * 27


def test_observers_alone_quantise_nothing() -> None:
    net = Stubbed(nn.Linear(IN, OUT)).eval()
    net.qconfig = aq.get_default_qconfig("x86")
    run = measured(aq.prepare(net, inplace=True), torch.randn(ROWS, IN))
    assert (run.layers["layer"].weights, run.layers["layer"].unknown) == (None, "")
    assert formats(run) == [("float32", "float32", "float32")]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.line = nn.Conv2d(3, 8, 3), nn.Linear(8 * 6 * 6, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.line(torch.sigmoid(self.conv(x)).flatten(1) * 2.0)


MACS = 2 * 8 * 6 * 6 * 27 + 2 * 288 * 10


def pt2e(*, training: bool) -> nn.Module:
    pytest.importorskip("torchao")
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e, prepare_qat_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    graph = torch.export.export(Net().train(training), (torch.randn(2, 3, 8, 8),)).module()
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_qat=training))
    prepared = (prepare_qat_pt2e if training else prepare_pt2e)(graph, quantizer)
    prepared(torch.randn(2, 3, 8, 8))
    return prepared


def test_a_converted_graph_tells_the_widths_of_all_its_weights() -> None:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    run = measured(convert_pt2e(pt2e(training=False)), torch.randn(2, 3, 8, 8))
    layer = run.layers["GraphModule"]
    weights = 8 * 27 + 10 * 288
    assert layer.unknown == ""
    assert layer.shapes == ((8, 3, 3, 3), (10, 288))
    assert layer.weights.effective_bits == 8 + (8 + 10) * (32 + 64) / weights  # float32 scales, int64 zero points
    assert layer.activations.bits == 8
    assert formats(run) == [("uint8", "int8", "float32")] * 2
    assert flops(run, kind="mac") == 2 * MACS
    # each weight (q - z)·s; each value that goes into a product to the format and back
    assert flops(run, part="quantisation") == 2 * weights + 4 * (2 * 3 * 64 + 2 * 288)
    # the rest of the graph is no quantisation: sigmoid, ·2 and the two biases
    assert flops(run, part="") == 2 * MACS + 2 * 288 + 2 * 288 + 2 * 288 + 2 * 10


def test_a_graph_prepared_for_training() -> None:
    run = measured(pt2e(training=True), torch.randn(2, 3, 8, 8), backward=True)
    layer = run.layers["GraphModule"]
    assert (layer.weights.bits, layer.weights.stored, layer.activations.bits) == (8, False, 8)
    assert formats(run, "forward") == [("uint8", "int8", "float32")] * 2
    assert flops(run, phase="forward", kind="mac") == 2 * MACS
    assert flops(run, phase="forward", part="quantisation") == 4 * (8 * 27 + 10 * 288 + 2 * 3 * 64 + 2 * 288)


def test_an_exported_graph_without_quantisation_is_plain() -> None:
    graph = torch.export.export(Net().eval(), (torch.randn(2, 3, 8, 8),)).module()
    run = measured(graph, torch.randn(2, 3, 8, 8))
    assert [layer for layer in run.layers.values() if layer.weights or layer.unknown] == []
    assert flops(run, kind="mac") == 2 * MACS


class Mixed(nn.Module):
    """Two layers, of which one is left as it was."""

    def __init__(self, out: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(IN, 16), nn.Linear(16, out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.first(x)))


def partly_converted(out: int) -> nn.Module:
    pytest.importorskip("torchao")
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    x = torch.randn(ROWS, IN)
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    quantizer.set_module_name_qconfig("last", None)
    prepared = prepare_pt2e(torch.export.export(Mixed(out).eval(), (x,)).module(), quantizer)
    prepared(x)
    return convert_pt2e(prepared)


def test_a_layer_that_a_converted_graph_leaves_out_stays_float() -> None:
    run = measured(partly_converted(OUT), torch.randn(ROWS, IN))
    assert run.layers["GraphModule"].shapes == ((16, IN),)
    assert {(product.k, product.n): product.b.name for product in products(run)} == {
        (IN, 16): "int8",
        (16, OUT): "float32",
    }


def test_weights_of_one_size_that_cannot_be_told_apart_are_not_claimed() -> None:
    run = measured(partly_converted(IN), torch.randn(ROWS, IN))  # 16 x 64, and 64 x 16
    layer = run.layers["GraphModule"]
    assert layer.weights is None
    assert "others of that size are not" in layer.unknown
    assert {product.b.name for product in products(run)} == {"float32"}
