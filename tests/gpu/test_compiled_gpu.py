"""On a CUDA device: compiled and graphed programs stay as fast as they are, and count as the eager ones do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import bitwatt
from bitwatt.backends.torch.replay import learner
from bitwatt.records import Run
from stepping import STEPS, measured

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
Step = Callable[[], Any]
ROWS = 64


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(learner, "_SHARE", float("inf"))  # code between events is watched: nothing is assumed
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def looked() -> tuple[int, int, int]:
    """Graphs, frames and breaks that dynamo has made so far."""
    from torch._dynamo import convert_frame
    from torch._dynamo.utils import counters

    breaks = sum(counters["graph_break"].values())
    return counters["stats"]["unique_graphs"], convert_frame.FRAME_COUNTER, breaks


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 16)).cuda()


def data() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(ROWS, 64, device="cuda"), torch.zeros(ROWS, dtype=torch.long, device="cuda")


def assert_alike(run: Run, eager: Run) -> None:
    """The same arithmetic by phase and layer. A few calls differ by rights: an optimizer that was once compiled keeps
    its step counts on the device, and autograd takes or copies a gradient as references allow."""
    for cost in ("macs", "flops"):
        found, expected = (bitwatt.totals(one, cost).by("phase", "scope") for one in (run, eager))
        for place in expected:
            if place[0] != "other":  # where the program was made
                assert found[place] == pytest.approx(expected[place], rel=1e-3)


def training(compiled: Callable[[Any], Any]) -> Step:
    model = mlp()
    run, optimizer = compiled(model), torch.optim.AdamW(model.parameters())
    x, y = data()

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(run(x), y).backward()
        optimizer.step()

    return step


def inference(compiled: Callable[[Any], Any]) -> Step:
    model, (x, _) = compiled(mlp().eval()), data()

    def step() -> None:
        with torch.no_grad():
            model(x).argmax(1)

    return step


def compiled_optimizer(compiled: Callable[[Any], Any]) -> Step:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    update, (x, y) = compiled(optimizer.step), data()

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        update()

    return step


def whole_step(compiled: Callable[[Any], Any]) -> Step:
    return compiled(training(lambda target: target))  # type: ignore[no-any-return]


def attention(compiled: Callable[[Any], Any]) -> Step:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device="cuda")
    attend = compiled(flex_attention)
    q = torch.randn(1, 2, 256, 64, device="cuda", requires_grad=True)

    def step() -> None:
        q.grad = None
        attend(q, q, q, block_mask=mask).sum().backward()

    return step


WHOLE = {"fullgraph": True}
GRAPHED = {"mode": "reduce-overhead"}


@pytest.mark.parametrize(
    ("program", "options"),
    [
        (training, {}),
        (training, WHOLE),
        (training, GRAPHED),
        (inference, WHOLE),
        (inference, GRAPHED),
        (compiled_optimizer, {}),
        (whole_step, {}),
        (attention, WHOLE),
    ],
)
def test_compiled_programs_stay_compiled_and_count_as_eager(program: Any, options: dict[str, Any]) -> None:
    step = program(lambda target: torch.compile(target, **options))
    for _ in range(4):
        step()
    before = looked()
    run = measured(step)
    step()
    assert looked() == before
    assert run.replay is not None
    assert run.replay.replayed > STEPS // 2
    assert not run.replay.disagreed
    eager = program(lambda target: target)
    for _ in range(4):
        eager()
    missing = bitwatt.totals(run).missing
    if program is attention and missing:  # a look may begin where the forward has run compiled already: it says so
        assert missing == {"torch.compile.backward": 1}
    else:
        assert missing == {}
        assert_alike(run, measured(eager, "always"))


def test_compiled_inside_the_session_with_cuda_graphs() -> None:
    with bitwatt.measure(keep=False) as session:
        step = training(lambda target: torch.compile(target, mode="reduce-overhead"))
        for _ in range(3 * STEPS):
            step()
    before = looked()
    step()
    assert looked() == before
    assert session.run is not None
    eager = training(lambda target: target)
    assert_alike(session.run, measured(eager, "always", 3 * STEPS))


def test_results_are_those_of_the_program_alone() -> None:
    def losses(watched: bool) -> list[float]:
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = mlp()
        run, optimizer = torch.compile(model, mode="reduce-overhead"), torch.optim.SGD(model.parameters(), lr=0.01)
        found = []
        x, y = torch.randn(ROWS, 64, device="cuda"), data()[1]
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss = F.cross_entropy(run(x), y)
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    alone = losses(False)
    with bitwatt.measure(keep=False):
        watched = losses(True)
    assert watched == pytest.approx(alone, rel=1e-4)


def test_a_training_step_in_a_cuda_graph() -> None:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    x, y = data()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    def graphed() -> torch.cuda.CUDAGraph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            step()
        return graph

    with bitwatt.measure(keep=False) as session:
        graph = graphed()
        for _ in range(STEPS):
            graph.replay()
    torch.cuda.synchronize()
    assert session.run is not None
    assert session.run.replay is not None
    assert session.run.replay.replayed > STEPS // 2
    assert bitwatt.totals(session.run).missing == {}
    eager = measured(step, "always", STEPS + 3)
    for cost in ("macs", "flops"):
        found, expected = bitwatt.totals(session.run, cost).by("phase"), bitwatt.totals(eager, cost).by("phase")
        for phase in ("forward", "loss", "backward", "optimizer"):
            assert found[phase] == expected[phase]


def test_a_graph_of_a_backward_computes_what_it_did() -> None:
    """Counting under capture puts nothing of its own into the graph."""

    def weights(watched: bool) -> torch.Tensor:
        torch.manual_seed(0)
        model, (x, y) = mlp(), data()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        for _ in range(5):
            graph.replay()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    alone = weights(False)
    with bitwatt.measure(keep=False):
        watched = weights(True)
    assert torch.allclose(alone, watched)


def test_graphed_callables() -> None:
    x, y = data()
    x.requires_grad_()

    def program(graphed: bool) -> Step:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        run = torch.cuda.make_graphed_callables(model, (x,)) if graphed else model

        def step() -> None:
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(run(x), y).backward()
            optimizer.step()

        return step

    with bitwatt.measure(keep=False) as session:
        step = program(True)
        for _ in range(STEPS):
            step()
    assert session.run is not None
    eager = measured(program(False), "always")
    found, expected = bitwatt.totals(session.run, "macs").by("phase"), bitwatt.totals(eager, "macs").by("phase")
    warm_up = 3  # torch.cuda.make_graphed_callables runs forward and backward so often before it captures
    assert found["forward"] == expected["forward"] // STEPS * (STEPS + warm_up)
    assert found["backward"] == expected["backward"] // STEPS * (STEPS + warm_up)
    assert bitwatt.totals(session.run).missing == {}


def test_a_graph_captured_before_the_session_is_named() -> None:
    model, (x, _) = mlp().eval(), data()
    with torch.no_grad():
        model(x)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            model(x)
    run = measured(lambda: graph.replay())
    assert bitwatt.totals(run).missing == {"torch.cuda.CUDAGraph.replay": STEPS}
