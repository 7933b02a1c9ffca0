"""Programs with something compiled in them. Each is made with a way to compile, and gives its step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Compile = Callable[[Any], Any]
Step = Callable[[], None]
Program = Callable[[Compile], Step]
PROGRAMS: dict[str, Program] = {}
#: Their graphs break by their own doing.
BROKEN: dict[str, Program] = {}


def program(make: Program) -> Program:
    PROGRAMS[make.__name__] = make
    return make


def broken(make: Program) -> Program:
    BROKEN[make.__name__] = make
    return make


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 4))


def data(rows: int = 8) -> tuple[Tensor, Tensor]:
    return torch.randn(rows, 12), torch.randint(0, 4, (rows,))


def trained(model: Any, optimizer: torch.optim.Optimizer, loss: Any = F.cross_entropy) -> Step:
    def step() -> None:
        x, y = data()
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return step


@program
def training(compiled: Compile) -> Step:
    model = mlp()
    return trained(compiled(model), torch.optim.AdamW(model.parameters()))


@program
def inference(compiled: Compile) -> Step:
    model = compiled(mlp().eval())

    def step() -> None:
        with torch.no_grad():
            model(data()[0]).argmax(1)

    return step


@program
def inference_mode(compiled: Compile) -> Step:
    model = compiled(mlp().eval())

    def step() -> None:
        with torch.inference_mode():
            model(data()[0])

    return step


@program
def a_function_around_a_model(compiled: Compile) -> Step:
    model = mlp().eval()
    run = compiled(lambda x: model(x).softmax(1))

    def step() -> None:
        with torch.no_grad():
            run(data()[0])

    return step


@program
def a_function_and_nothing_else(compiled: Compile) -> Step:
    weight = torch.randn(12, 12)
    run = compiled(lambda x: (x @ weight).relu() @ weight)
    return lambda: run(data()[0])  # type: ignore[no-any-return]


@program
def a_function_with_the_loss(compiled: Compile) -> Step:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    forward = compiled(lambda x, y: F.cross_entropy(model(x), y))

    def step() -> None:
        optimizer.zero_grad()
        forward(*data()).backward()
        optimizer.step()

    return step


@program
def a_loss_function(compiled: Compile) -> Step:
    model = mlp()
    return trained(model, torch.optim.SGD(model.parameters(), lr=0.1), compiled(lambda a, y: F.cross_entropy(a, y)))


@program
def regions_of_an_eager_model(compiled: Compile) -> Step:
    model = nn.Sequential(nn.Linear(12, 16), compiled(nn.Sequential(nn.Linear(16, 16), nn.ReLU())), nn.Linear(16, 4))
    model.append(compiled(nn.Sequential(nn.Linear(4, 4), nn.Tanh())))
    return trained(model, torch.optim.Adam(model.parameters()))


@program
def modules_with_hooks(compiled: Compile) -> Step:
    model = mlp()
    model[0].register_forward_hook(lambda _, __, out: out * 2)
    return trained(compiled(model), torch.optim.SGD(model.parameters(), lr=0.1))


@program
def recomputed_in_backward(compiled: Compile) -> Step:
    class Recomputes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = mlp(), nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(checkpoint(self.body, x, use_reentrant=False))  # type: ignore[no-any-return]

    model = Recomputes()
    return trained(compiled(model), torch.optim.SGD(model.parameters(), lr=0.1))


@program
def accumulation(compiled: Compile) -> Step:
    model = mlp()
    run, optimizer = compiled(model), torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        for _ in range(3):
            x, y = data()
            (F.cross_entropy(run(x), y) / 3).backward()
        optimizer.step()

    return step


@program
def training_and_evaluation(compiled: Compile) -> Step:
    model = mlp()
    run = compiled(model)
    train = trained(run, torch.optim.AdamW(model.parameters()))

    def step() -> None:
        model.train()
        train()
        train()
        model.eval()
        with torch.no_grad():
            run(data()[0])

    return step


@broken
def a_whole_step(compiled: Compile) -> Step:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    return compiled(trained(model, optimizer))  # type: ignore[no-any-return]


@broken
def an_optimizer(compiled: Compile) -> Step:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    update = compiled(optimizer.step)

    def step() -> None:
        x, y = data()
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        update()

    return step


@broken
def a_graph_break(compiled: Compile) -> Step:
    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(12, 16), nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            torch._dynamo.graph_break()
            return self.b(x)  # type: ignore[no-any-return]

    model = Breaks()
    return trained(compiled(model), torch.optim.SGD(model.parameters(), lr=0.1))


@broken
def beside_an_eager_thread(compiled: Compile) -> Step:
    """The other thread is counted, or compiles, whenever it likes."""
    mine, other = mlp(), mlp()
    first = trained(compiled(mine), torch.optim.SGD(mine.parameters(), lr=0.1))
    second = trained(other, torch.optim.SGD(other.parameters(), lr=0.1))

    def step() -> None:
        thread = threading.Thread(target=second)
        thread.start()
        first()
        thread.join()

    return step
