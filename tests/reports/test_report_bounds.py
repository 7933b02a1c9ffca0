"""What holds phases up: in every format, of made-up runs of each kind and of real ones on this processor."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import bitwatt
from bitwatt.config import Settings, settings
from bitwatt.ledger import Row
from bitwatt.observed import Observed
from bitwatt.readings import Device, Energy, Metered
from bitwatt.records import Op, Rank, Run, TensorSpec
from bitwatt.reports.bounds import Bounds
from bitwatt.reports.model import View
from factories import add_op, make_run, mm_op

#: 1 TFLOP/s and 100 GB/s: 10 FLOP for each byte at the ridge.
PEAKS = settings("/", peaks={"*": {"fp32": 1e12, "bf16": 1e12, "bandwidth": 1e11}})
LARGE = mm_op(1000, 1000, 1000)  # 2 GFLOP, 12 MB
WIDE = add_op(1_000_000)  # 1 MFLOP, 8 MB


def bounds(run: Run, told: Settings = PEAKS) -> Bounds:
    found = View(run, settings=told).bounds
    assert found is not None
    return found


def said(run: Run, told: Settings = PEAKS, **options: Any) -> str:
    text = bitwatt.report(run, width=100, settings=told, **options)
    return " ".join(text.partition("\nBottleneck: ")[2].partition("\n\n")[0].split())


def mixed(**fields: Any) -> Run:
    """Products for 1 s, copies for 2 s, small ops for 1 s, loading for 1 s."""
    rows = [
        Row("forward", "", LARGE, 400), Row("backward", "", WIDE, 20_000), Row("optimizer", "", add_op(4), 25_000),
        Row("preprocess", "", add_op(10), 10),
    ]  # fmt: skip
    seconds = {"forward": 1.0, "backward": 2.0, "optimizer": 1.0, "preprocess": 1.0}
    return make_run(rows, **{"seconds": 5.0, "phase_seconds": seconds, **fields})


def on_gpu(idle: float, **fields: Any) -> Run:
    gpu = Energy(Device("gpu:1", "gpu", "A GPU"), 100.0, "measured", "NVML", 5.0, idle_seconds=5 * idle)
    return mixed(device_seconds=mixed().phase_seconds, meter=Metered(5.0, (gpu,)), **fields)


def test_each_phase_is_classified_with_its_evidence() -> None:
    found = bounds(mixed())
    words = {"forward": "compute", "backward": "memory", "optimizer": "launch", "preprocess": "input"}
    assert {phase: one.bound for phase, one in found.phases.items()} == words
    assert found.phases["forward"].evidence["of_peak"] == pytest.approx(0.8)
    assert found.phases["backward"].evidence["of_bandwidth"] == pytest.approx(0.8)
    assert found.shares() == pytest.approx({"memory": 0.4, "compute": 0.2, "launch": 0.2, "input": 0.2})
    assert found.run.bound == "memory"


def test_every_format_tells_it() -> None:
    text = bitwatt.report(mixed(), settings=PEAKS)
    rows = {line.split()[0]: line for line in text.splitlines() if line[:1].isalpha()}
    assert [rows[phase].split()[-2:] for phase in ("forward", "optimizer")][1] == ["s", "launch"]
    assert "Bound by" in rows["Phases"]
    told = said(mixed())
    assert told.startswith("memory-bound 40.0 % of 5 s in phases, compute-bound 20.0 %")
    assert "forward: compute-bound: 167 FLOP/B is above the ridge at 10; 80.0 % of the peak" in told
    assert "preprocess: input-bound: loading and preparing data took all of the time" in told
    for format in ("markdown", "html"):
        assert "memory-bound 40.0 % of 5 s in phases" in bitwatt.report(mixed(), format=format, settings=PEAKS)
    document = json.loads(bitwatt.report(mixed(), format="json", settings=PEAKS))["bottleneck"]
    assert document["by_phase"]["backward"]["bound"] == "memory"
    assert document["by_phase"]["backward"]["clock"] == "host"
    assert document["shares"]["input"] == pytest.approx(0.2)
    assert "Bottleneck" not in bitwatt.report(mixed(), by="phase", settings=PEAKS)


def test_unknown_is_said_with_why_and_what_helps() -> None:
    unknown = make_run([Row("forward", "", LARGE, 400)], phase_seconds={"forward": 1.0})
    told = said(unknown, settings("/"))
    assert told.startswith("unknown: no peak is known for 'A Processor'; bitwatt doctor --probe measures it")
    assert "Bound by" not in bitwatt.report(unknown, settings=settings("/"))
    far = make_run([Row("forward", "", LARGE, 10)], phase_seconds={"forward": 1.0})
    assert "far from both roofs" in said(far)
    assert "(at best 2.0 % of the peak, 0.1 % of the bandwidth)" in said(far)
    assert View(make_run([Row("forward", "", LARGE, 1)])).bounds is None  # nothing was timed


def test_other_ranks_are_waited_for_where_their_messages_are() -> None:
    message = Op("c10d.allreduce_", (("tensors", (TensorSpec((1000,)),)),), (TensorSpec((1000,)),))
    rows = [Row("forward", "", LARGE, 400), Row("backward", "", LARGE, 100), Row("backward/reduce", "", message, 10)]
    rank = Rank(0, 2, "job", comm_seconds={"0": 0.7})
    run = make_run(rows, phase_seconds={"forward": 1.0, "backward": 1.0}, rank=rank)
    found = bounds(run)
    assert found.phases["backward"].bound == "communication"
    assert found.phases["backward"].evidence["communication_share"] == pytest.approx(0.7)
    assert found.phases["forward"].bound == "compute"
    assert "it waited for other ranks 70.0 % of the time" in said(run)
    rows = [line.split() for line in bitwatt.report(run, by="phase", settings=PEAKS).splitlines() if line[:1].isalpha()]
    assert [row[0] for row in rows if "communication" in row] == ["backward"]


def test_a_gpu_that_its_sensor_saw_busy_is_not_held_up_by_launching() -> None:
    waiting, busy = bounds(on_gpu(0.6)), bounds(on_gpu(0.05))
    assert waiting.phases["optimizer"].bound == "launch"
    assert busy.phases["optimizer"].bound == "memory"
    assert waiting.run.bound == "launch"  # idle for 60 %, of which 20 % was loading
    assert busy.run.bound == "memory"
    assert set(busy.clocks.values()) == {"gpu"}
    assert "GPU idle: 60.0 % of the run, as its own sensor saw" in said(on_gpu(0.6))


def test_what_ran_on_a_gpu_is_not_held_against_the_processor() -> None:
    one_gpu = settings("/", peaks={"A GPU": {"fp32": 1e12, "bandwidth": 1e11}})
    found = bounds(on_gpu(0.1), one_gpu)
    assert found.phases["forward"].bound == "compute"
    plain = bounds(mixed(), one_gpu)
    assert plain.phases["forward"].why == "no peak is known for 'A Processor'"
    # a phase of the user's that called no model: the GPU's own clock does not know it
    run = make_run([Row("multiply", "", LARGE, 400)], device_seconds={"other": 2.0}, phase_seconds={"multiply": 1.0},
                   meter=on_gpu(0.1).meter, observed=Observed(phases={"multiply": (1, 1.0)}))  # fmt: skip
    assert "how long the GPU took for it is not known" in bounds(run, one_gpu).phases["multiply"].why


def test_what_lies_between_phases_is_none_and_a_busy_machine_is_told() -> None:
    seconds = {**mixed().phase_seconds, "other": 20.0}
    run = mixed(phase_seconds=seconds, seconds=25.0, meter=Metered(25.0, usage={"cpu_wait_seconds": 10.0}))
    assert bounds(run).shares() == pytest.approx(bounds(mixed()).shares())
    assert bounds(run).phases["other"].bound == "unknown"
    assert "memory-bound 40.0 % of 5 s in phases" in said(run)
    assert "waited for a processor: 40.0 % of the run: others had it" in said(run)


torch = pytest.importorskip("torch")


class Slow(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.01)
        return torch.ones(64)


def test_a_real_run_with_a_slow_loader_is_held_up_by_its_input() -> None:
    model = torch.nn.Linear(64, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train() -> None:
        for batch in torch.utils.data.DataLoader(Slow(), batch_size=4):
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()

    train()  # what torch imports on the first step is no part of it
    with bitwatt.measure("slow", keep=False, meter=False) as session:
        train()
    found, waited = bounds(session.run), session.run.phase_seconds["preprocess"]
    assert waited >= 0.4  # 40 x 10 ms
    assert found.phases["preprocess"].bound == "input"
    assert found.shares()["input"] == pytest.approx(waited / found.whole)
    assert found.run.bound == next(iter(found.shares()))  # that of most of the time, on whatever it went


def test_real_products_are_held_up_by_arithmetic_and_chains_by_memory() -> None:
    a, c = torch.randn(1024, 1024), torch.randn(1 << 22)

    def chain() -> Any:
        return torch.relu(c + 1.0) * 0.5

    a @ a, chain()
    with bitwatt.measure("real", keep=False, meter=False) as session:
        with bitwatt.phase("multiply"):
            for _ in range(20):
                a @ a
        with bitwatt.phase("chain"):
            for _ in range(40):
                chain()
    # Roofs of this machine as it was then, under whatever load: both rates by hand.
    spent = session.run.phase_seconds
    roofs = {"fp32": 20 * 2 * 1024**3 / spent["multiply"], "bandwidth": 40 * 6 * c.nbytes / spent["chain"]}
    found = bounds(session.run, settings("/", peaks={"*": roofs}))
    assert found.phases["multiply"].bound == "compute", found.phases
    assert found.phases["chain"].bound == "memory", found.phases
