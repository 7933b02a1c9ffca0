"""Layers that are told to be ordinary at a glance are those that a thorough look finds nothing in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from bitwatt.precision.ordinary import _given, is_ordinary
from bitwatt.precision.probe import probe

ORDINARY: list[Callable[[], nn.Module]] = [
    lambda: nn.Linear(8, 4),
    lambda: nn.Linear(8, 4, bias=False, dtype=torch.bfloat16),
    lambda: nn.Conv2d(3, 6, 3, padding="same", padding_mode="reflect"),
    lambda: nn.ConvTranspose1d(3, 6, 3),
    lambda: nn.BatchNorm2d(6),
    lambda: nn.LayerNorm(8),
    lambda: nn.Embedding(10, 4, padding_idx=0),
    lambda: nn.PReLU(),
]


@pytest.mark.parametrize("make", ORDINARY)
def test_layers_of_torch_are_ordinary(make: Callable[[], nn.Module]) -> None:
    assert is_ordinary(make())
    assert probe(make()) == (None, "")


def test_they_are_after_something_was_compiled() -> None:
    torch.compile(nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))  # which wraps the constructor of all modules
    _given.cache_clear()
    assert all(is_ordinary(make()) for make in ORDINARY)


class Own(nn.Linear):
    bits = 4


def named(name: str, value: object) -> nn.Module:
    layer = nn.Linear(8, 4)
    setattr(layer, name, value)
    return layer


def buffered(name: str, value: torch.Tensor) -> nn.Module:
    layer = nn.Linear(8, 4)
    layer.register_buffer(name, value)
    return layer


def marked() -> nn.Module:
    layer = nn.Linear(8, 4)
    layer.weight.bits = 4  # type: ignore[attr-defined]
    return layer


def packed() -> nn.Module:
    layer = nn.Linear(8, 4)
    layer.weight = nn.Parameter(torch.zeros(4, 4, dtype=torch.uint8), requires_grad=False)
    return layer


@pytest.mark.parametrize(
    "layer",
    [
        Own(8, 4),
        named("bits", 4),
        named("quantizer", nn.Identity()),
        named("forward", lambda x: x),
        buffered("weight_scale", torch.ones(4)),
        buffered("n_bits", torch.tensor(4)),
        marked(),
        packed(),
    ],
)
def test_layers_with_something_more_on_them_are_looked_at(layer: nn.Module) -> None:
    assert not is_ordinary(layer)
