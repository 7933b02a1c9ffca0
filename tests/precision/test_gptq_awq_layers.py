"""GPTQ and AWQ.

The libraries do not install cleanly beside the others, so the readers are tested where they happen to be installed, and
the probe, which needs no library, on layers with the buffers that they publish.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from bitwatt.precision import resolve
from precision.quantised import seen

ROWS, IN, OUT, GROUP = 24, 256, 128, 64
GROUPS = IN // GROUP


def check(layer: nn.Module, bits: int) -> None:
    found = seen(layer, torch.randn(ROWS, IN).half(), training=False)
    assert found.layer.unknown == ""
    assert found.layer.weights.bits == bits
    # a float16 scale and a zero point of the same width as the weights, for each group of a column
    assert found.layer.weights.effective_bits == bits + (16 + bits) / GROUP
    assert found.layer.shapes == ((OUT, IN),)
    (product,) = found.products("inference")
    assert (product.a.name, product.b.name, product.executed.name) == ("float16", f"int{bits}", "float16")
    assert found.flops("inference", kind="mac") == 2 * ROWS * IN * OUT
    assert found.flops("inference", part="quantisation") >= 2 * IN * OUT  # - zero, · scale


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
def test_gptqmodel(bits: int) -> None:
    library = pytest.importorskip("gptqmodel.nn_modules.qlinear.torch")
    sizes = {"in_features": IN, "out_features": OUT, "bias": True, "register_buffers": True}
    layer = library.TorchLinear(bits=bits, group_size=GROUP, sym=True, desc_act=False, **sizes)
    layer.post_init()
    check(layer, bits)


def test_gptqmodel_awq() -> None:
    library = pytest.importorskip("gptqmodel.nn_modules.qlinear.torch_awq")
    sizes = {"in_features": IN, "out_features": OUT, "bias": True, "register_buffers": True}
    layer = library.AwqTorchLinear(bits=4, group_size=GROUP, sym=False, desc_act=False, **sizes)
    layer.post_init()
    check(layer, 4)


def test_autoawq() -> None:
    library = pytest.importorskip("awq.modules.linear.gemm")
    check(library.WQLinear_GEMM(4, GROUP, IN, OUT, True, "cpu"), 4)


def test_auto_round() -> None:
    library = pytest.importorskip("auto_round_extension.torch.qlinear_torch")
    check(library.QuantLinear(4, GROUP, IN, OUT, True), 4)


class PublishedBuffers(nn.Module):
    """The buffers of a GPTQ checkpoint, expanded as its description says: eight 4-bit values to an int32, by input."""

    def __init__(self, *, bits: int = 4, told: str = "bits") -> None:
        super().__init__()
        self.in_features, self.out_features, self.group_size = IN, OUT, GROUP
        setattr(self, told, bits)
        per = 32 // bits
        self.register_buffer("qweight", torch.randint(0, 2**31 - 1, (IN // per, OUT), dtype=torch.int32))
        self.register_buffer("qzeros", torch.zeros(GROUPS, OUT // per, dtype=torch.int32))
        self.register_buffer("scales", torch.ones(GROUPS, OUT).half())
        self.register_buffer("g_idx", torch.arange(IN, dtype=torch.int32) // GROUP)
        self.shifts = torch.arange(0, 32, bits, dtype=torch.int32)
        self.mask = 2**bits - 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        codes = (self.qweight.unsqueeze(1) >> self.shifts.view(1, -1, 1)).bitwise_and(self.mask).view(IN, OUT)
        zeros = (self.qzeros.unsqueeze(2) >> self.shifts.view(1, 1, -1)).bitwise_and(self.mask).view(GROUPS, OUT)
        weight = (codes - zeros[self.g_idx]).half() * self.scales[self.g_idx]
        return x @ weight


@pytest.mark.parametrize("told", ["bits", "w_bit", "wbits", "nbits", "num_bits"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_probe_on_a_layer_of_no_known_library(told: str, bits: int) -> None:
    check(PublishedBuffers(bits=bits, told=told), bits)


def test_the_probe_takes_the_width_from_a_configuration_where_the_container_bears_it_out() -> None:
    layer: Any = PublishedBuffers()
    del layer.bits
    layer.quantize_config = {"bits": 4, "group_size": GROUP}
    widths, unknown = resolve(layer)
    assert (widths.weights.bits, unknown) == (4, "")
    layer.quantize_config = {"bits": 3, "group_size": GROUP}
    widths, unknown = resolve(layer)
    assert widths is None
    assert "4 bits for each value" in unknown
