"""HQQ: groups of 1 to 8 bits and ternary ones, expanded before each product."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from precision.one_linear import K, N, check_backward, check_forward, check_layer, linear, rows
from precision.quantised import seen
from precision.tiny_models import MODELS, float_macs, formats, given, inferred, macs

hqq = pytest.importorskip("hqq.core.quantize")

GROUP = 64
BESIDE = 2 * 32  # a scale and a zero point in float32


def quantised(layer: nn.Linear, **options: Any) -> Any:
    hqq.HQQLinear.set_backend(hqq.HQQBackend.PYTORCH)
    config = hqq.BaseQuantizeConfig(**options)
    return hqq.HQQLinear(layer, config, compute_dtype=torch.float32, device="cpu", initialize=True)


@pytest.mark.parametrize(
    ("bits", "name", "kept", "room"),
    [
        (8, "uint8", 8, 0),
        (6, "uint6", 6, 2),  # a byte each
        (5, "uint5", 5, 3),
        (4, "uint4", 4, 0),
        (3, "uint3", 3, math.ceil(512 / 10) * 64 * 32 / (N * K) - 3),  # ten to a word, for each of 512 groups of 64
        (2, "uint2", 2, 0),
        (1, "uint1", 1, 0),
        (1.58, "ternary", 2, 0),
    ],
)
def test_every_width(bits: float, name: str, kept: float, room: float) -> None:
    found = seen(quantised(linear(), nbits=bits, group_size=GROUP, axis=1), rows(), backward=True)
    check_layer(found, name, kept + BESIDE / GROUP, inputs=None, bias_bytes=0, room=room)  # its bias is no parameter
    check_forward(found, name, "float32", "float32")
    check_backward(found, name, "float32", trains=False)
    assert found.flops(part="quantisation") == 2 * N * K  # (q - z)·s
    assert found.flops("backward", part="quantisation") == 2 * N * K


@pytest.mark.parametrize(
    ("options", "name", "effective"),
    [
        ({"nbits": 4, "group_size": GROUP, "axis": 0}, "uint4", 5),
        ({"nbits": 8, "group_size": None, "axis": 1}, "uint8", 8 + BESIDE / K),
        ({"nbits": 4, "group_size": GROUP, "axis": 1, "view_as_float": True}, "uint4", 5),
        ({"nbits": 4, "group_size": GROUP, "quant_scale": True, "quant_zero": True}, "uint4", 5),  # ignored by now
    ],
)
def test_other_layouts(options: dict[str, Any], name: str, effective: float) -> None:
    found = seen(quantised(linear(), **options), rows())
    check_layer(found, name, effective, inputs=None, bias_bytes=0)
    check_forward(found, name, "float32", "float32", phase="inference")


def test_scales_quantised_again_as_older_versions_kept_them() -> None:
    from bitwatt.precision.hqq import hqq_linear

    layer = quantised(linear(), nbits=4, group_size=GROUP, axis=1)
    groups = N * K // GROUP
    again = {"scale": torch.zeros(groups // 128, 1), "zero": torch.zeros(groups // 128, 1), "nbits": 8}
    layer.meta |= {"scale_q": torch.zeros(groups, dtype=torch.uint8), "meta_scale": again}
    del layer.meta["scale"]
    widths = hqq_linear(layer)
    assert widths is not None
    assert widths.weights is not None
    # a byte and its share of a float32 pair for each scale, a float32 for each zero point
    assert widths.weights.effective_bits == 4 + (8 + 2 * 32 / 128 + 32) / GROUP


@pytest.mark.parametrize("name", MODELS)
def test_models_do_the_same_products_as_in_float(name: str) -> None:
    """Every linear layer replaced; GPT-2's others are Conv1D and stay as they are."""
    model = MODELS[name]()
    expected = {path: "uint4" for path, part in model.named_modules() if type(part) is nn.Linear}
    for path in expected:
        parent, _, child = path.rpartition(".")
        holder = model.get_submodule(parent)
        setattr(holder, child, quantised(getattr(holder, child), nbits=4, group_size=GROUP, axis=1))
    run = inferred(model, given(name))
    assert formats(run) == expected
    assert expected
    assert macs(run) == float_macs(name)
