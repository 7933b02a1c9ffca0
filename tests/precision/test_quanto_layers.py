"""optimum-quanto: weights of 2, 4 and 8 bits, frozen and not, activations, convolutions."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from precision.one_linear import FLOPS, K, M, N, check_backward, check_forward, check_layer, linear, rows, sizes
from precision.quantised import seen
from precision.tiny_models import MODELS, float_macs, formats, given, inferred, macs

quanto = pytest.importorskip("optimum.quanto")

BIAS = 4 * N
EIGHT = {"qint8": "int8", "qfloat8_e4m3fn": "float8_e4m3fn", "qfloat8_e5m2": "float8_e5m2"}
GROUP = 128  # the largest that divides 256


def quantised(layer: nn.Module, x: Any, weights: str, activations: str | None = None, *, frozen: bool = True) -> Any:
    holder = nn.Sequential(layer)
    inputs = getattr(quanto, activations) if activations else None
    quanto.quantize(holder, weights=getattr(quanto, weights), activations=inputs)
    if inputs is not None:
        with quanto.Calibration(), torch.no_grad():
            holder(x)
    if frozen:
        quanto.freeze(holder)
    return holder[0]


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("frozen", [True, False])
def test_groups_of_less_than_a_byte(bits: int, frozen: bool) -> None:
    found = seen(quantised(linear(), rows(), f"qint{bits}", frozen=frozen), rows(), backward=True)
    effective = bits + 2 * 32 / GROUP  # a float32 scale and shift for each group
    check_layer(found, f"int{bits}", effective, inputs=None, bias_bytes=BIAS, kept_bytes=None if frozen else 4 * N * K)
    check_forward(found, f"int{bits}", "float32", "float32")
    check_backward(found, f"int{bits}", "float32", trains=True)
    assert found.flops(part="quantisation") >= 2 * N * K  # w·s - shift


@pytest.mark.parametrize(("told", "name"), EIGHT.items())
@pytest.mark.parametrize("frozen", [True, False])
def test_rows_of_bytes(told: str, name: str, frozen: bool) -> None:
    found = seen(quantised(linear(), rows(), told, frozen=frozen), rows(), backward=True)
    check_layer(found, name, 8 + 32 / K, inputs=None, bias_bytes=BIAS, kept_bytes=None if frozen else 4 * N * K)
    check_forward(found, name, "float32", "float32")
    check_backward(found, name, "float32", trains=True)


def test_four_bits_in_bfloat16_are_read_by_another_kernel() -> None:
    found = seen(quantised(linear(torch.bfloat16), rows(torch.bfloat16), "qint4"), rows(torch.bfloat16), backward=True)
    check_layer(found, "int4", 4 + 2 * 16 / GROUP, inputs=None, bias_bytes=2 * N)  # scale and shift in bfloat16
    check_forward(found, "int4", "bfloat16", "bfloat16")
    # backward unpacks the weight by multiplying it with an identity, which is a product like any other
    expected = {(M, K, N), (N, K, M), (K, N, K)}
    assert {sizes(product) for product in found.products("backward")} == expected
    assert found.flops("backward", kind="mac") == 2 * FLOPS + 2 * K * N * K


def test_bytes_by_bytes_are_multiplied_as_integers() -> None:
    found = seen(quantised(linear(), rows(), "qint8", "qint8"), rows())
    check_layer(found, "int8", 8 + 32 / K, inputs="int8", bias_bytes=BIAS)
    (product,) = found.products("inference")
    assert (product.a.name, product.b.name, product.executed.name) == ("int8", "int8", "int8")
    assert found.flops("inference", kind="mac") == FLOPS
    # x/s for each input, a scale for each result
    assert found.flops("inference", part="quantisation") >= M * K + M * N


@pytest.mark.parametrize(
    ("weights", "activations", "name", "inputs", "effective"),
    [
        ("qint8", "qfloat8_e4m3fn", "int8", "float8_e4m3fn", 8 + 32 / K),
        ("qfloat8_e4m3fn", "qfloat8_e4m3fn", "float8_e4m3fn", "float8_e4m3fn", 8 + 32 / K),
        ("qint4", "qint8", "int4", "int8", 4 + 2 * 32 / GROUP),
    ],
)
def test_other_pairs_are_expanded_first(
    weights: str, activations: str, name: str, inputs: str, effective: float
) -> None:
    found = seen(quantised(linear(), rows(), weights, activations), rows())
    check_layer(found, name, effective, inputs=inputs, bias_bytes=BIAS)
    (product,) = found.products("inference")
    assert (product.a.name, product.b.name, product.executed.name) == (inputs, name, "float32")
    assert found.flops("inference", kind="mac") == FLOPS


IN, OUT, SIDE = 8, 16, 3


@pytest.mark.parametrize(("bits", "activations"), [(8, None), (4, None), (8, "qint8")])
def test_convolutions(bits: int, activations: str | None) -> None:
    """One scale, below a byte one shift too, for each output channel. Inputs are taken as they come."""
    torch.manual_seed(0)
    x = torch.randn(2, IN, 9, 9)
    found = seen(quantised(nn.Conv2d(IN, OUT, SIDE), x, f"qint{bits}", activations), x, backward=activations is None)
    taps, places = IN * SIDE * SIDE, 2 * 7 * 7
    effective = bits + (32 if bits == 8 else 64) / taps
    layer, phase = found.layer, "forward" if activations is None else "inference"
    assert layer.weights is not None
    assert (layer.weights.precision.name, layer.unknown) == (f"int{bits}", "")
    assert layer.weights.effective_bits == pytest.approx(effective)
    assert layer.weight_bytes == math.ceil(OUT * taps * effective / 8) + 4 * OUT
    assert layer.activations is None
    (product,) = found.products(phase)
    assert f"int{bits}" in (product.a.name, product.b.name)
    assert (product.macs, product.executed.name) == (places * taps * OUT, "float32")
    assert found.flops(phase, part="quantisation") >= OUT * taps
    if activations is None:
        through = [p for p in found.products("backward") if f"int{bits}" in (p.a.name, p.b.name)]
        assert len(found.products("backward")) == 2
        assert len(through) == 1
        assert found.flops("backward", kind="mac") == 2 * 2 * places * taps * OUT


def test_a_convolution_takes_the_width_that_the_layer_before_it_hands_on() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, IN, 9, 9)
    net = nn.Sequential(nn.Conv2d(IN, OUT, SIDE), nn.Conv2d(OUT, 4, SIDE))
    quanto.quantize(net, weights=quanto.qint8, activations=quanto.qint8)
    with quanto.Calibration(streamline=False), torch.no_grad():
        net(x)
    quanto.freeze(net)
    layers = inferred(net, x).layers
    assert layers["0"].activations is None
    assert layers["1"].activations is not None
    assert layers["1"].activations.precision.name == "int8"


def test_a_norm_is_not_quantised() -> None:
    found = seen(quantised(nn.LayerNorm(K), rows(), "qint8", "qint8"), rows())
    assert (found.layer.kind, found.layer.weights, found.layer.unknown) == ("QLayerNorm", None, "")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("weights", "activations"), [("qint8", None), ("qint4", None), ("qint8", "qint8")])
def test_models_do_the_same_products_as_in_float(name: str, weights: str, activations: str | None) -> None:
    """quanto takes linear layers and convolutions; GPT-2's others are Conv1D and stay as they are."""
    model, x = MODELS[name](), given(name)
    kinds = (nn.Linear, nn.Conv2d)
    expected = {path: weights.removeprefix("q") for path, part in model.named_modules() if type(part) in kinds}
    inputs = getattr(quanto, activations) if activations else None
    quanto.quantize(model, weights=getattr(quanto, weights), activations=inputs)
    if inputs is not None:
        with quanto.Calibration(), torch.no_grad():
            model(x)
    quanto.freeze(model)
    run = inferred(model, x)
    assert formats(run) == expected
    assert expected
    assert macs(run) == float_macs(name)
