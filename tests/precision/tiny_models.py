"""A Llama, a GPT-2 and a ViT small enough to run in milliseconds, with random weights."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    ViTConfig,
    ViTForImageClassification,
)

import bitwatt
from bitwatt.records import Layer, Run

WIDTH, TOKENS = 64, 12


def llama() -> Any:
    config = LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return LlamaForCausalLM(config).eval()


def gpt2() -> Any:
    return GPT2LMHeadModel(GPT2Config(vocab_size=WIDTH, n_positions=32, n_embd=WIDTH, n_layer=2, n_head=4)).eval()


def vit() -> Any:
    config = ViTConfig(
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=16,
        patch_size=8,
        num_labels=32,
    )
    return ViTForImageClassification(config).eval()


MODELS = {"llama": llama, "gpt2": gpt2, "vit": vit}


def given(name: str) -> torch.Tensor:
    return torch.randn(1, 3, 16, 16) if name == "vit" else torch.arange(TOKENS).reshape(1, TOKENS)


def inferred(model: Any, x: torch.Tensor) -> Run:
    with bitwatt.measure("model", keep=False) as session, torch.no_grad():
        model(x)
    assert session.run is not None
    assert bitwatt.totals(session.run).missing == {}
    return session.run


def macs(run: Run) -> int:
    return bitwatt.totals(run, "macs").total


def float_macs(name: str) -> int:
    return macs(inferred(MODELS[name](), given(name)))


def formats(run: Run) -> dict[str, str]:
    """Path -> format of every quantised layer; a layer whose width is not known has no place here."""
    assert [path for path, layer in run.layers.items() if layer.unknown] == []
    return {path: _name(layer) for path, layer in run.layers.items() if layer.weights is not None}


def _name(layer: Layer) -> str:
    assert layer.weights is not None
    return layer.weights.precision.name
