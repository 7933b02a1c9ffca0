"""A Llama, a GPT-2 and a ViT with quantised linear layers: each layer has its width, and no product is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from precision.tiny_models import MODELS, float_macs, formats, given, inferred, macs


def replaced(model: nn.Module, make: Callable[[nn.Linear], nn.Module]) -> nn.Module:
    """Every nn.Linear as `make` gives it."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear:
                setattr(parent, name, make(child))
    return model


def brevitas(bits: int) -> Callable[[nn.Module], nn.Module]:
    qnn = pytest.importorskip("brevitas.nn")

    def make(layer: nn.Linear) -> nn.Module:
        bias = layer.bias is not None
        return qnn.QuantLinear(layer.in_features, layer.out_features, bias, weight_bit_width=bits)

    return lambda model: replaced(model, make).eval()


def torch_ao(model: nn.Module) -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(model, {nn.Linear})


def ternary(model: nn.Module) -> nn.Module:
    bitnet = pytest.importorskip("transformers.integrations.bitnet")

    def make(layer: nn.Linear) -> nn.Module:
        sizes = {"in_features": layer.in_features, "out_features": layer.out_features}
        return bitnet.AutoBitLinear(**sizes, bias=layer.bias is not None, online_quant=True)

    return replaced(model, make).eval()


LIBRARIES: dict[str, tuple[Callable[[nn.Module], nn.Module], str]] = {
    "brevitas 4": (lambda model: brevitas(4)(model), "int4"),
    "brevitas 3": (lambda model: brevitas(3)(model), "int3"),
    "torch.ao": (torch_ao, "int8"),
    "bitnet": (ternary, "ternary"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_every_linear_layer_has_its_width_and_no_product_is_lost(library: str, name: str) -> None:
    quantise, expected = LIBRARIES[library]
    model: Any = MODELS[name]()
    linears = {path for path, module in model.named_modules() if type(module) is nn.Linear}
    run = inferred(quantise(model), given(name))
    assert formats(run) == dict.fromkeys(linears, expected)
    assert macs(run) == float_macs(name)
