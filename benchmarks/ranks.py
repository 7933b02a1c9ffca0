"""What ranks cost: while they run, and when their runs are joined.

  python benchmarks/ranks.py [ranks ...]        (default: 16 64 256 1024 4096 10000)
  python benchmarks/ranks.py hooks

Joining: ranks of a recorded run, copied as often as asked, in seconds and microseconds per rank. Reading is linear
where the time per rank stays the same. A recorded rank trains a small transformer for 900 steps.

Hooks: microseconds that ours add to one call of a process group, one wait, one backward under DDP. The median over
blocks of calls with and without, in turn; "nothing" is the same code twice.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import torch
from torch import nn

import bitwatt
from bitwatt import store
from bitwatt.backends.torch.collectives import Collectives
from bitwatt.fingerprint import summary
from bitwatt.ranks.arrivals import Recorder
from bitwatt.ranks.shares import shares
from bitwatt.records import Axis, Rank, Run, spread
from bitwatt.reports.ranks import render


def recorded() -> Run:
    """One rank: the ledger is real, its waits are those of a job in which one rank is late now and then."""
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    net = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    optimizer = torch.optim.AdamW(net.parameters())
    with bitwatt.measure("recorded", keep=False) as session:
        for _ in range(3):
            net(torch.randn(4, 16, 64)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return session.run


def ranks(run: Run, world: int, folder: Path) -> None:
    told = summary(run)
    contents = dict.fromkeys((row.op for row in run.ledger), 1)
    for number in range(world):
        recorder, late = Recorder(), 0.03 if number == world // 2 else 0.0
        for step in range(900):
            extra = late if step % 3 == 0 else 0.0
            recorder.add(
                0.02 + extra + (number * 31 + step * 17) % 97 * 1e-6, 0.005 + 0.03 * (not extra and step % 3 == 0)
            )
        facts = Rank(
            number, world, "job", number % 8, f"node{number // 8}", f"machine{number // 8}", f"{number}@1",
            (Axis("data", spread(range(world)), "DistributedDataParallel"),), {"0": spread(range(world))}, {"0": 4.5},
            arrivals=recorder.packed(), contents=contents,
        )  # fmt: skip
        one = replace(run, id=f"r{number:06}", rank=facts)
        if number == 0:
            told = told | {"ranks": shares(one)}
        store.save(one, folder, summary=told, sync=False)


def added(without: Callable[[], object], within: Callable[[], object], calls: int = 500, blocks: int = 61) -> float:
    """Seconds of processor time that a call takes more."""
    differences = []
    for _ in range(blocks):
        spent = []
        for call in (without, within):
            began = time.process_time()
            for _ in range(calls):
                call()
            spent.append(time.process_time() - began)
        differences.append((spent[1] - spent[0]) / calls)
    return median(differences)


def hooks() -> None:
    ours = Collectives(SimpleNamespace(on=True))
    ours.recorder.rounds = False  # as once an optimizer has stepped
    group = SimpleNamespace(group_name="0")

    def call(group: object) -> None:
        pass

    timed, timed_wait = ours._timed(call), ours._timed_wait(call)
    plain, hooked, x = nn.Linear(8, 8), nn.Linear(8, 8), torch.randn(2, 8)
    hooked.bias.register_post_accumulate_grad_hook(ours._time_reducing("0"))
    twin = nn.Linear(8, 8)
    for name, without, within in (
        ("nothing", lambda: plain(x).sum().backward(), lambda: twin(x).sum().backward()),
        ("a call", lambda: call(group), lambda: timed(group)),
        ("a wait", lambda: call(group), lambda: timed_wait(group)),
        ("a backward", lambda: plain(x).sum().backward(), lambda: hooked(x).sum().backward()),
    ):
        print(f"{name:>12} {1e6 * added(without, within):>6.2f} us")


def main() -> None:
    if sys.argv[1:] == ["hooks"]:
        hooks()
        return
    run = recorded()
    print(f"{'ranks':>8} {'on disk':>10} {'join':>9} {'per rank':>10}  what it says")
    for world in [int(word) for word in sys.argv[1:]] or [16, 64, 256, 1024, 4096, 10_000]:
        with tempfile.TemporaryDirectory() as folder:
            ranks(run, world, Path(folder))
            size = sum(file.stat().st_size for file in Path(folder).iterdir())
            began = time.process_time()
            text = render(bitwatt.join(store=folder))
            spent = time.process_time() - began
        said = next(line for line in text.splitlines() if "held up" in line)
        print(f"{world:>8} {size / 1e6:>7.1f} MB {spent:>7.2f} s {1e6 * spent / world:>7.0f} us  {said}", flush=True)


if __name__ == "__main__":
    main()
