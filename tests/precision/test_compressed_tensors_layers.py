"""compressed-tensors: plain layers with a scheme hung on them, rounded in the forward or packed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import bitwatt
from bitwatt.precision import resolve
from precision.quantised import Seen, seen
from precision.tiny_models import MODELS, given

quantization = pytest.importorskip("compressed_tensors.quantization")

ROWS, IN, OUT = 24, 256, 128
PRODUCT = 2 * ROWS * IN * OUT
WEIGHTS = IN * OUT


def hung(model: nn.Module, preset: str, **options: Any) -> nn.Module:
    scheme = quantization.preset_name_to_scheme(preset, ["Linear"])
    config = quantization.QuantizationConfig(config_groups={"group": scheme}, **options)
    quantization.apply_quantization_config(model, config)
    for name, parameter in model.named_parameters():
        if name.endswith("scale"):
            parameter.data.fill_(0.01)
    return model


def linear(preset: str) -> nn.Module:
    torch.manual_seed(0)
    return hung(nn.Sequential(nn.Linear(IN, OUT).bfloat16()), preset)[0]


def measured(preset: str) -> Seen:
    return seen(linear(preset), torch.randn(ROWS, IN).bfloat16(), backward=True)


#: preset -> format of the weights, their bits with scales, format of the activations
SCHEMES = {
    **{f"W{bits}A16": (f"int{bits}", bits + 16 / 128, None) for bits in range(2, 9)},  # bfloat16 for groups of 128
    "W8A8": ("int8", 8 + 16 / IN, "int8"),  # one for each row
    "W4A8": ("int4", 4 + 16 / 128, "int8"),
    "FP8_DYNAMIC": ("float8_e4m3fn", 8 + 16 / IN, "float8_e4m3fn"),
    "FP8": ("float8_e4m3fn", 8 + 16 / WEIGHTS, "float8_e4m3fn"),  # one for all
    # float8 for blocks of 16, and a float32 for all of them
    "NVFP4": ("float4_e2m1fn", 4 + 8 / 16 + 32 / WEIGHTS, "float4_e2m1fn"),
    "NVFP4A16": ("float4_e2m1fn", 4 + 8 / 16 + 32 / WEIGHTS, None),
    "W4A16_ASYM": ("int4", 4 + (16 + 8) / 128, None),  # and an int8 zero point
}


@pytest.mark.parametrize("preset", SCHEMES)
def test_a_linear_layer(preset: str) -> None:
    weight, effective, inputs = SCHEMES[preset]
    found = measured(preset)
    layer = found.layer
    assert layer.unknown == ""
    assert layer.weights.precision.name == weight
    assert layer.weights.effective_bits == pytest.approx(effective)
    assert not layer.weights.stored
    assert "QuantizationScheme" in layer.weights.source
    assert (layer.activations and layer.activations.precision.name) == inputs
    assert (layer.shapes, layer.parameters) == (((OUT, IN),), WEIGHTS + OUT)  # scales are no parameters of the model
    (product,) = found.products("forward")
    assert (product.a.name, product.b.name, product.executed.name) == (inputs or "bfloat16", weight, "bfloat16")
    assert found.flops("forward", kind="mac") == PRODUCT
    assert PRODUCT in {found.flops("backward", kind="mac") / n for n in (1, 2)}  # rounding inputs may stop gradients
    assert found.flops("forward", part="") == PRODUCT + ROWS * OUT
    assert found.flops("forward", part="quantisation") >= 2 * WEIGHTS  # at least x/s and q·s for each weight


def test_mixed_widths_in_one_model_are_told_apart() -> None:
    net = nn.Sequential(nn.Linear(IN, OUT), nn.Linear(OUT, OUT)).bfloat16()
    groups = {
        "a": quantization.preset_name_to_scheme("W4A16", ["re:0"]),
        "b": quantization.preset_name_to_scheme("W8A16", ["re:1"]),
    }
    quantization.apply_quantization_config(net, quantization.QuantizationConfig(config_groups=groups))
    assert [resolve(layer)[0].weights.bits for layer in net] == [4, 8]


def test_a_layer_that_was_left_out_is_plain() -> None:
    net = hung(nn.Sequential(nn.Linear(IN, OUT), nn.Linear(OUT, OUT)).bfloat16(), "W4A16", ignore=["1"])
    assert resolve(net[0])[0].weights.bits == 4
    assert resolve(net[1]) == (None, "")


def test_a_scheme_that_is_switched_off_rounds_nothing() -> None:
    layer = linear("W4A16")
    layer.quantization_enabled = False
    found = seen(layer, torch.randn(ROWS, IN).bfloat16())
    assert (found.layer.weights, found.layer.unknown) == (None, "")


@pytest.mark.parametrize(
    ("preset", "bits", "effective"),
    [
        ("W4A16", 4, 4 + 16 / 128),
        ("W8A16", 8, 8 + 16 / 128),
        ("W8A8", 8, 8 + 16 / IN),
        ("FP8", 8, 8 + 16 / WEIGHTS),
        ("NVFP4A16", 4, 4 + 8 / 16 + 32 / WEIGHTS),
    ],
)
def test_compressed_layers_are_stored_as_they_say(preset: str, bits: int, effective: float) -> None:
    """They have to be expanded again before they run, so they are only looked at."""
    from compressed_tensors.compressors import ModelCompressor

    from bitwatt.backends.torch.layers import describe

    net = nn.Sequential(linear(preset))
    scheme = quantization.preset_name_to_scheme(preset, ["Linear"])
    config = quantization.QuantizationConfig(config_groups={"group": scheme})
    ModelCompressor(quantization_config=config).compress_model(net)
    layer = describe(net[0])
    assert layer.unknown == ""
    assert layer.weights.bits == bits
    assert layer.weights.effective_bits == pytest.approx(effective)
    assert layer.weights.stored
    assert layer.shapes == ((OUT, IN),)
    assert layer.parameters == WEIGHTS + OUT
    assert layer.weight_bytes == pytest.approx(WEIGHTS * effective / 8 + 2 * OUT, abs=1)


@pytest.mark.parametrize("name", ["llama", "vit"])  # GPT-2 has no nn.Linear
def test_a_whole_model(name: str) -> None:
    model = hung(MODELS[name]().bfloat16(), "W8A8", ignore=["lm_head", "classifier"])
    x = given(name)
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        model(x.bfloat16() if x.is_floating_point() else x)
    run = session.run
    assert bitwatt.totals(run).missing == {}
    assert [path for path, layer in run.layers.items() if layer.unknown] == []
    told = {path: layer for path, layer in run.layers.items() if layer.weights is not None}
    plain = {path for path, layer in run.layers.items() if layer.kind == "Linear" and layer.weights is None}
    assert plain == {"lm_head" if name == "llama" else "classifier"}
    macs: Any = bitwatt.totals(run, "macs").by("scope", "precision")
    assert {precision for (scope, precision), n in macs.items() if scope in told and n} == {"int8"}
    rows = x.shape[1] if name == "llama" else 5
    for path, layer in told.items():
        (shape,) = layer.shapes
        assert macs[path, "int8"] == rows * shape[0] * shape[1]
