"""The same model counted twice: by bitwatt's torch backend, and from the ONNX graph that torch exports of it."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import bitwatt
from bitwatt.backends.onnx import count
from integration.vision import published, torchvision_models

pytest.importorskip("onnxscript")


def exported(module: nn.Module, args: tuple[torch.Tensor, ...], path: Path, **options: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            torch.onnx.export(module.eval(), args, path, dynamo=True, verbose=False, **options)
        finally:
            logging.disable(logging.NOTSET)
    return path


def both(module: nn.Module, args: tuple[torch.Tensor, ...], path: Path) -> tuple[int, int]:
    """Multiply-accumulates by torch and by ONNX; nothing may be missing from either."""

    def call(module: nn.Module, *args: torch.Tensor) -> Any:
        with torch.no_grad():
            return module(*args)

    by_torch = bitwatt.totals(bitwatt.estimate(call, module.eval(), *args), "macs")
    by_onnx = bitwatt.totals(count(exported(module, args, path / "model.onnx")), "macs")
    assert by_torch.missing == by_onnx.missing == {}
    return by_torch.total, by_onnx.total


class Small(nn.Module):
    """A bit of everything that exporters treat differently."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, groups=1)
        self.norm = nn.BatchNorm2d(8)
        self.deep = nn.Conv2d(8, 8, 3, groups=8)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.rnn = nn.LSTM(28, 16, 2, bidirectional=True, batch_first=True)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.head = nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.gelu(self.norm(self.conv(x)))
        x = self.up(self.deep(x)).mean(1)
        x = self.rnn(x)[0]
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return self.head(x).softmax(-1)


def test_a_small_network_has_the_same_products(tmp_path: Path) -> None:
    torch_macs, onnx_macs = both(Small(), (torch.randn(2, 3, 16, 16),), tmp_path)
    assert torch_macs == onnx_macs
    assert {"conv", "deep", "up", "head"} - scopes(tmp_path / "model.onnx") <= {"conv"}  # with its norm, it is `norm`


def scopes(path: Path) -> set[str]:
    return set(bitwatt.totals(count(path), "macs").by("scope"))


def test_an_open_batch_multiplies_everything(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 3))
    batch = torch.export.Dim("batch")
    path = exported(module, (torch.randn(2, 20),), tmp_path / "open.onnx", dynamic_shapes=({0: batch},))
    assert bitwatt.totals(bitwatt.estimate(path, batch=50), "macs").total == 50 * (20 * 16 + 16 * 3)
    assert scopes(path) >= {"0", "2"}


def transformer(kind: str) -> tuple[nn.Module, torch.Tensor]:
    import transformers as t

    if kind == "bert":
        config = t.BertConfig(
            hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, vocab_size=1000
        )
        return t.BertModel(config), torch.randint(0, 1000, (2, 16))

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = t.GPT2LMHeadModel(t.GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000))

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.model(tokens, use_cache=False).logits

    return Logits(), torch.randint(0, 1000, (2, 16))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_transformers_have_the_same_products(kind: str, tmp_path: Path) -> None:
    module, tokens = transformer(kind)
    torch_macs, onnx_macs = both(module, (tokens,), tmp_path)
    assert torch_macs == onnx_macs


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "resnet50", "mobilenet_v2", "vit_b_16", "efficientnet_b0", "swin_t"])
def test_classifiers_of_torchvision_are_as_published_and_as_torch_counts_them(name: str, tmp_path: Path) -> None:
    side, gmac = published()[f"{name}@224"]
    torch_macs, onnx_macs = both(torchvision_models().get_model(name), (torch.randn(1, 3, side, side),), tmp_path)
    assert torch_macs == onnx_macs
    assert round(onnx_macs / 1e9, 3) == gmac
