"""Training steps that overhead is measured on: small ones that a GPU waits for, and one that people know."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Step = Callable[[], None]


class Block(nn.Module):
    """Two 3x3 convolutions and a way around them."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)
        same = stride == 1 and inner == outer
        short = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
        self.short = nn.Identity() if same else short

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.norm1(self.first(x)))
        return F.relu(self.norm2(self.second(out)) + self.short(x))


def resnet18(first: int = 64) -> nn.Module:
    """For 32 x 32 pixels: a 3x3 stem and no pooling after it."""
    widths = ((1, 1, 1), (1, 1, 1), (1, 2, 2), (2, 2, 1), (2, 4, 2), (4, 4, 1), (4, 8, 2), (8, 8, 1))
    blocks = [Block(first * inner, first * outer, stride) for inner, outer, stride in widths]
    stem = [nn.Conv2d(3, first, 3, 1, 1, bias=False), nn.BatchNorm2d(first), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * first, 10))


class Transformer(nn.Module):
    def __init__(self, vocabulary: int = 33278, width: int = 256, layers: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        return self.decoder(self.encoder(self.embedding(ids))).flatten(0, 1)


def mlp(device: str, tiny: bool = False) -> Step:
    """`tiny`, here and below, is the same program with next to no arithmetic in it."""
    inner, width, batch = (8, 8, 4) if tiny else (784, 512, 64)
    model = nn.Sequential(nn.Linear(inner, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    return _step(model, torch.randn(batch, inner), torch.randint(0, 10, (batch,)), torch.optim.Adam, device)


def resnet(device: str, tiny: bool = False) -> Step:
    batch, pixels, first = (2, 8, 2) if tiny else (32, 32, 64)
    x, y = torch.randn(batch, 3, pixels, pixels), torch.randint(0, 10, (batch,))
    return _step(resnet18(first), x, y, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), device)


def transformer(device: str, tiny: bool = False) -> Step:
    words, width, shape = (64, 8, (1, 4)) if tiny else (33278, 256, (8, 128))
    ids = torch.randint(0, words, shape)
    return _step(Transformer(words, width), ids, ids.flatten(), torch.optim.AdamW, device)


def gpt2(device: str, tiny: bool = False) -> Step:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=64, n_embd=24, n_positions=8) if tiny else GPT2Config()
    model = GPT2LMHeadModel(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.randint(0, config.vocab_size, (1, 4) if tiny else (4, 256), device=device)

    def step() -> None:
        optimizer.zero_grad()
        model(ids, labels=ids).loss.backward()
        optimizer.step()

    return step


def texts(device: str, tiny: bool = False) -> Step:
    """Padded to the longest of each batch: hardly a length comes twice."""
    from transformers import BertConfig, BertForSequenceClassification

    width, layers, longest = (16, 1, 40) if tiny else (256, 4, 300)
    config = BertConfig(
        hidden_size=width, num_hidden_layers=layers, num_attention_heads=4, intermediate_size=4 * width, vocab_size=1000
    )
    model = BertForSequenceClassification(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    batches = []
    for _ in range(300):
        lengths = torch.randint(5, longest, (8, 1))
        mask = (torch.arange(int(lengths.max())) < lengths).long()
        batches.append((mask * torch.randint(1, 1000, mask.shape), mask, torch.randint(0, 2, (8,))))
    endless = itertools.cycle([tuple(part.to(device) for part in batch) for batch in batches])

    def step() -> None:
        ids, mask, labels = next(endless)
        optimizer.zero_grad()
        F.cross_entropy(model(input_ids=ids, attention_mask=mask).logits, labels).backward()
        optimizer.step()

    return step


def quantised(device: str) -> Step:
    """Inference through 8-bit layers, whose precision is looked up at first sight and must cost nothing after it."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(12)]).to(device)
    quantize_(model, Int8WeightOnlyConfig())
    x = torch.randn(16, 256, device=device)

    def step() -> None:
        with torch.no_grad():
            model(x)

    return step


def _step(model: nn.Module, x: Tensor, y: Tensor, make: Callable[[Any], Any], device: str) -> Step:
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = make(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


WORKLOADS: dict[str, Callable[..., Step]] = {
    "mlp": mlp,
    "resnet": resnet,
    "transformer": transformer,
    "gpt2": gpt2,
    "texts": texts,
    "quantised": quantised,
}
