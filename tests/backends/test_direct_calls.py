"""Modules of a known call are called without torch's way of finding out what hangs on them: where something does, in
whatever way it came there in mid-run, it is called as it is without bitwatt."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import module as registry

import bitwatt

STEPS, HUNG = 200, 150


class Own(nn.Sequential):
    """A model of the program's own, in which layers of torch's are called."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self:
            x = layer(x)
        return x


MODELS = {"torch's own": nn.Sequential, "the program's own": Own}


def train(
    hang: Callable[[nn.Sequential], Any] = lambda _: None,
    kind: Callable[..., nn.Sequential] = nn.Sequential,
    *,
    steps: int = STEPS,
) -> Any:
    """A program that hangs something on its model when all of a step has long been known."""
    torch.manual_seed(0)
    model = kind(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    handle = None
    with bitwatt.measure("direct", keep=False, meter=False) as session:
        for i in range(steps):
            if i == HUNG:
                handle = hang(model)
            optimizer.zero_grad()
            model(torch.ones(4, 6)).square().mean().backward()
            optimizer.step()
    if handle is not None:
        handle.remove()
    return session.run


class Seen:
    """Counts how often it is called."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, *_: Any) -> None:
        self.times += 1


#: How, and how often a step then calls it.
WAYS: dict[str, tuple[Callable[[nn.Sequential, Seen], Any], int]] = {
    "a hook on a layer": (lambda model, seen: model[2].register_forward_hook(seen), 1),
    "one before a layer": (lambda model, seen: model[0].register_forward_pre_hook(seen), 1),
    "one on the model": (lambda model, seen: model.register_forward_hook(seen), 1),
    "one on gradients": (lambda model, seen: model[2].register_full_backward_hook(seen), 1),
    "one of the old kind on gradients": (lambda model, seen: model[2].register_backward_hook(seen), 1),
    "written into a layer": (lambda model, seen: model[2]._forward_hooks.update({7_000_000: seen}), 1),
    "written into the model": (lambda model, seen: model._forward_pre_hooks.update({7_000_000: seen}), 1),
    "one on all modules": (lambda _, seen: registry.register_module_forward_hook(seen), 4),
    "one before all modules": (lambda _, seen: registry.register_module_forward_pre_hook(seen), 4),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_what_is_hung_on_modules_in_mid_run_is_called(way: str, kind: str) -> None:
    seen, (hang, times) = Seen(), WAYS[way]
    run = train(lambda model: hang(model, seen), MODELS[kind])
    assert run.replay.replayed > STEPS / 2
    assert seen.times == times * (STEPS - HUNG)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", ["forward", "_call_impl"])
def test_what_is_put_in_the_place_of_a_method_is_called(name: str, kind: str) -> None:
    seen = Seen()

    def hang(model: nn.Sequential) -> None:
        method = getattr(model[2], name)

        def other(x: Tensor) -> Tensor:
            seen()
            return method(x)

        setattr(model[2], name, other)

    train(hang, MODELS[kind])
    assert seen.times == STEPS - HUNG


@pytest.mark.parametrize("kind", MODELS)
def test_a_class_that_gets_a_call_of_its_own_in_mid_run_is_called_by_it(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Seen()

    class Layer(nn.ReLU):
        """Of the program's own."""

    def hang(model: nn.Sequential) -> None:
        method = nn.Module._call_impl

        def other(self: nn.Module, *args: Any) -> Tensor:
            seen()
            return method(self, *args)

        monkeypatch.setattr(Layer, "_call_impl", other, raising=False)

    train(hang, lambda first, _, last: MODELS[kind](first, Layer(), last))
    assert seen.times == STEPS - HUNG


def test_a_layer_that_is_compiled_in_mid_run_is_called_compiled() -> None:
    seen = Seen()

    class Layer(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.relu()

    def backend(graph: Any, _: Any) -> Any:
        def run(*args: Any) -> Any:
            seen()
            return graph(*args)

        return run

    run = train(lambda model: model[1].compile(backend=backend), lambda first, _, last: Own(first, Layer(), last))
    assert run.replay.replayed > STEPS / 2
    assert seen.times > 0.8 * (STEPS - HUNG)  # counted steps run eagerly


def test_a_module_that_was_never_initialised_raises_what_it_raises_without_bitwatt() -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            """Without its parent's."""

        def forward(self, x: Tensor) -> Tensor:
            return x

    class Switched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.parts = nn.Linear(6, 3), [nn.ReLU()]

        def forward(self, x: Tensor) -> Tensor:
            return self.parts[0](self.layer(x))

    def raised(call: Callable[[], Any]) -> str:
        with pytest.raises(AttributeError) as error:
            call()
        return str(error.value)

    model = Switched()
    expected = raised(lambda: Bare()(torch.ones(4, 3)))
    with bitwatt.measure("bare", keep=False, meter=False), torch.no_grad():
        for _ in range(STEPS):
            model(torch.ones(4, 6))
        model.parts[0] = Bare()
        assert raised(lambda: model(torch.ones(4, 6))) == expected


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.filterwarnings("error::torch.jit.TracerWarning")
def test_a_model_that_is_traced_in_mid_run_has_its_layers_in_the_trace(kind: str) -> None:
    traced = []

    def hang(model: nn.Sequential) -> None:
        traced.append(torch.jit.trace(model, torch.ones(4, 6), check_trace=False))

    train(hang, MODELS[kind])
    assert [name for name, _ in traced[0].named_children()] == ["0", "1", "2"]
    assert len({node.scopeName() for node in traced[0].inlined_graph.nodes() if node.kind() == "aten::linear"}) == 2


def test_an_error_inside_a_model_leaves_it_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
    with bitwatt.measure("direct", keep=False, meter=False) as session, torch.no_grad():
        for i in range(STEPS):
            if i == HUNG:
                weight, model[2].weight = model[2].weight, nn.Parameter(torch.ones(3, 5))
                with pytest.raises(RuntimeError, match="shapes"):
                    model(torch.ones(4, 6))
                model[2].weight = weight
            model(torch.ones(4, 6))
    assert session.run is not None
    assert bitwatt.totals(session.run, "macs").total == STEPS * 4 * 6 * (6 + 3) + 4 * 6 * 6


#: What a program gives its model, and how, from some step on.
GIVEN: dict[str, Callable[[Tensor], Tensor]] = {
    "needs a gradient": lambda x: x.requires_grad_(),
    "lies otherwise in memory": lambda x: x.t().contiguous().t(),
    "is less": lambda x: x[:3],
}


def fed(exactness: str, change: Callable[[Tensor], Tensor], *, autocast: bool = False) -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with bitwatt.measure("fed", keep=False, meter=False, exactness=exactness) as session:
        for i in range(700):
            x = torch.ones(4, 6)
            optimizer.zero_grad()
            with torch.autocast("cpu", enabled=autocast and i >= 503):
                loss = model(change(x) if i >= 503 else x).float().square().mean()
            loss.backward()
            optimizer.step()
    return session.run


@pytest.mark.parametrize("given", GIVEN)
def test_what_a_well_known_model_is_given_is_exact_or_told(given: str) -> None:
    counted, replayed = fed("always", GIVEN[given]), fed("auto", GIVEN[given])
    same = bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")
    assert same if given == "is less" else replayed.replay.disagreed == {"marks of calls": 1}


def test_autocast_is_heard_of_at_once() -> None:
    counted, replayed = (fed(exactness, lambda x: x, autocast=True) for exactness in ("always", "auto"))
    assert bitwatt.totals(replayed, "bops").by("phase", "op") == bitwatt.totals(counted, "bops").by("phase", "op")
    assert replayed.replay.disagreed == {}


def embedded(exactness: str, steps: int, when: int) -> Any:
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3))
    with bitwatt.measure("direct", keep=False, meter=False, exactness=exactness) as session, torch.no_grad():
        for i in range(steps):
            model(torch.zeros(5, dtype=torch.int64 if i < when else torch.int32))
    return session.run


def test_an_input_of_another_dtype_is_heard_of() -> None:
    counted, replayed = embedded("always", STEPS, 110), embedded("auto", STEPS, 110)
    assert replayed.replay.disagreed == {}
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")


def test_in_a_program_that_is_well_known_it_is_found_and_told() -> None:
    """A model with parameters does the same with indices of either kind; what differs are the bytes read."""
    counted, replayed = embedded("always", 700, 503), embedded("auto", 700, 503)
    assert replayed.replay.disagreed == {"marks of calls": 1}
    assert bitwatt.totals(replayed).total == bitwatt.totals(counted).total


def test_a_part_that_a_model_traces_while_it_is_called_has_its_layers_in_the_trace() -> None:
    traced: list[Any] = []
    asked: list[bool] = []

    class Tracing(Own):
        def forward(self, x: Tensor) -> Tensor:
            if asked:
                asked.clear()
                traced.append(torch.jit.trace(nn.Sequential(*self), x, check_trace=False))
            return super().forward(x)

    train(lambda _: asked.append(True), Tracing)
    assert len({node.scopeName() for node in traced[0].inlined_graph.nodes() if node.kind() == "aten::linear"}) == 2


def multiply(*_: Any) -> None:
    torch.ones(4, 4) @ torch.ones(4, 4)


#: What a program does in one step when all its steps have long been known: before it, or otherwise in it.
BEFORE: dict[str, Callable[[nn.Sequential, Any], Any]] = {
    "evaluates": lambda model, _: torch.no_grad()(model)(torch.ones(4, 6)),
    "evaluates three times": lambda model, _: [torch.no_grad()(model)(torch.ones(4, 6)) for _ in range(3)],
    "freezes a layer": lambda model, _: model[0].requires_grad_(False),
    "takes a layer out": lambda model, _: model.pop(2),
    "sets it to evaluate": lambda model, _: model.eval(),
    "hangs something on steps": lambda _, optimizer: optimizer.register_step_pre_hook(multiply),
    "forgets the optimizer's state": lambda _, optimizer: optimizer.state.clear(),
    "adds a group": lambda _, optimizer: optimizer.add_param_group({"params": [nn.Parameter(torch.ones(2))]}),
}
INSIDE = (
    "a phase around it", "a phase around the call", "a phase around backward", "a phase around the step",
    "keeps gradients", "goes back twice", "goes back to one weight", "takes a gradient away",
    "takes all parameters from the optimizer", "takes no step",
)  # fmt: skip


def well_known(exactness: str, what: str) -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def phase(where: str, now: str) -> Any:
        return bitwatt.phase("odd") if now == f"a phase around {where}" else contextlib.nullcontext()

    def step(now: str) -> None:
        if now != "keeps gradients":
            optimizer.zero_grad()
        with phase("the call", now):
            out = model(torch.ones(4, 6))
        loss = out.square().mean()
        with phase("backward", now):
            inputs = [model[0].weight] if now == "goes back to one weight" else None
            loss.backward(retain_graph=now == "goes back twice", inputs=inputs)
        if now == "goes back twice":
            loss.backward()
        if now == "takes a gradient away":
            model[0].weight.grad = None
        if now == "takes all parameters from the optimizer":
            optimizer.param_groups[0]["params"].clear()
        with phase("the step", now):
            if now != "takes no step":
                optimizer.step()

    with bitwatt.measure("known", keep=False, meter=False, exactness=exactness) as session:
        for i in range(600):
            now = what if i == 503 else ""
            BEFORE.get(now, lambda *_: None)(model, optimizer)
            with phase("it", now):
                step(now)
    return session.run


@pytest.mark.parametrize("what", [*BEFORE, *INSIDE])
def test_what_a_well_known_program_does_once_is_exact(what: str) -> None:
    """But for where the tensor was made that is given to the call: that is code between events."""
    counted, replayed = (well_known(exactness, what) for exactness in ("always", "auto"))
    flops = [{at: n for at, n in bitwatt.totals(run).by("phase", "op").items() if n} for run in (counted, replayed)]
    assert flops[0] == flops[1]
    assert replayed.replay.disagreed == {}
    assert replayed.replay.replayed > 500
