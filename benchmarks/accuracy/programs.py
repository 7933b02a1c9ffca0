"""Small torch programs given as text, run phase by phase: what the executed-operation benchmarks measure and price."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Program:
    """`setup` makes the inputs, each phase is one statement. A phase named "-..." is run but not measured."""

    name: str
    setup: str
    phases: dict[str, str] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "setup": self.setup, "phases": self.phases}


def op(name: str, setup: str, call: str, backward: bool = True) -> Program:
    """Forward is the call; backward starts from a gradient made beforehand, so it holds the op's own work alone."""
    phases = {"forward": f"y = {call}"}
    if backward:
        phases |= {"-": "g = torch.randn_like(y)", "backward": "y.backward(g)"}
    return Program(name, setup, phases)


def accumulated(name: str, setup: str, call: str) -> Program:
    """The programs behind shared/truth: backward adds to gradients that are already there."""
    warm = f"y = {call}; g = torch.randn_like(y); y.backward(g)"
    return Program(name, setup, {"-": warm, "forward": f"y = {call}", "backward": "y.backward(g)"})


def optimizer(name: str, make: str, *shapes: str, warm: int = 1) -> Program:
    """One step of an optimizer after `warm` steps (the first one makes its state)."""
    setup = f"ps = [parameter(s) for s in [{', '.join(shapes)}]]; o = torch.optim.{make}" + "; o.step()" * warm
    return Program(name, setup, {"optimizer": "o.step()"})


def network(name: str, setup: str, loss: str, optimizer: str, warm: int = 1) -> Program:
    """A training step by phase; `setup` makes m, x and t. The optimizer has taken `warm` steps before."""
    setup += f"; o = torch.optim.{optimizer}"
    step = f"o.zero_grad(); y = m(x); l = {loss}; l.backward(); o.step()"
    for _ in range(warm):
        setup += "; " + step
    return Program(
        name,
        setup + "; o.zero_grad()",
        {"forward": "y = m(x)", "loss": f"l = {loss}", "backward": "l.backward()", "optimizer": "o.step()"},
    )


def namespace(device: str = "cpu") -> dict[str, Any]:
    """What the texts may use: torch, nn, F, math, the networks below, and makers of inputs on one device."""
    torch.manual_seed(0)

    def randn(*shape: int, grad: bool = True, dtype: torch.dtype | None = None) -> torch.Tensor:
        return torch.randn(*shape, device=device, dtype=dtype).requires_grad_(grad)

    def positive(*shape: int) -> torch.Tensor:
        return (torch.rand(*shape, device=device) * 0.8 + 0.1).requires_grad_()

    def const(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device=device)

    def ints(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, high, shape, device=device)

    def parameter(shape: tuple[int, ...]) -> nn.Parameter:
        p = nn.Parameter(torch.randn(*shape, device=device))
        p.grad = torch.randn_like(p)
        return p

    def on(module: nn.Module) -> nn.Module:
        return module.to(device)

    def tf32(allow: bool = True) -> None:
        if device != "cuda":
            return
        torch.backends.cuda.matmul.allow_tf32 = allow
        torch.backends.cudnn.allow_tf32 = allow

    tf32(False)
    names = {"torch": torch, "nn": nn, "F": F, "math": math, "randn": randn, "positive": positive, "const": const}
    names |= {"ints": ints, "parameter": parameter, "on": on, "tf32": tf32}
    return names | {cls.__name__: cls for cls in (EncoderLM, Block, ConvNet, ResNet18, ViT, LSTMClassifier)}


def execute(program: Program, measure: Callable[[str, Callable[[], None]], None], device: str = "cpu") -> None:
    """Run a program; each measured phase goes through `measure(phase, run)`."""
    names = namespace(device)
    exec(program.setup, names)
    for phase, statement in program.phases.items():
        code = compile(statement, program.name, "exec")
        if phase.startswith("-"):
            exec(code, names)
        else:
            measure(phase, lambda code=code: exec(code, names))


class Watch(TorchDispatchMode):
    """The ops of one phase, as the torch backend writes them down."""

    supports_higher_order_operators = True

    def __init__(self, ledger: Any, phase: str) -> None:
        super().__init__()
        self.ledger, self.phase = ledger, phase

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from bitwatt.backends.torch.encode import decode, key_of

        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        named = tuple((k, key_of(v)) for k, v in kwargs.items())
        self.ledger.add(self.phase, "", decode(func, tuple(key_of(a) for a in args), named, key_of(out)))
        return out


def ledger_of(program: Program, device: str = "cpu") -> Any:
    from bitwatt.ledger import Ledger

    ledger = Ledger()

    def watch(phase: str, run: Callable[[], None]) -> None:
        with Watch(ledger, phase):
            run()

    execute(program, watch, device)
    return ledger


def find_bitwatt() -> bool:
    """Whether bitwatt can be imported, from an installation or from the checkout this file lies in."""
    source = Path(__file__).resolve().parents[2] / "src"
    if source.is_dir() and str(source) not in sys.path:
        sys.path.insert(0, str(source))
    try:
        import bitwatt.pricing  # noqa: F401
    except ImportError:
        return False
    return True


class EncoderLM(nn.Module):
    def __init__(
        self, vocabulary: int, width: int, heads: int, layers: int, ffn: int, mask: bool = True, drop: float = 0.0
    ) -> None:
        super().__init__()
        self.emb, self.width, self.mask = nn.Embedding(vocabulary, width), width, mask
        layer = nn.TransformerEncoderLayer(width, heads, ffn, drop, activation="gelu", batch_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.dec = nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        h = self.emb(ids)
        length = ids.shape[1]
        mask = torch.full((length, length), float("-inf"), device=ids.device).triu(1) if self.mask else None
        return self.dec(self.enc(h, mask=mask))


class Block(nn.Module):
    """A residual block of two padded 3x3 convolutions."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.c2, self.b2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))) + self.shortcut(x))


class ConvNet(nn.Module):
    """Convolutions of 3x3 with or without padding, pooling and a classifier."""

    def __init__(self, *channels: int, padding: int = 1, classes: int = 10) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(channels):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=padding), nn.ReLU(), nn.MaxPool2d(2)]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(channels[-1], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).mean((2, 3)))


class ResNet18(nn.Module):
    """The CIFAR variant: a 3x3 stem and no max-pool."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        blocks, inputs = [], width
        for outputs, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
            blocks += [Block(inputs, outputs, stride), Block(outputs, outputs)]
            inputs = outputs
        self.body, self.pool, self.fc = nn.Sequential(*blocks), nn.AdaptiveAvgPool2d(1), nn.Linear(8 * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.pool(self.body(self.stem(x))).flatten(1))


class ViT(nn.Module):
    """Patches, a class token, pre-norm encoder layers with GELU, a head."""

    def __init__(self, size: int, patch: int, width: int, heads: int, layers: int) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch)
        tokens = (size // patch) ** 2
        self.cls, self.pos = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, tokens + 1, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, F.gelu, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.enc(x)[:, 0]))


class LSTMClassifier(nn.Module):
    def __init__(self, inputs: int, hidden: int, layers: int = 1, kind: str = "LSTM") -> None:
        super().__init__()
        self.rnn = getattr(nn, kind)(inputs, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.rnn(x)[0][:, -1])
