"""Programs whose known steps do something else later, which was once taken for what they did before, without a word."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import measuring
import pytest
import torch
import torch.nn.functional as F
from replay_programs import mlp, train
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import bitwatt
from bitwatt.backends.torch.replay import learner, lessons
from bitwatt.records import Replay, Run
from bitwatt.reports.replay import verdict

#: By then steps are taken the swiftest way.
LATE, LAST = 90, 130


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code between events is left alone as soon as it may be."""
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)


def measured(program: Callable[[], None], exactness: str) -> Run:
    torch.manual_seed(0)
    return measuring.measured(program, exactness=exactness)


def both(program: Callable[[], None]) -> tuple[dict[str, float], dict[str, float], Run, Replay]:
    """FLOPs by phase, counted and replayed; and the replayed run."""
    counted, replayed = measured(program, "always"), measured(program, "auto")
    assert replayed.replay is not None
    return bitwatt.totals(counted).by("phase"), bitwatt.totals(replayed).by("phase"), replayed, replayed.replay


@pytest.mark.parametrize(("kind", "options"), [(torch.optim.SGD, {}), (torch.optim.LBFGS, {"max_iter": 3})])
def test_what_an_optimizer_does_after_its_closure_is_counted(kind: Any, options: dict[str, Any]) -> None:
    """In every step: no other ends the units of such a program."""

    def program() -> None:
        model, x = nn.Linear(12, 4), torch.randn(8, 12)
        optimizer = kind(model.parameters(), lr=0.01, **options)

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            return loss

        for _ in range(30):
            optimizer.step(closure)

    counted, found, _, replay = both(program)
    assert found == counted
    assert counted["optimizer"] > 0
    assert not replay.assumed


def test_doubts_are_told_where_no_step_was_replayed_from_end_to_end() -> None:
    run = measured(lambda: None, "auto")
    doubtful = Run("", "", "", 0.0, run.ledger, run.machine, replay=Replay("auto", counted=200, assumed=70))
    assert verdict(run) == ""
    assert "code before 70 unexpected calls ran unseen" in verdict(doubtful)


WIDE = torch.ones(4, 64)
LOSSES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "other": (lambda z: z.square().mean(), lambda z: z.exp().mean()),
    "deeper": (lambda z: (2 * z.tanh()).square().mean(), lambda z: (2 * (z @ WIDE[:, :4])).square().mean()),
    "branch": (lambda z: z.square().mean() + z.tanh().mean(), lambda z: z.square().mean() + (z @ WIDE).mean()),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_of_another_form_with_as_many_nodes_is_found_soon_and_told(name: str) -> None:
    early, late = LOSSES[name]

    def program() -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(LAST + 60):
            optimizer.zero_grad()
            (early if i < LATE else late)(model(torch.randn(8, 12))).backward()
            optimizer.step()

    counted, found, run, replay = both(program)
    assert replay.disagreed == {"marks of losses": 1}
    assert verdict(run).startswith("replayed, verified ")
    assert abs(found["backward"] - counted["backward"]) < 16 * counted["backward"] / (LAST + 60)
    assert replay.replayed > LAST


@pytest.mark.parametrize("late", range(101, 131, 3))
def test_another_loss_is_told_wherever_it_begins(late: int) -> None:
    """Also right before a look, which comes by itself somewhere here, and would take it for a mark like others."""
    early, other = (lambda z: z[:6].square().mean()), (lambda z: z[:4].square().mean())

    def program() -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(late + 80):
            optimizer.zero_grad()
            (early if i < late else other)(model(torch.randn(8, 12))).backward()
            optimizer.step()

    counted, found, _, replay = both(program)
    assert replay.disagreed or found["backward"] == counted["backward"]


ALTERNATING: dict[str, Callable[[Tensor, int], Tensor]] = {
    "kinds": lambda z, i: (z.square() if i % 2 else z.exp()).mean(),
    "parts": lambda z, i: z[: 6 if i % 2 else 3].square().mean(),
    "now and then": lambda z, i: (z.exp() if i % 7 == 2 else z.square()).mean(),
}


@pytest.mark.parametrize("name", ALTERNATING)
def test_losses_that_take_turns_are_told_apart_in_every_step(name: str) -> None:
    def program() -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(LAST):
            optimizer.zero_grad()
            ALTERNATING[name](model(torch.randn(8, 12)), i).backward()
            optimizer.step()

    counted, found, _, replay = both(program)
    assert found["backward"] == counted["backward"]
    assert found["forward"] == counted["forward"]
    assert not replay.disagreed
    assert replay.replayed > LATE


def test_a_batch_of_another_size_is_no_other_loss() -> None:
    """Sizes are learned as a family, with the kinds of the loss's nodes in the mark."""

    def program() -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(60):
            train(model, optimizer, 3 + i * 7 % 31)

    counted, found, _, replay = both(program)
    assert found == counted
    assert replay.replayed > 45


class Doubled(torch.autograd.Function):
    """Its backward does more when it is told to."""

    more = False

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 2 * grad + (x @ x.T @ x if Doubled.more else 0)


class Idle(Doubled):
    """So does this one, which else calls nothing at all."""

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return Doubled.backward(ctx, grad) if Doubled.more else grad


def own_backward(function: type[Doubled]) -> Callable[[pytest.MonkeyPatch], None]:
    def program(monkeypatch: pytest.MonkeyPatch) -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(LAST):
            monkeypatch.setattr(Doubled, "more", i >= LATE)
            optimizer.zero_grad()
            function.apply(model(torch.randn(8, 12))).square().mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return program


def hung(hang: Callable[[nn.Module, Callable[[Tensor], None]], Any]) -> Callable[[Any], None]:
    """Trains with something hung on the model that does more after a while, of which no graph tells."""

    def program(_: Any) -> None:
        model, steps = mlp(), [0]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def more(value: Tensor) -> None:
            if steps[0] >= LATE:
                value.detach() @ value.detach().T

        hang(model, more)
        for i in range(LAST):
            steps[0] = i
            train(model, optimizer)

    return program


def hung_on_activations(_: Any) -> None:
    model, steps = mlp(), [0]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def more(grad: Tensor) -> None:
        if steps[0] >= LATE:
            grad @ grad.T

    for i in range(LAST):
        steps[0] = i
        optimizer.zero_grad()
        out = model(torch.randn(8, 12))
        out.register_hook(more)
        out.square().mean().backward()
        optimizer.step()


OWN: dict[str, Callable[[Any], None]] = {
    "function": own_backward(Doubled),
    "idle function": own_backward(Idle),
    "activation": hung_on_activations,
    "gradient": hung(lambda model, more: model[0].weight.register_hook(lambda grad: more(grad))),
    "gradients": hung(lambda model, more: model[3].register_full_backward_hook(lambda _, __, out: more(out[0]))),
    "call": hung(lambda model, more: model[0].register_forward_hook(lambda _, __, out: more(out))),
}


@pytest.mark.parametrize("name", OWN)
def test_code_of_the_programs_own_of_which_nothing_tells_is_not_called_exact(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, found, run, replay = both(lambda: OWN[name](monkeypatch))
    assert found != counted
    assert replay.unchecked == replay.replayed > LATE
    assert not verdict(run).startswith(("exact", "calls and steps exact"))


def test_a_hook_of_torchs_own_is_as_torchs_own_modules_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitwatt.reports.replay._NOTABLE", 1e9)  # how long it takes is the machine's affair

    def program() -> None:
        model = mlp()
        nn.utils.spectral_norm(model[0])  # hangs a function on its calls
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(40):
            train(model, optimizer)

    counted, found, run, replay = both(program)
    assert found == counted
    assert not replay.unchecked
    assert verdict(run).startswith("calls and steps exact: ")


def test_what_hangs_on_steps_is_not_called_exact() -> None:
    def program() -> None:
        model, steps = mlp(), [0]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def clip(*_: object) -> None:
            steps[0] += 1
            if steps[0] % 40 == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)

        optimizer.register_step_pre_hook(clip)
        for _ in range(LAST):
            train(model, optimizer)

    _, _, run, replay = both(program)
    assert replay.unchecked == replay.replayed > LATE
    assert not verdict(run).startswith(("exact", "calls and steps exact"))


def test_one_that_is_frozen_unheard_is_told_where_the_session_ends() -> None:
    """The look at one step in sixteen would have come later."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    doubts = []
    for late in (1, 4, 8, 12, 15):
        model[3].bias.requires_grad_(True)
        with bitwatt.measure(keep=False) as session:
            for i in range(LATE):
                if i == LATE - late:
                    torch._C.TensorBase.requires_grad_(model[3].bias, False)
                optimizer.zero_grad(set_to_none=False)
                model(torch.randn(8, 12)).square().mean().backward()
                optimizer.step()
        assert session.run is not None
        assert session.run.replay is not None
        doubts.append(dict(session.run.replay.disagreed))
    assert doubts == [{"marks of models": 1}] * 5


@pytest.mark.parametrize("every", [7, 20])
def test_work_before_a_call_of_another_model_is_in_its_phase(every: int) -> None:
    """It is seen, and gets its phase by a forward that is taken the short way."""

    def program() -> None:
        model, teacher = mlp(), mlp().eval()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(100):
            x = torch.randn(8, 12)
            if i % every == every - 1:
                (model[0].weight @ model[0].weight.T).norm()
            with torch.no_grad():
                target = teacher(x).softmax(-1)
            optimizer.zero_grad()
            F.kl_div(model(x).log_softmax(-1), target, reduction="batchmean").backward()
            optimizer.step()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lessons, "GAPS", 32)
        counted, found, _, replay = both(program)
    assert found == counted
    assert replay.replayed > 150


class Listening(TorchFunctionMode):
    """Notes what is called, as a debugger of the program's own may, or a default device."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: Counter[str] = Counter()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.heard[f"{getattr(function, '__qualname__', function)} {len(args)}"] += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("own", [False, True])
def test_what_is_compared_is_heard_by_no_mode_of_the_programs(own: bool) -> None:
    def heard(exactness: str) -> Counter[str]:
        model: nn.Module = Wrapped() if own else mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        opened = bitwatt.measure(keep=False, exactness=exactness) if exactness else contextlib.nullcontext()
        with opened, Listening() as mode:
            for _ in range(60):
                train(model, optimizer)
        return mode.heard

    plain = heard("")
    assert plain["linear 3"] == 120
    assert heard("always") == plain
    assert heard("auto") == plain


class Wrapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = mlp()

    def forward(self, x: Tensor) -> Any:
        return self.inner(x)
