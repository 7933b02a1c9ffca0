"""Counts that others published, to the last printed digit."""

from __future__ import annotations

import pytest
import torch

import bitwatt
from integration.vision import published, torchvision_models

GMAC = 10**9

#: Small enough to compute for real in `make test`; `make test-all` computes all that fit.
QUICK = {"alexnet@224", "mobilenet_v2@224", "resnet18@224", "squeezenet1_1@224", "shufflenet_v2_x0_5@224",
         "regnet_y_400mf@224", "vit_b_32@224", "densenet121@224", "efficientnet_b0@224", "swin_t@224"}  # fmt: skip


def classify(name: str, side: int, batch: int = 1) -> torch.Tensor:
    options = {"image_size": side} if name.startswith("vit_") else {}
    model = torchvision_models().get_model(name, **options).eval()
    with torch.no_grad():
        out: torch.Tensor = model(torch.randn(batch, 3, side, side))
    return out


def inference_gmacs(run: bitwatt.Run) -> float:
    totals = bitwatt.totals(run, "macs")
    assert totals.missing == {}
    return totals.by("phase")["inference"] / GMAC


@pytest.mark.parametrize("model", list(published()))
def test_every_classifier_of_torchvision_is_estimated_as_published(model: str) -> None:
    side, gmac = published()[model]
    run = bitwatt.estimate(classify, model.partition("@")[0], side)
    assert round(inference_gmacs(run), 3) == gmac


@pytest.mark.parametrize(
    "model", [model if model in QUICK else pytest.param(model, marks=pytest.mark.slow) for model in published()]
)
def test_classifiers_computed_on_the_cpu_are_as_published(model: str) -> None:
    side, gmac = published()[model]
    with bitwatt.measure(model, keep=False) as session:
        classify(model.partition("@")[0], side)
    assert round(inference_gmacs(session.run), 3) == gmac


def gpt2(tokens: int, *, train: bool) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config())
    logits = model(torch.randint(0, 50257, (1, tokens)), use_cache=False).logits
    if train:
        logits.sum().backward()


def test_gpt2_at_1024_tokens_is_as_in_nanogpt() -> None:
    # nanoGPT's transformer_sizing.ipynb: 291,648,307,200 forward; backward is twice that
    macs = bitwatt.totals(bitwatt.estimate(gpt2, 1024, train=True), "macs").by("phase")
    assert 2 * macs["forward"] == 291_648_307_200
    assert 2 * macs["backward"] == 2 * 291_648_307_200


def train_classifier(name: str) -> None:
    model = torchvision_models().get_model(name)
    model(torch.randn(1, 3, 224, 224)).sum().backward()


@pytest.mark.parametrize(
    ("name", "forward", "both"),
    # FlopCounterMode's forward, and its forward + backward where no convolution is grouped (research: demand.md 1.M)
    [("resnet18", 3_628_146_688, 10_648_412_160), ("resnet50", 8_178_368_512, 24_299_077_632)],
)
def test_training_residual_networks(name: str, forward: int, both: int) -> None:
    macs = bitwatt.totals(bitwatt.estimate(train_classifier, name), "macs").by("phase")
    assert 2 * macs["forward"] == forward
    assert 2 * (macs["forward"] + macs["backward"]) == both


def test_training_mobilenet_v2_costs_about_three_forwards() -> None:
    # FlopCounterMode says twenty: it ignores the groups of depthwise convolutions in backward
    macs = bitwatt.totals(bitwatt.estimate(train_classifier, "mobilenet_v2"), "macs").by("phase")
    assert 2 * macs["forward"] == 601_548_544
    assert macs["backward"] / macs["forward"] == pytest.approx(2.0, abs=0.05)
