"""Training programs for peers.py, each with the closed form of its matrix and convolution FLOPs.

Conventions of the closed forms: a multiply-accumulate is 2 FLOPs; attention is counted in full, a causal mask is not
discounted; the backward of a product is two products, without the gradient of a network's input where nothing asks for
it; what a kernel computes twice (flash attention's scores in backward) counts once; what a checkpoint runs again is
counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass
class Workload:
    """One training step, part by part, and how many FLOPs of products and convolutions each part holds."""

    model: nn.Module
    x: torch.Tensor
    y: torch.Tensor
    optimizer: torch.optim.Optimizer
    forward: int
    backward: int
    loss_flops: int = 0
    loss: Loss = field(default_factory=nn.CrossEntropyLoss)

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.loss(self.model(self.x), self.y).backward()
        self.optimizer.step()


class TokenLoss(nn.Module):
    """Cross-entropy of every token."""

    def forward(self, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits.flatten(0, -2).float(), y.flatten())


def _labels(*shape: int, classes: int = 10) -> torch.Tensor:
    return torch.randint(0, classes, shape)


# ── perceptrons ──


def _mlp_net() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


class Autocast(nn.Module):
    """The inner network in bfloat16 where autocast says so."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return self.inner(x)


def mlp(wrap: Callable[[nn.Module], Any] = lambda net: net, batch: int = 64) -> Workload:
    """784-512-512-10. The first layer's input needs no gradient."""
    net = wrap(_mlp_net())
    first, rest = 2 * batch * 784 * 512, 2 * batch * (512 * 512 + 512 * 10)
    optimizer = torch.optim.Adam(net.parameters())
    return Workload(net, torch.randn(batch, 784), _labels(batch), optimizer, first + rest, first + 2 * rest)


class CheckpointedMLP(nn.Module):
    """784-512, three checkpointed blocks of two 512-512 layers, 512-10."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.first, self.last = nn.Linear(784, 512), nn.Linear(512, 10)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)) for _ in range(3)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=self.reentrant)
        return self.last(h)


def checkpointed_mlp(reentrant: bool, batch: int = 64) -> Workload:
    """Without reentrance torch stops recomputing when the last saved tensor is there: 3 of 6 layers run again."""
    net = CheckpointedMLP(reentrant)
    first, block, last = (2 * batch * n for n in (784 * 512, 512 * 512, 512 * 10))
    again = (6 if reentrant else 3) * block
    forward = first + 6 * block + last
    optimizer = torch.optim.Adam(net.parameters())
    return Workload(net, torch.randn(batch, 784), _labels(batch), optimizer, forward, 2 * forward - first + again)


class Functional(nn.Module):
    """einsum, F.linear on raw parameters and broadcast matmul; no layer of torch.nn at all."""

    def __init__(self) -> None:
        super().__init__()
        self.w1, self.b1 = nn.Parameter(torch.randn(256, 128) * 0.05), nn.Parameter(torch.zeros(256))
        self.w2, self.w3 = nn.Parameter(torch.randn(8, 32, 64) * 0.05), nn.Parameter(torch.randn(512, 10) * 0.05)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, _ = x.shape
        h = F.gelu(F.linear(x, self.w1, self.b1)).view(rows, length, 8, 32)
        h = torch.einsum("bthi,hio->btho", h, self.w2).reshape(rows, length, 512)
        weights = torch.matmul(h, h.transpose(1, 2)).softmax(-1)
        return torch.matmul(torch.matmul(weights, h), self.w3).mean(1)


def decorrelating_loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A plain function with a product of its own: samples should not resemble each other."""
    z = F.normalize(out, dim=-1)
    return F.cross_entropy(out, y) + 0.1 * (z @ z.T - torch.eye(len(z))).pow(2).mean()


def functional(batch: int = 16, length: int = 50) -> Workload:
    net, tokens = Functional(), batch * length
    first = 2 * tokens * 128 * 256
    rest = 2 * tokens * 8 * 32 * 64 + 2 * (2 * tokens * length * 512) + 2 * tokens * 512 * 10
    loss = 2 * batch * 10 * batch
    x, optimizer = torch.randn(batch, length, 128), torch.optim.Adam(net.parameters())
    backward = first + 2 * rest + 2 * loss
    return Workload(net, x, _labels(batch), optimizer, first + rest, backward, loss, decorrelating_loss)


class LSTMClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(128, 256, 2, batch_first=True), nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][:, -1])


def lstm(batch: int = 16, length: int = 64) -> Workload:
    """Four gates a step and layer. oneDNN's backward has one form: it always computes the input's gradient too."""
    net = LSTMClassifier()
    forward = length * 2 * batch * 4 * 256 * ((128 + 256) + (256 + 256)) + 2 * batch * 256 * 10
    optimizer = torch.optim.Adam(net.parameters())
    return Workload(net, torch.randn(batch, length, 128), _labels(batch), optimizer, forward, 2 * forward)


# ── convolutions ──


def _conv(inputs: int, outputs: int, size: int, kernel: int = 3) -> int:
    """FLOPs of one convolution on one image; size is that of its output, of its input if transposed."""
    return 2 * inputs * outputs * kernel**2 * size**2


def _classifier(net: nn.Module, batch: int, size: int, forward: int, stem: int) -> Workload:
    """Forward and stem are FLOPs of one image; backward is twice the forward less the stem's input gradient."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(batch, 3, size, size)
    return Workload(net, x, _labels(batch), optimizer, batch * forward, batch * (2 * forward - stem))


class Residual(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm1, self.norm2, self.short = nn.BatchNorm2d(after), nn.BatchNorm2d(after), nn.Sequential()
        if stride != 1 or before != after:
            self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))) + self.short(x))


def resnet18(batch: int) -> Workload:
    """The CIFAR variant: a 3x3 stem, no max-pool."""
    stages = [(64, 64, 1, 32), (64, 128, 2, 16), (128, 256, 2, 8), (256, 512, 2, 4)]
    blocks = [block for i, o, s, _ in stages for block in (Residual(i, o, s), Residual(o, o, 1))]
    stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    net = nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    forward = _conv(3, 64, 32) + 2 * 512 * 10
    for i, o, stride, size in stages:
        forward += _conv(i, o, size) + 3 * _conv(o, o, size) + (_conv(i, o, size, 1) if stride > 1 else 0)
    return _classifier(net, batch, 32, forward, _conv(3, 64, 32))


class InvertedResidual(nn.Module):
    """1x1 up to six times the channels, depthwise 3x3, 1x1 down; added to its input where the shapes agree."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        wide = 6 * before
        self.added = stride == 1 and before == after
        self.body = nn.Sequential(
            nn.Conv2d(before, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, after, 1, bias=False), nn.BatchNorm2d(after),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.added else self.body(x)


def mobilenet(batch: int = 2) -> Workload:
    """In the manner of MobileNetV2 (Sandler et al. 2018): most layers are 1x1 or depthwise."""
    blocks = [(16, 24, 2, 32, 16), (24, 24, 1, 16, 16), (24, 32, 2, 16, 8), (32, 32, 1, 8, 8), (32, 64, 2, 8, 4)]
    stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6())
    body = [InvertedResidual(i, o, stride) for i, o, stride, _, _ in blocks]
    net = nn.Sequential(stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    forward = _conv(3, 16, 32) + 2 * 64 * 10
    for i, o, _, before, after in blocks:
        forward += _conv(i, 6 * i, before, 1) + _conv(1, 6 * i, after) + _conv(6 * i, o, after, 1)
    return _classifier(net, batch, 64, forward, _conv(3, 16, 32))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def two(i: int, o: int) -> nn.Module:
            return nn.Sequential(nn.Conv2d(i, o, 3, 1, 1), nn.ReLU(), nn.Conv2d(o, o, 3, 1, 1), nn.ReLU())

        self.down1, self.down2, self.middle, self.pool = two(3, 32), two(32, 64), two(64, 128), nn.MaxPool2d(2)
        self.up2, self.join2 = nn.ConvTranspose2d(128, 64, 2, 2), two(128, 64)
        self.up1, self.join1 = nn.ConvTranspose2d(64, 32, 2, 2), two(64, 32)
        self.out = nn.Conv2d(32, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.down1(x)
        b = self.down2(self.pool(a))
        y = self.join2(torch.cat([self.up2(self.middle(self.pool(b))), b], 1))
        return self.out(self.join1(torch.cat([self.up1(y), a], 1)))


def unet(batch: int = 2) -> Workload:
    """Two levels on 64x64, up again by transposed convolutions."""
    layers = [(3, 32, 64), (32, 32, 64), (32, 64, 32), (64, 64, 32), (64, 128, 16), (128, 128, 16)]
    layers += [(128, 64, 32), (64, 64, 32), (64, 32, 64), (32, 32, 64)]
    forward = sum(_conv(*layer) for layer in layers) + _conv(32, 2, 64, 1)
    forward += _conv(128, 64, 16, 2) + _conv(64, 32, 32, 2)  # transposed
    workload = _classifier(UNet(), batch, 64, forward, _conv(3, 32, 64))
    workload.y = _labels(batch, 64, 64, classes=2)
    return workload


# ── transformers ──


def _attention(length: int, width: int) -> int:
    """Scores and weighted values of one sequence, every head."""
    return 2 * (2 * length * length * width)


class EncoderLM(nn.Module):
    def __init__(self, vocabulary: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.width, self.embedding = width, nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        mask = torch.full((ids.shape[1], ids.shape[1]), float("-inf")).triu(1)
        return self.decoder(self.encoder(self.embedding(ids) * math.sqrt(self.width), mask=mask))


def encoder(dropout: float, wrap: Callable[[nn.Module], nn.Module] = lambda net: net) -> Workload:
    """4 layers of width 256, a vocabulary of 8000, 128 tokens. Without dropout torch's CPU takes its flash kernel."""
    t, d, vocabulary = 128, 256, 8000
    net = wrap(EncoderLM(vocabulary, d, 4, dropout))
    forward = 4 * (2 * t * (3 * d * d + d * d + 2 * d * 4 * d) + _attention(t, d)) + 2 * t * d * vocabulary
    return _language_model(net, t, vocabulary, forward)


def _language_model(net: nn.Module, length: int, vocabulary: int, forward: int, again: int = 0) -> Workload:
    """`again` is what checkpoints recompute."""
    ids, y = _labels(1, length, classes=vocabulary), _labels(1, length, classes=vocabulary)
    return Workload(net, ids, y, torch.optim.AdamW(net.parameters()), forward, 2 * forward + again, loss=TokenLoss())


class HuggingFace(nn.Module):
    """A transformers model as one tensor in, logits out: the tools that trace need it so."""

    def __init__(self, inner: Any, **options: Any) -> None:
        super().__init__()
        self.inner, self.options = inner, options

    @property
    def is_gradient_checkpointing(self) -> bool:
        return self.inner.is_gradient_checkpointing

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, **self.options).logits


def gpt2(attention: str) -> Workload:
    """GPT-2 small as published, 256 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    t, d, vocabulary = 256, 768, 50257
    net = HuggingFace(GPT2LMHeadModel(GPT2Config(attn_implementation=attention)), use_cache=False)
    forward = 12 * (2 * t * (3 * d * d + d * d + 8 * d * d) + _attention(t, d)) + 2 * t * d * vocabulary
    return _language_model(net, t, vocabulary, forward)


def llama(checkpointed: bool) -> Workload:
    """4 layers, 8 query heads on 2 key-value heads. A checkpointed layer runs again up to its last product, `down`."""
    from transformers import LlamaConfig, LlamaForCausalLM

    t, d, inner, keys, vocabulary = 128, 512, 1376, 128, 8000
    sizes = {"hidden_size": d, "intermediate_size": inner, "vocab_size": vocabulary, "num_hidden_layers": 4}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=8, num_key_value_heads=2))
    if checkpointed:
        model.gradient_checkpointing_enable()
    down = 2 * t * inner * d
    layer = 2 * t * (2 * d * d + 2 * d * keys + 2 * d * inner) + down + _attention(t, d)
    again = 4 * (layer - down) if checkpointed else 0
    forward = 4 * layer + 2 * t * d * vocabulary
    return _language_model(HuggingFace(model, use_cache=False), t, vocabulary, forward, again)


def mixtral() -> Workload:
    """4 layers, a router over 4 experts of which every token visits 2."""
    from transformers import MixtralConfig, MixtralForCausalLM

    t, d, inner, keys, vocabulary = 128, 256, 512, 64, 8000
    sizes = {"hidden_size": d, "intermediate_size": inner, "vocab_size": vocabulary, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32}
    model = MixtralForCausalLM(MixtralConfig(**sizes, **heads, num_local_experts=4, num_experts_per_tok=2))
    layer = 2 * t * (2 * d * d + 2 * d * keys + 4 * d + 2 * 3 * d * inner) + _attention(t, d)
    forward = 4 * layer + 2 * t * d * vocabulary
    return _language_model(HuggingFace(model, use_cache=False), t, vocabulary, forward)


def vit() -> Workload:
    """ViT-S/16 at 224x224: 196 patches and the class token."""
    from transformers import ViTConfig, ViTForImageClassification

    t, d = 197, 384
    sizes = {"hidden_size": d, "num_hidden_layers": 12, "num_attention_heads": 6, "intermediate_size": 4 * d}
    net = HuggingFace(ViTForImageClassification(ViTConfig(**sizes, num_labels=10)))
    patches = 2 * (t - 1) * 3 * 16 * 16 * d
    forward = patches + 12 * (2 * t * (4 * d * d + 2 * d * 4 * d) + _attention(t, d)) + 2 * d * 10
    return _classifier(net, 1, 224, forward, patches)


WORKLOADS: dict[str, tuple[str, Callable[[], Workload]]] = {
    "mlp": ("MLP 784-512-512-10, batch 64", mlp),
    "resnet18-b1": ("ResNet-18 (CIFAR), batch 1", partial(resnet18, 1)),
    "resnet18-b32": ("ResNet-18 (CIFAR), batch 32", partial(resnet18, 32)),
    "mobilenet": ("MobileNetV2-like depthwise net, batch 2", mobilenet),
    "unet": ("U-Net with ConvTranspose2d, batch 2", unet),
    "lstm": ("LSTM, 2 layers of 256, 16x64 steps", lstm),
    "encoder": ("Encoder LM, dropout 0.1, 128 tokens", partial(encoder, 0.1)),
    "encoder-nodrop": ("Encoder LM, no dropout (flash kernel), 128 tokens", partial(encoder, 0.0)),
    "gpt2-sdpa": ("GPT-2 small (transformers, sdpa), 256 tokens", partial(gpt2, "sdpa")),
    "gpt2-eager": ("GPT-2 small (transformers, eager), 256 tokens", partial(gpt2, "eager")),
    "llama": ("Llama, grouped-query attention (transformers), 128 tokens", partial(llama, False)),
    "mixtral": ("Mixtral, 2 of 4 experts (transformers), 128 tokens", mixtral),
    "vit": ("ViT-S/16 (transformers), 1 image", vit),
    "functional": ("einsum and raw parameters, hand-written loss with a product", functional),
    "checkpoint": ("MLP, checkpointed, non-reentrant", partial(checkpointed_mlp, False)),
    "checkpoint-reentrant": ("MLP, checkpointed, reentrant", partial(checkpointed_mlp, True)),
    "llama-checkpoint": ("Llama with gradient_checkpointing_enable()", partial(llama, True)),
    "compiled": ("MLP, torch.compile(backend=aot_eager)", partial(mlp, partial(torch.compile, backend="aot_eager"))),
    "autocast-mlp": ("MLP under bfloat16 autocast", partial(mlp, Autocast)),
    "autocast-encoder": ("Encoder LM under bfloat16 autocast, no dropout", partial(encoder, 0.0, Autocast)),
}


def build(name: str) -> Workload:
    torch.manual_seed(0)
    return WORKLOADS[name][1]()
