"""Programs that repeat themselves, more or less: each is counted and replayed, and both must agree."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, TensorDataset

import bitwatt

Program = Callable[[], None]
PROGRAMS: dict[str, Program] = {}
#: Nothing of these may be replayed wrongly, but parts of them cannot be known before they ran.
UNFORESEEN: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def unforeseen(function: Program) -> Program:
    UNFORESEEN[function.__name__] = function
    return function


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 4))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, batch: int = 8) -> None:
    optimizer.zero_grad()
    F.cross_entropy(model(torch.randn(batch, 12)), torch.randint(0, 4, (batch,))).backward()
    optimizer.step()


@program
def plain_training() -> None:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(40):
        train(model, optimizer)


@program
def no_training_at_all() -> None:
    model = mlp().eval()
    with torch.no_grad():
        for _ in range(50):
            model(torch.randn(8, 12)).argmax(1)


@program
def evaluation_with_grad_left_on() -> None:
    model = mlp().eval()
    for _ in range(50):
        model(torch.randn(8, 12)).softmax(1)


@program
def inference_in_training_mode() -> None:
    model = mlp()
    for _ in range(90):
        model(torch.randn(8, 12))


@program
def two_batch_sizes() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for i in range(60):
        train(model, optimizer, 8 if i % 3 else 16)


@program
def every_batch_another_size() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(80):
        train(model, optimizer, 3 + i * 7 % 31)


@program
def ragged_loader_with_evaluation() -> None:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    data = TensorDataset(torch.randn(50, 12), torch.randint(0, 4, (50,)))
    for _ in range(6):
        model.train()
        for x, y in DataLoader(data, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x / 2), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad(), bitwatt.phase("validate"):
            for x, y in DataLoader(data, batch_size=16):
                (model(x).argmax(1) == y).float().mean()


@program
def accumulation_with_ragged_end() -> None:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(8):
        optimizer.zero_grad()
        for i in range(10):
            loss = F.cross_entropy(
                model(torch.randn(5 if i == 9 else 8, 12)), torch.randint(0, 4, (5 if i == 9 else 8,))
            )
            (loss / 4).backward()
            if i % 4 == 3 or i == 9:
                optimizer.step()
                optimizer.zero_grad()


@program
def gan() -> None:
    make, judge = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 12)), nn.Sequential(nn.Linear(12, 1))
    of_make, of_judge = torch.optim.Adam(make.parameters()), torch.optim.Adam(judge.parameters())
    one, zero = torch.ones(8, 1), torch.zeros(8, 1)
    for _ in range(30):
        fake = make(torch.randn(8, 6))
        of_judge.zero_grad()
        real_loss = F.binary_cross_entropy_with_logits(judge(torch.randn(8, 12)), one)
        fake_loss = F.binary_cross_entropy_with_logits(judge(fake.detach()), zero)
        (real_loss + fake_loss).backward()
        of_judge.step()
        of_make.zero_grad()
        F.binary_cross_entropy_with_logits(judge(fake), one).backward()
        of_make.step()


class Adapted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(12, 4).requires_grad_(False)
        self.down, self.up = nn.Linear(12, 2, bias=False), nn.Linear(2, 4, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


@program
def adapters_then_all_weights() -> None:
    model = Adapted()
    optimizer = torch.optim.AdamW(model.parameters())
    for i in range(40):
        if i == 20:
            model.base.requires_grad_(True)
        train(model, optimizer)


@program
def clipping_and_moving_average() -> None:
    model, average = mlp(), mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(30):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 12)), torch.randint(0, 4, (8,))).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for mine, theirs in zip(average.parameters(), model.parameters(), strict=True):
                mine.lerp_(theirs, 0.01)


@program
def functional() -> None:
    weight = torch.randn(12, 4, requires_grad=True)
    for _ in range(30):
        (torch.randn(8, 12) @ weight).square().mean().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
            weight.grad = None


@program
def by_hand_without_optimizer() -> None:
    model = mlp()
    for _ in range(30):
        model(torch.randn(8, 12)).square().mean().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None


@program
def closure() -> None:
    model, x, y = nn.Linear(12, 4), torch.randn(8, 12), torch.randint(0, 4, (8,))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = F.cross_entropy(model(x), y)
        value.backward()
        return value

    for _ in range(12):
        optimizer.step(loss)


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = mlp(), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(checkpoint(self.body, x, use_reentrant=False))


@program
def checkpointed() -> None:
    model = Checkpointed()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        train(model, optimizer)


@program
def autocast_now_and_then() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(40):
        with torch.autocast("cpu", torch.bfloat16, enabled=i % 4 == 0):
            train(model, optimizer)


@program
def gradient_penalty() -> None:
    model = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(30):
        x = torch.randn(8, 12, requires_grad=True)
        out = model(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        optimizer.zero_grad()
        (out.mean() + (slope.norm(dim=1) - 1).square().mean()).backward()
        optimizer.step()


class Cell(nn.Module):
    """Reads a cache that grows by one at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.keys, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor, cache: list[Tensor]) -> Tensor:
        cache[0] = torch.cat([cache[0], self.keys(x)], 1)
        scores = (self.query(x) @ cache[0].transpose(1, 2)).softmax(-1)
        return self.out(scores @ cache[0])


@program
def growing_cache() -> None:
    model = Cell().eval()
    with torch.inference_mode():
        for _ in range(3):
            cache, x = [torch.randn(1, 5, 8)], torch.randn(1, 1, 8)
            for _ in range(40):
                x = model(x, cache)


@program
def two_threads() -> None:
    def work(model: nn.Module, batch: int) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(30):
            train(model, optimizer, batch)

    threads = [threading.Thread(target=work, args=job) for job in ((mlp(), 4), (Deep(), 5))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@program
def a_layer_more() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(40):
        if i == 20:
            model.append(nn.Linear(4, 4))
        train(model, optimizer)


@program
def half_way_in_half() -> None:
    model = mlp().eval()
    with torch.no_grad():
        for i in range(40):
            if i == 20:
                model.bfloat16()
            model(torch.randn(8, 12).to(torch.bfloat16 if i >= 20 else torch.float32))


@program
def a_step_that_fails() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(40):
        if i % 13 == 12:
            try:
                model(torch.randn(8, 11))
            except RuntimeError:
                continue
        train(model, optimizer)


@program
def a_metric_first_now_and_then() -> None:
    """What makes no node of the graph comes right after a known call, and must not take its last node for its own."""
    model, x = mlp(), torch.randn(8, 12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(60):
        optimizer.zero_grad()
        out = model(x)
        (out.detach() if i % 7 == 3 else out).mul(2).sum()
        out.mul(2).sum().backward()
        optimizer.step()


@program
def a_final_word() -> None:
    model, x = mlp(), torch.randn(8, 12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        train(model, optimizer)
    model.eval()
    with torch.no_grad():
        (model(x).argmax(1) == 2).float().mean()


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(12, 3), nn.ModuleList([nn.Linear(12, 4) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        choice = self.gate(x).argmax(1)
        out = x.new_zeros(len(x), 4)
        for i, expert in enumerate(self.experts):
            at = (choice == i).nonzero().squeeze(1)
            if len(at):
                out = out.index_add(0, at, expert(x[at]))
        return out


@program
def mixture_of_experts() -> None:
    torch.manual_seed(1)
    model = Experts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        train(model, optimizer)


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.head = nn.ModuleList([nn.Linear(12, 12) for _ in range(5)]), nn.Linear(12, 4)
        self.depth = 2

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[: self.depth]:
            x = layer(x).relu()
        return self.head(x)


@program
def a_curriculum_of_depth() -> None:
    model = Deep()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(90):
        model.depth = 2 + i // 30
        train(model, optimizer)


class Hidden(Deep):
    """Nothing that is seen from outside tells how deep it goes."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[: int(x[0, 0])]:
            x = layer(x).relu()
        return self.head(x)


@unforeseen
def a_depth_in_the_data() -> None:
    model = Hidden()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(90):
        optimizer.zero_grad()
        model(torch.full((8, 12), 2.0 + i // 30)).square().mean().backward()
        optimizer.step()


@unforeseen
def metrics_now_and_then() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(60):
        train(model, optimizer)
        if i % 20 == 19:
            torch.randn(64, 64) @ torch.randn(64, 64)


class Every6th(torch.optim.Optimizer):
    """Does more at every sixth step, as those do that keep a preconditioner."""

    def __init__(self, parameters: object) -> None:
        super().__init__(parameters, {})  # type: ignore[arg-type]
        self.steps = 0

    @torch.no_grad()
    def step(self, closure: object = None) -> None:
        self.steps += 1
        for p in self.param_groups[0]["params"]:
            if self.steps % 6 == 0 and p.dim() == 2:
                p.grad @ p.grad.T
            p.sub_(p.grad, alpha=0.01)


@program
def an_optimizer_with_a_rhythm() -> None:
    model = mlp()
    optimizer = Every6th(model.parameters())
    for _ in range(60):
        train(model, optimizer)


@program
def a_number_that_decides() -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(12, 12))

        def forward(self, x: Tensor, t: int) -> Tensor:
            for _ in range(1 if t < 200 else 4):
                x = x @ self.weight
            return x

    model = Loop()
    with torch.no_grad():
        for i in range(60):
            model(torch.ones(4, 12), 10 * i)


@program
def gradients_taken_away() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(80):
        optimizer.zero_grad()
        F.cross_entropy(model(torch.randn(8, 12)), torch.randint(0, 4, (8,))).backward()
        if i > 50:
            model[3].weight.grad = None
        optimizer.step()


@program
def padded_to_a_multiple() -> None:
    layer = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for i in range(40):
        x = torch.randn(3 + i % 20, 4)
        optimizer.zero_grad()
        layer(F.pad(x, (0, 0, 0, -len(x) % 32))).sum().backward()
        optimizer.step()


@program
def a_hook_on_a_gradient() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(90):
        if i == 50:
            model[3].weight.register_hook(lambda grad: grad @ torch.eye(16))
        train(model, optimizer)


@program
def a_loss_more_now_and_then() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(90):
        optimizer.zero_grad()
        out = model(torch.randn(8, 12))
        loss = F.cross_entropy(out, torch.randint(0, 4, (8,)))
        (loss + out.square().mean() if i % 9 == 8 else loss).backward()
        optimizer.step()


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.near, self.far = nn.Linear(12, 16), nn.Linear(16, 4), mlp_of(16)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.body(x)
        return self.near(hidden), self.far(hidden)


def mlp_of(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 4))


@program
def a_loss_of_one_head_or_the_other() -> None:
    model = Heads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sum(out.mean() for out in model(torch.randn(8, 12))).backward()
    for i in range(120):
        optimizer.zero_grad(set_to_none=False)
        model(torch.randn(8, 12))[i // 50 % 2].square().mean().backward()
        optimizer.step()


class Switched(nn.Module):
    """Does what its attribute says, and counts its calls in another."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(12, 12), nn.Linear(12, 4)
        self.mode, self.calls = "short", 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.second(x if self.mode == "short" else self.first(x))


@program
def a_switch_in_the_model() -> None:
    model = Switched()
    with torch.no_grad():
        for i in range(150):
            model.mode = "long" if i % 3 == 2 else "short"
            model(torch.randn(8, 12))


@program
def dropout_that_ends() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(80):
        if i == 45:
            model[2].p = 0.0
        train(model, optimizer)


@program
def weight_decay_that_begins() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(120):
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + i)
        if i == 75:
            optimizer.param_groups[0]["weight_decay"] = 0.1
        train(model, optimizer)


@program
def strides_that_divide_and_do_not() -> None:
    model = nn.Sequential(nn.Conv1d(4, 8, 16, stride=16), nn.ReLU(), nn.Conv1d(8, 4, 1))
    with torch.no_grad():
        for i in range(80):
            model(torch.randn(2, 4, 16 * (1 + i * 5 % 8) if i < 30 else 16 + i * 37 % 120))


@program
def three_units_in_turn() -> None:
    models = [mlp(), Deep(), nn.Linear(12, 4)]
    optimizers = [torch.optim.Adam(model.parameters()) for model in models]
    for _ in range(60):
        for model, optimizer in zip(models, optimizers, strict=True):
            train(model, optimizer)


@program
def two_models_and_their_backwards_in_either_order() -> None:
    """As stages of a pipeline have them: which graph a backward goes through is not told by the loss's shape."""
    one, other = nn.Sequential(nn.Linear(12, 12), nn.ReLU()), nn.Sequential(nn.Linear(12, 40), nn.Linear(40, 12))
    optimizer = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.01)
    x = torch.ones(8, 12)
    for i in range(60):
        optimizer.zero_grad()
        losses = [(one(x).sum(), other(x).sum()) for _ in range(2)]
        for n, pair in enumerate(losses):
            for loss in pair if (i + n) % 3 else pair[::-1]:
                loss.backward()
        if not i % 5:
            one(x).sum().backward()
        optimizer.step()


@program
def a_hook_that_is_taken_off() -> None:
    model, seen = mlp().eval(), list[Tensor]()
    with torch.no_grad():
        for i in range(120):
            if i == 40:
                handle = model[0].register_forward_hook(lambda _, __, out: seen.append(out.norm()))
            if i == 80:
                handle.remove()
            model(torch.randn(8, 12))


@program
def options_that_turn() -> None:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters())
    for i in range(120):
        if i == 60:
            optimizer.param_groups[0]["maximize"] = True
        if i == 90:
            optimizer.param_groups[0]["foreach"] = True
        train(model, optimizer)


@program
def a_hook_on_steps() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def works(*_: object) -> None:
        torch.ones(9, 9) @ torch.ones(9, 9)

    for i in range(100):
        if i == 60:
            optimizer.register_step_pre_hook(works)
        train(model, optimizer)


@program
def an_optimizer_that_warms_up() -> None:
    model = mlp()
    optimizer = torch.optim.RAdam(model.parameters())
    for _ in range(60):
        train(model, optimizer)


class Clamped(torch.optim.SGD):
    """Its parent's step is one that torch tells of, too."""

    def step(self, closure: object = None) -> None:
        super().step()
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                p.clamp_(-1, 1)


@program
def a_step_inside_a_step() -> None:
    torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)
    model = mlp()
    optimizer = Clamped(model.parameters(), lr=0.1)
    for _ in range(200):
        train(model, optimizer)


@program
def two_and_three_backwards() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(100):
        optimizer.zero_grad()
        out = model(torch.randn(8, 12))
        out.mean().backward(retain_graph=True)
        if i % 7 == 6:
            out.square().mean().backward(retain_graph=True)
        out.abs().mean().backward()
        optimizer.step()


@unforeseen
def a_loss_of_less() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(200):
        optimizer.zero_grad()
        model(torch.randn(8, 12))[: 6 if i < 113 else 4].square().mean().backward()
        optimizer.step()


@program
def sequences_of_other_lengths() -> None:
    model = nn.LSTM(4, 6)
    with torch.no_grad():
        for i in range(100):
            lengths = torch.tensor([5, 3, 2] if i < 60 else [5, 5, 5])
            model(nn.utils.rnn.pack_padded_sequence(torch.ones(5, 3, 4), lengths))


@program
def turned_round() -> None:
    model = nn.Linear(12, 4)
    with torch.no_grad():
        for i in range(100):
            model(torch.ones(3, 8, 12) if i < 60 else torch.ones(8, 3, 12).transpose(0, 1))


class Flipped(Dataset[tuple[Tensor, int]]):
    """Does more with some samples than with others."""

    def __len__(self) -> int:
        return 400

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        x = torch.ones(12)
        return (x.flip(0) if i % 37 == 0 else x), i % 4


@unforeseen
def samples_that_are_changed_now_and_then() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(Flipped(), batch_size=4):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@unforeseen
def closures_now_and_then() -> None:
    model, x = nn.Linear(12, 4), torch.randn(8, 12)
    plain, slow = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.LBFGS(model.parameters(), max_iter=2)

    def loss() -> Tensor:
        slow.zero_grad()
        value = model(x).square().mean()
        value.backward()
        return value

    for i in range(100):
        plain.zero_grad()
        model(x).square().mean().backward()
        plain.step()
        if i % 25 == 24:
            slow.step(loss)


@program
def a_session_inside() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        train(model, optimizer)
    with bitwatt.measure(keep=False):
        for _ in range(60):
            train(model, optimizer)
    torch.ones(9, 9) @ torch.ones(9, 9)
    for _ in range(60):
        train(model, optimizer)


@unforeseen
def work_after_each_epoch() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(160, 12), torch.randint(0, 4, (160,)))
    for _ in range(4):
        total = 0.0
        for x, y in DataLoader(data, batch_size=4):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        torch.ones(9, 9) @ torch.ones(9, 9)


@unforeseen
def layers_changed_without_a_word() -> None:
    model = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(200):
        if i == 110:
            model[1].training = False
        train(model, optimizer)


@unforeseen
def a_forward_in_the_place_of_another() -> None:
    model = mlp().eval()
    with torch.no_grad():
        for i in range(200):
            if i == 110:
                model[0].forward = lambda x: x @ torch.ones(12, 16)  # type: ignore[method-assign]
            model(torch.ones(8, 12))


@unforeseen
def a_step_that_raises() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fails(*_: object) -> None:
        raise ArithmeticError

    for i in range(200):
        handle = optimizer.register_step_pre_hook(fails) if i == 120 else None
        try:
            train(model, optimizer)
        except ArithmeticError:
            if handle is not None:
                handle.remove()


@unforeseen
def a_critic_that_steps_more_often() -> None:
    """The same call follows a step of the critic with other code before it: new data, or none."""
    make, judge = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 12)), mlp()
    of_make, of_judge = torch.optim.Adam(make.parameters()), torch.optim.Adam(judge.parameters())
    for i in range(250):
        real, noise = torch.randn(8, 12), torch.randn(8, 6)
        fake = make(noise).detach()
        of_judge.zero_grad()
        (judge(fake).mean() - judge(real).mean()).backward()
        of_judge.step()
        if i % 5 == 0:
            of_make.zero_grad()
            (-judge(make(noise)).mean()).backward()
            of_make.step()


@program
def a_head_of_functional_code_and_a_teacher_after_it() -> None:
    """What comes between the student's call and the teacher's is differentiated, though an inference comes next."""
    student, teacher = nn.Linear(12, 8), nn.Linear(12, 8).requires_grad_(False)
    optimizer, head = torch.optim.SGD(student.parameters(), lr=0.1), torch.randn(8, 5)
    for _ in range(40):
        x = torch.randn(8, 12)
        out = student(x) @ head
        with torch.no_grad():
            target = teacher(x) @ head
        optimizer.zero_grad()
        (out - target).square().mean().backward()
        optimizer.step()


def _hooked(when: Callable[[int], bool]) -> None:
    first, last, factor = nn.Linear(12, 16), nn.Linear(16, 4), torch.eye(16)
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
    for i in range(100):
        out = first(torch.randn(8, 12))
        if when(i):
            out.register_hook(lambda gradient: gradient @ factor)
        optimizer.zero_grad()
        last(out).square().mean().backward()
        optimizer.step()


@program
def hooks_on_activations_in_every_second_step() -> None:
    _hooked(lambda i: i >= 20 and i % 2 == 1)


@program
def hooks_on_activations_from_some_step_on() -> None:
    _hooked(lambda i: i >= 60)
