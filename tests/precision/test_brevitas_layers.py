"""Brevitas: any width, rounded in the forward, trained through."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import bitwatt
from precision.quantised import Seen, seen

qnn = pytest.importorskip("brevitas.nn")
quant = pytest.importorskip("brevitas.quant")

ROWS, IN, OUT = 24, 64, 32
PRODUCT = 2 * ROWS * IN * OUT


def linear(backward: bool = True, **options: Any) -> Seen:
    torch.manual_seed(0)
    return seen(qnn.QuantLinear(IN, OUT, bias=True, **options), torch.randn(ROWS, IN), backward=backward)


def formats(found: Seen, phase: str = "forward") -> list[tuple[str, str, str]]:
    return [(product.a.name, product.b.name, product.executed.name) for product in found.products(phase)]


@pytest.mark.parametrize("bits", range(2, 9))
def test_a_linear_layer_of_any_width_trains_in_float_and_carries_its_width(bits: int) -> None:
    found = linear(weight_bit_width=bits)
    assert found.layer.unknown == ""
    assert found.layer.weights.bits == bits
    assert found.layer.weights.effective_bits == bits + 32 / (IN * OUT)  # one float32 scale
    assert not found.layer.weights.stored
    assert found.layer.weight_bytes == 4 * (IN * OUT + OUT)  # float32 weights and bias stay in memory
    assert found.layer.activations is None
    assert formats(found) == [("float32", f"int{bits}", "float32")]
    assert found.flops("forward", kind="mac") == PRODUCT
    assert found.flops("backward", kind="mac") == 2 * PRODUCT
    assert sorted(formats(found, "backward")) == [
        ("float32", "float32", "float32"),  # the gradient of the weight
        ("float32", f"int{bits}", "float32"),  # of the input
    ]
    assert found.flops("forward", part="quantisation") >= 4 * IN * OUT  # at least x/s, + z, - z, ·s for each weight
    assert found.flops("forward", part="") == PRODUCT + ROWS * OUT  # the product and its bias


@pytest.mark.parametrize(
    ("options", "weight", "effective", "inputs"),
    [
        ({"weight_quant": quant.SignedBinaryWeightPerTensorConst}, "int1", 1 + 32 / (IN * OUT), None),
        ({"weight_quant": quant.SignedTernaryWeightPerTensorConst}, "int2", 2 + 32 / (IN * OUT), None),
        ({"weight_quant": quant.Int8WeightPerChannelFloat, "weight_bit_width": 4}, "int4", 4 + 32 / IN, None),
        ({"weight_quant": quant.Fp8e4m3WeightPerTensorFloat}, "float8_e4m3fn", 8 + 32 / (IN * OUT), None),
        ({"weight_quant": quant.MXInt8Weight}, "int8", 8 + 8 / 32, None),  # an exponent of 8 bits for 32 values
        (
            {"weight_quant": quant.ShiftedUint8WeightPerTensorFloat, "weight_bit_width": 5},
            "uint5",
            5 + (32 + 32) / (IN * OUT),  # a scale and a zero point
            None,
        ),
        (
            {"weight_bit_width": 4, "input_quant": quant.Int8ActPerTensorFloat, "input_bit_width": 6},
            "int4",
            4 + 32 / (IN * OUT),
            "int6",
        ),
        (
            {"weight_bit_width": 4, "input_quant": quant.Fp8e4m3ActPerTensorFloat},
            "int4",
            4 + 32 / (IN * OUT),
            "float8_e4m3fn",
        ),
    ],
)
def test_formats(options: dict[str, Any], weight: str, effective: float, inputs: str | None) -> None:
    found = linear(**options)
    assert found.layer.unknown == ""
    assert found.layer.weights.precision.name == weight
    assert found.layer.weights.effective_bits == pytest.approx(effective)
    assert (found.layer.activations and found.layer.activations.precision.name) == inputs
    assert formats(found) == [(inputs or "float32", weight, "float32")]
    assert found.flops("forward", kind="mac") == PRODUCT


def test_what_the_library_itself_computes_agrees() -> None:
    """`bit_width()` runs ops, so bitwatt reads the constants behind it: the same number must come out."""
    for options in ({"weight_bit_width": 3}, {"weight_bit_width": 7}, {"weight_quant": quant.MXInt8Weight}):
        layer = qnn.QuantLinear(IN, OUT, bias=False, **options)
        assert seen(layer, torch.randn(ROWS, IN)).layer.weights.bits == float(layer.weight_quant.bit_width())


def test_a_learned_width_is_the_one_it_has_now() -> None:
    from brevitas.inject.enum import BitWidthImplType

    layer = qnn.QuantLinear(
        IN, OUT, bias=False, weight_bit_width=4, weight_bit_width_impl_type=BitWidthImplType.PARAMETER
    )
    width = layer.weight_quant.tensor_quant.msb_clamp_bit_width_impl
    with torch.no_grad():
        width.bit_width_offset.fill_(5.2)  # over a base of 2
    assert round(float(layer.weight_quant.bit_width().detach())) == 7
    assert seen(layer, torch.randn(ROWS, IN)).layer.weights.bits == 7


def test_a_convolution() -> None:
    layer = qnn.QuantConv2d(8, 16, 3, bias=False, weight_quant=quant.Int8WeightPerChannelFloat, weight_bit_width=3)
    found = seen(layer, torch.randn(2, 8, 10, 10), backward=True)
    macs = 2 * 16 * 8 * 8 * 8 * 9
    assert found.flops("forward", kind="mac") == 2 * macs
    assert found.flops("backward", kind="mac") == 4 * macs
    assert found.layer.weights.effective_bits == 3 + 32 * 16 / (16 * 8 * 9)
    assert formats(found) == [("float32", "int3", "float32")]


def test_layers_without_or_with_a_switched_off_quantiser_are_plain() -> None:
    assert linear(weight_quant=None).layer.weights is None
    layer = qnn.QuantLinear(IN, OUT, bias=True, weight_bit_width=4)
    layer.weight_quant.disable_quant = True
    found = seen(layer, torch.randn(ROWS, IN))
    assert (found.layer.weights, found.layer.unknown) == (None, "")


class Net(nn.Module):
    """Widths travel with the values from layer to layer: the layers themselves do not know those of their inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.inp = qnn.QuantIdentity(bit_width=4, return_quant_tensor=True)
        self.one = qnn.QuantLinear(IN, OUT, bias=False, weight_bit_width=3)
        self.relu = qnn.QuantReLU(bit_width=2, return_quant_tensor=True)
        self.two = qnn.QuantLinear(OUT, 10, bias=False, weight_bit_width=5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.relu(self.one(self.inp(x))))


def test_the_width_of_values_that_carry_it_reaches_the_products() -> None:
    net = Net().eval()
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        net(torch.randn(ROWS, IN))
    run = session.run
    assert run.layers["one"].activations.precision.name == "int4"
    assert run.layers["two"].activations.precision.name == "uint2"
    bops = ROWS * IN * OUT * 4 * 3 + ROWS * OUT * 10 * 2 * 5
    assert bitwatt.totals(run, "bops:product").total == bops
    assert bitwatt.totals(run).missing == {}


def test_a_vision_transformer_quantised_layer_by_layer() -> None:
    transformers = pytest.importorskip("transformers")
    from brevitas.graph.quantize import layerwise_quantize

    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=16, patch_size=8
    )
    model = layerwise_quantize(transformers.ViTModel(config).eval())
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        model(torch.randn(2, 3, 16, 16))
    run = session.run
    linears = {path: layer for path, layer in run.layers.items() if layer.kind == "QuantLinear"}
    assert len(linears) >= 2 * 6
    assert {layer.weights.bits for layer in linears.values()} == {8}
    assert {layer.activations.bits for layer in linears.values()} == {8}
    assert [layer.kind for layer in run.layers.values() if layer.unknown] == []
    assert bitwatt.totals(run).missing == {}
    tokens = 2 * 5
    encoder = sum(2 * tokens * a * b for a, b in 2 * [*(4 * [(32, 32)]), (32, 64), (64, 32)])
    counted: Any = bitwatt.totals(run).by("scope", "kind")
    of_linears = sum(
        n for (scope, kind), n in counted.items() if kind == "mac" and scope in linears and "layer" in scope
    )
    assert of_linears == encoder
