"""torch.compile, CUDA graphs, export, jit: they stay what they are in a session, and are counted all the same."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from compiled_programs import BROKEN, PROGRAMS, Step, data, mlp, trained
from torch import nn

import bitwatt
from bitwatt.backends.torch import graphs
from bitwatt.backends.torch.replay import learner
from bitwatt.records import Run
from stepping import STEPS, calls, measured

dynamo = pytest.importorskip("torch._dynamo")
#: Of the forward of mlp() on 8 rows.
MACS = 8 * (12 * 16 + 16 * 4)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(learner, "_SHARE", float("inf"))  # code between events is watched: nothing is assumed
    dynamo.reset()
    yield
    dynamo.reset()


class Backend:
    """Compiles as aot_eager does, and counts how many graphs it compiled and how often they ran."""

    def __init__(self) -> None:
        self.graphs = self.runs = 0

    def __call__(self, graph: Any, inputs: Any) -> Any:
        from torch._dynamo.backends.debugging import aot_eager

        self.graphs += 1
        compiled = aot_eager(graph, inputs)

        def run(*args: Any) -> Any:
            self.runs += 1
            return compiled(*args)

        return run

    def compiler(self, **options: Any) -> Callable[[Any], Any]:
        return lambda target: torch.compile(target, backend=self, **options)

    @property
    def looked(self) -> tuple[int, int, int]:
        """Graphs compiled, frames that dynamo looked at, times that it gave a graph up."""
        from torch._dynamo import convert_frame
        from torch._dynamo.utils import counters

        return self.graphs, convert_frame.FRAME_COUNTER, sum(counters["graph_break"].values())


def eagerly(name: str) -> Counter[tuple[str, str, str]]:
    step = {**PROGRAMS, **BROKEN}[name](lambda target: target)
    step()
    step()
    return calls(measured(step, "always"))


def replays(run: Run) -> tuple[int, int]:
    assert run.replay is not None
    assert not run.replay.disagreed
    assert not run.replay.assumed
    return run.replay.counted, run.replay.replayed


@pytest.mark.parametrize("options", [{}, {"fullgraph": True}, {"dynamic": True}], ids=["plain", "fullgraph", "dynamic"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_compiled_before_stays_compiled_and_counts_as_eager(name: str, options: dict[str, bool]) -> None:
    backend = Backend()
    step = PROGRAMS[name](backend.compiler(**options))
    step()
    step()
    before, runs = backend.looked, backend.runs
    run = measured(step)
    counted, replayed = replays(run)
    assert calls(run) == eagerly(name)
    assert replayed > counted
    assert backend.runs - runs >= STEPS // 2
    runs = backend.runs
    step()
    assert backend.looked == before
    assert backend.runs > runs


@pytest.mark.parametrize("name", BROKEN)
def test_graphs_that_break_by_themselves_break_no_more_often(name: str) -> None:
    backend = Backend()
    step = BROKEN[name](backend.compiler())
    step()
    step()
    before, runs = backend.looked, backend.runs
    run = measured(step)
    assert calls(run) == eagerly(name)
    assert backend.runs - runs >= STEPS // 2
    step()
    assert backend.looked == before


@pytest.mark.parametrize("fullgraph", [False, True])
def test_what_is_compiled_inside_compiles_once_and_lives_on(fullgraph: bool) -> None:
    backend = Backend()
    with bitwatt.measure(keep=False) as session:
        step = PROGRAMS["training"](backend.compiler(fullgraph=fullgraph))
        for _ in range(STEPS):
            step()
    assert session.run is not None
    assert backend.runs == replays(session.run)[1] > STEPS // 2
    before = backend.looked
    step()
    measured(step)
    step()
    assert backend.looked == before
    assert backend.graphs == 1


def test_what_is_compiled_afterwards_knows_nothing_of_the_session() -> None:
    measured(PROGRAMS["training"](lambda target: target))
    backend = Backend()
    step = PROGRAMS["training"](backend.compiler(fullgraph=True))
    step()
    step()
    assert (backend.graphs, backend.runs) == (1, 2)


def test_many_models_compiled_inside_share_no_more_than_they_do_alone() -> None:
    def compile_many(backend: Backend) -> None:
        for i in range(dynamo.config.recompile_limit + 3):
            forward = eval(compile(f"lambda self, x: self[0](x) + {i}", f"{__file__}.{i}", "eval"))
            own = type("Own", (nn.Sequential,), {"forward": forward})
            model = torch.compile(own(nn.Linear(12, 4)), backend=backend, fullgraph=True)
            for _ in range(6):
                with torch.no_grad():
                    model(data()[0])

    alone, watched = Backend(), Backend()
    compile_many(alone)
    dynamo.reset()
    with bitwatt.measure(keep=False):
        compile_many(watched)
    assert watched.graphs == alone.graphs == dynamo.config.recompile_limit + 3


def test_a_model_compiled_in_place() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = mlp()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)  # type: ignore[no-any-return]

    def program(compiled: bool) -> Step:
        model = Own()
        if compiled:
            model.compile(backend=backend)
        step = trained(model, torch.optim.SGD(model.parameters(), lr=0.1))
        step()
        step()
        return step

    backend = Backend()
    step = program(True)
    before = backend.looked
    assert calls(measured(step)) == calls(measured(program(False), "always"))
    assert backend.looked == before
    assert backend.graphs == 1
    assert backend.runs > STEPS // 2


def test_always_runs_eagerly_and_compiles_nothing() -> None:
    backend = Backend()
    step = PROGRAMS["training"](backend.compiler(fullgraph=True))
    step()
    step()
    assert calls(measured(step, "always")) == eagerly("training")
    assert (backend.graphs, backend.runs) == (1, 2)
    step()
    assert (backend.graphs, backend.runs) == (1, 3)


def test_the_stance_of_the_program_is_its_own() -> None:
    backend = Backend()
    step = PROGRAMS["training"](backend.compiler())
    with torch.compiler.set_stance("force_eager"):
        run = measured(step)
    assert backend.graphs == 0
    assert replays(run)[1] > STEPS // 2
    step()
    assert backend.graphs == 1


def test_another_shape_compiles_as_it_would_alone() -> None:
    def program(backend: Backend) -> Step:
        model = torch.compile(mlp().eval(), backend=backend)
        rows = iter([8] * 6 + [5] * 12 + [7] * 12 + [8] * 12)

        def step() -> None:
            with torch.no_grad():
                model(torch.ones(next(rows), 12))

        return step

    alone, watched = Backend(), Backend()
    step = program(alone)
    for _ in range(42):
        step()
    dynamo.reset()
    run = measured(program(watched), steps=42)
    assert watched.graphs == alone.graphs
    assert replays(run)[1] > 21


def test_a_model_that_changes_is_counted_as_it_is_now() -> None:
    def program(compiled: Callable[[Any], Any]) -> Step:
        model = mlp()
        run = compiled(lambda x, y: F.cross_entropy(model(x), y))
        done = iter(range(100))

        def step() -> None:
            if next(done) == 10:
                model[0].weight.requires_grad_(False)
            run(*data()).backward()

        return step

    counted = calls(measured(program(lambda target: target), "always", 24))
    assert calls(measured(program(Backend().compiler()), "auto", 24)) == counted


def test_an_exception_in_compiled_code_leaves_everything_in_order() -> None:
    backend, model = Backend(), mlp().eval()
    run = torch.compile(lambda x: model(x), backend=backend)
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        for i in range(20):
            if i % 7 == 6:
                with pytest.raises((RuntimeError, dynamo.exc.TorchDynamoException), match=r"8x13|12"):
                    run(torch.ones(8, 13))
            else:
                run(torch.ones(8, 12))
    assert session.run is not None
    assert bitwatt.totals(session.run, "macs").by("phase")["inference"] == 18 * MACS


def test_compiled_autograd_is_counted_as_backward() -> None:
    def program(compiled: bool) -> Step:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step() -> None:
            x, y = data()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if compiled:
                with dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager")):
                    loss.backward()
            else:
                loss.backward()
            optimizer.step()

        return step

    run = measured(program(True))
    assert calls(run) == calls(measured(program(False), "always"))
    assert replays(run)[1] > STEPS // 2


def test_a_backward_that_was_compiled_before_it_is_counted_is_named() -> None:
    model = torch.compile(mlp(), backend="aot_eager")
    x, y = data()
    loss = F.cross_entropy(model(x), y)
    with bitwatt.measure(keep=False) as session:
        loss.backward()
    assert session.run is not None
    assert bitwatt.totals(session.run).missing == {"torch.compile.backward": 1}


def test_a_thread_of_a_pool_that_is_older_than_the_session() -> None:
    from concurrent.futures import ThreadPoolExecutor

    backend, model = Backend(), mlp().eval()
    run = torch.compile(lambda x: model(x), backend=backend)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(threading.get_ident).result()
        with bitwatt.measure(keep=False) as session:
            pool.submit(lambda: run(data()[0])).result()
    assert session.run is not None
    assert bitwatt.totals(session.run, "macs").total == MACS


@pytest.mark.parametrize("name", ["training", "a_whole_step", "inference"])
def test_inductor(name: str) -> None:
    step = {**PROGRAMS, **BROKEN}[name](torch.compile)
    step()
    step()
    before = Backend().looked
    run = measured(step)
    step()
    assert Backend().looked == before
    assert calls(run) == eagerly(name)


def test_attention_with_a_score_of_its_own() -> None:
    from torch.nn.attention.flex_attention import flex_attention

    def program(compiled: Callable[[Any], Any]) -> Step:
        attend, q, k, v = compiled(flex_attention), *torch.ones(3, 1, 2, 64, 16).unbind()

        def step() -> None:
            with torch.no_grad():
                attend(q, k, v, score_mod=lambda score, b, h, i, j: score + i - j)

        return step

    step = program(torch.compile)
    step()
    step()
    before = Backend().looked
    run = measured(step)
    assert Backend().looked == before
    assert replays(run)[1] > STEPS // 2
    assert calls(run) == calls(measured(program(lambda target: target), "always"))
    assert bitwatt.totals(run, "macs").total == STEPS * 2 * 2 * 64 * 64 * 16


def test_operators_that_compile_themselves() -> None:
    x = torch.ones(4, 4)

    def step() -> None:
        torch.cond(x.sum() > 0, lambda t: t @ t, lambda t: t + 1, (x,))

    assert calls(measured(step)) == calls(measured(step, "always"))


# -- export and jit

SERIALISED: dict[str, Callable[[nn.Module], Any]] = {
    "export": lambda net: torch.export.export(net, (torch.ones(8, 12),)).module(),
    "script": torch.jit.script,
    "trace": lambda net: torch.jit.trace(net, torch.ones(8, 12)),
    "fx": torch.fx.symbolic_trace,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("how", SERIALISED)
def test_exported_and_scripted_models_train_and_replay(how: str) -> None:
    def program(make: Callable[[nn.Module], Any]) -> Step:
        model = make(mlp())
        step = trained(model, torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in range(3):  # TorchScript optimises itself in the first
            step()
        return step

    run = measured(program(SERIALISED[how]))
    assert replays(run)[1] > STEPS // 2
    assert calls(run) == calls(measured(program(SERIALISED[how]), "always"))
    eager = measured(program(lambda net: net), "always")
    for found in ("forward", "backward", "optimizer"):
        assert bitwatt.totals(run, "macs").by("phase")[found] == bitwatt.totals(eager, "macs").by("phase")[found]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_frozen_script_replays() -> None:
    model = torch.jit.freeze(torch.jit.script(mlp().eval()))
    with torch.no_grad():
        run = measured(lambda: model(torch.ones(8, 12)), steps=90)
    assert replays(run)[1] > 40
    assert bitwatt.totals(run, "macs").total == 90 * MACS


def test_a_package_of_aot_inductor_is_named(tmp_path: Any) -> None:
    inductor = pytest.importorskip("torch._inductor")
    program = torch.export.export(mlp().eval(), (torch.ones(8, 12),))
    package = inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "mlp.pt2"))
    model = inductor.aoti_load_package(package)
    run = measured(lambda: model(torch.ones(8, 12)))
    assert bitwatt.totals(run).missing == {"torch.AOTICompiledModel": STEPS}


def test_inference_mode_around_each_step_leaves_the_dispatcher_as_it_was() -> None:
    model = mlp().eval()

    def step() -> None:
        with torch.inference_mode():
            model(torch.randn(8, 12))

    assert replays(measured(step))[1] > STEPS // 2
    torch.randn(2)


# -- CUDA graphs: here the bookkeeping, on a device tests/gpu/test_compiled_gpu.py


class Graph:
    """Stands for torch.cuda.CUDAGraph where there is no CUDA: capturing runs, replaying does nothing."""

    def capture_begin(self, *_: Any, **__: Any) -> None:
        pass

    def capture_end(self) -> None:
        pass

    def replay(self) -> None:
        pass


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    return Graph()


def capture(graph: Graph, step: Step) -> None:
    graph.capture_begin()
    step()
    graph.capture_end()


@pytest.mark.parametrize("exactness", ["always", "auto"])
def test_a_captured_step_counts_when_it_is_replayed(graph: Graph, exactness: str) -> None:
    model = mlp()
    step = trained(model, torch.optim.SGD(model.parameters(), lr=0.1))
    eager = calls(measured(step, "always", steps=22))
    with bitwatt.measure(keep=False, exactness=exactness) as session:
        step()
        step()  # warm-up runs
        capture(graph, step)
        for _ in range(20):
            graph.replay()
    assert session.run is not None
    assert calls(session.run) == eager
    if exactness == "auto":
        assert session.run.replay is not None
        assert session.run.replay.replayed >= 15


def test_a_capture_alone_is_no_work(graph: Graph) -> None:
    model = mlp()
    with bitwatt.measure(keep=False) as session:
        capture(graph, trained(model, torch.optim.SGD(model.parameters(), lr=0.1)))
    assert session.run is not None
    assert bitwatt.totals(session.run).total == 0


def test_a_graph_outlives_the_session_that_saw_it_captured(graph: Graph) -> None:
    model = mlp().eval()
    with bitwatt.measure(keep=False), torch.no_grad():
        capture(graph, lambda: model(torch.ones(8, 12)))
    run = measured(lambda: graph.replay())
    assert bitwatt.totals(run, "macs").by("phase")["inference"] == STEPS * MACS


def test_a_graph_that_was_captured_unseen_is_named(graph: Graph) -> None:
    model = mlp()
    capture(graph, lambda: model(torch.ones(8, 12)))
    run = measured(lambda: graph.replay())
    assert bitwatt.totals(run).missing == {"torch.cuda.CUDAGraph.replay": STEPS}


def test_capturing_while_the_mode_rests_sees_everything(graph: Graph) -> None:
    model = mlp()
    step = trained(model, torch.optim.SGD(model.parameters(), lr=0.1))
    with bitwatt.measure(keep=False) as session:
        for _ in range(12):
            step()
        capture(graph, step)
        for _ in range(12):
            graph.replay()
    assert session.run is not None
    assert bitwatt.totals(session.run).missing == {}
    assert bitwatt.totals(session.run, "macs").by("phase")["forward"] == 24 * MACS


def test_graphs_inside_the_calls_of_a_model(graph: Graph) -> None:
    """As torch.cuda.make_graphed_callables has it: one graph for the forward."""
    inner = mlp().eval()

    class Graphed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            graph.replay()
            return x

    with bitwatt.measure(keep=False) as session, torch.no_grad():
        capture(graph, lambda: inner(torch.ones(8, 12)))
        model = Graphed()
        for _ in range(20):
            model(torch.ones(8, 12))
    assert session.run is not None
    assert session.run.replay is not None
    assert bitwatt.totals(session.run, "macs").by("phase")["inference"] == 20 * MACS
    assert bitwatt.totals(session.run, "macs").total == 20 * MACS
    assert session.run.replay.replayed >= 15


def test_the_class_is_as_it_was_afterwards(graph: Graph) -> None:
    before = dict(vars(Graph))
    with bitwatt.measure(keep=False):
        assert vars(Graph)["replay"] is not before["replay"]
    assert dict(vars(Graph)) == before
    assert graph not in graphs._captured
