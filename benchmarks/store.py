"""Stores of many runs: how long it takes to list, filter and sort them, with and without an index; and whether many
processes that write at once lose anything.

    python benchmarks/store.py [--runs 10000] [--writers 32] [--keep DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from bitwatt import store
from bitwatt.about import described
from bitwatt.ledger import Ledger
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.records import Machine, Run
from bitwatt.store.index import Index

MACHINES = [
    {"os": "Debian GNU/Linux 12", "kernel": "6.1.0-18-amd64", "cpu": "AMD EPYC 9554 64-Core Processor", "cores": "128",
     "memory": "1.51 TB", "gpu": gpu, "driver": "570.124.06", "python": "3.11.9", "bitwatt": "0.1.0",
     "torch": "2.13.0", "numpy": "2.3.1", "transformers": "4.57.1", "cuda": "12.8", "cudnn": "9.10.2"}
    for gpu in ("8 x NVIDIA H200", "NVIDIA A100-SXM4-80GB", "NVIDIA L4")
]  # fmt: skip


def header_of(number: int, rng: random.Random) -> tuple[Run, dict[str, object]]:
    """A run with about as much in its first line as a real one has."""
    flops = int(10 ** rng.uniform(9, 24))
    day, second = divmod(number * 61, 86_400)
    started = (
        f"2026-{1 + day // 28 % 12:02}-{1 + day % 28:02}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
    )
    about = described(
        tags={"team": rng.choice(("vision", "language", "speech")), **({"good": ""} if rng.random() < 0.1 else {})},
        version=f"1.{number % 40}",
        parameters={"lr": rng.choice((0.1, 0.01, 0.001)), "epochs": 90, "optimizer": "adamw", "seed": number},
        dataset="imagenet",
        batch_size=rng.choice((32, 64, 256)),
    )
    metrics = {
        name: {"last": rng.random(), "min": 0.0, "max": 1.0, "count": 90} for name in ("accuracy", "loss", "val_loss")
    }
    git = {"commit": f"{rng.getrandbits(160):040x}", "branch": "main", "dirty": "no"}
    run = Run(
        id=f"run-{number:07}",
        name=f"{rng.choice(('resnet', 'vit', 'bert', 'llama'))}-{number % 100}",
        started=f"{started}.000+00:00",
        seconds=rng.uniform(10, 10_000),
        ledger=Ledger(),
        machine=Machine(rng.choice(MACHINES)),
        command="train.py --config configs/base.yaml --epochs 90",
        status=rng.choice(("ok",) * 18 + ("failed: OutOfMemoryError: CUDA out of memory", UNDER_WAY)),
        about=replace(about, metrics=metrics, git=git),
    )
    summary: dict[str, object] = {
        "coverage": {"counted": 12_345, "free": 4_321, "missing": 0, "estimated": 0},
        "totals": {"flops": flops, "bops": 256 * flops, "macs": flops // 2, "bytes": flops // 50},
        "fingerprint": f"{rng.getrandbits(64):016x}",
        "by_phase": dict.fromkeys(("forward", "loss", "backward", "optimizer", "evaluate/inference"), flops // 6),
        "parameters": 25_557_032,
        "memory_bytes": 2e9,
        "device_memory_bytes": 20_000_000_000,
        "energy_j": flops / 1e11,
        "energy_how": "measured",
    }
    return run, summary


def made(folder: Path, runs: int) -> None:
    rng = random.Random(0)
    began = time.perf_counter()
    for number in range(runs):
        run, summary = header_of(number, rng)
        store.save(run, folder, summary=summary, sync=False)
    size = sum(entry.stat().st_size for entry in os.scandir(folder))
    print(f"{runs:,} runs written in {time.perf_counter() - began:.1f} s, {size / runs:,.0f} B each", flush=True)


def timed(title: str, work: Callable[[], object]) -> None:
    """Seconds on the clock, and of the processor: on a busy machine the first say little."""
    began, cpu = time.perf_counter(), _cpu()
    found = work()
    print(f"  {title:<58}{time.perf_counter() - began:8.3f} s {_cpu() - cpu:8.3f} s   {found}", flush=True)


def _cpu() -> float:
    return sum(os.times()[:4])


def lines_of(command: list[str]) -> int:
    return subprocess.run(command, capture_output=True, check=True).stdout.count(b"\n")


def listed(folder: Path) -> None:
    print("In one process (clock, processor, found):")
    index = Index(folder)
    index.path.unlink(missing_ok=True)
    timed("cold: the index is made", lambda: index.refresh() and index.count())
    timed("warm: nothing is new", lambda: index.refresh() and index.count())
    timed("all runs, newest first", lambda: len(index.select()))
    timed(
        "name~vit flops>1e15, by energy, first 100",
        lambda: len(index.select(["name~vit", "flops>1e15"], "-energy", 100)),
    )
    timed("tag:team=vision metric.accuracy>=0.9, by accuracy",
          lambda: len(index.select(["tag:team=vision", "metric.accuracy>=0.9"], "-metric.accuracy")))  # fmt: skip
    timed(
        "machine~H200 since=2026-01-05, first 100",
        lambda: len(index.select(["machine~H200", "since=2026-01-05"], limit=100)),
    )
    index.close()
    fresh = Index(folder)
    timed("a new process's first question (refresh + select, sorted)",
          lambda: len(fresh.select(["status=ok"], "-metric.accuracy")))  # fmt: skip
    print(f"  index: {fresh.path.stat().st_size / 1e6:.1f} MB")
    print("As a command, the start of Python included:")
    for words in (["ls"], ["ls", "name~vit", "flops>1e15", "--sort", "-energy"], ["ls", "--limit", "0"]):
        command = [sys.executable, "-m", "bitwatt", *words, "--store", str(folder)]
        timed(f"bitwatt {' '.join(words)}", partial(lines_of, command))
    timed("load by id", lambda: store.load(f"run-{5:07}", folder).name)
    timed("load by name", lambda: store.load("vit-42", folder).name)


WRITER = """
import sys
sys.path.insert(0, sys.argv[4])
from dataclasses import replace
import random
from store import header_of
from bitwatt import store
first, runs = int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(first)
for number in range(first, first + runs):
    run, summary = header_of(number, rng)
    for _ in range(2):  # as a journal does: the same file again
        store.save(run, sys.argv[1], summary=summary, sync=False)
"""


def written_at_once(writers: int, runs: int) -> None:
    """Each writes its runs twice, while indexes are refreshed."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text) / "store"
        here = str(Path(__file__).parent)
        began = time.perf_counter()
        arguments = [
            [sys.executable, "-c", WRITER, str(folder), str(n * runs), str(runs), here] for n in range(writers)
        ]
        children = [subprocess.Popen(command) for command in arguments]
        index = Index(folder)
        while any(child.poll() is None for child in children):
            index.refresh()
            time.sleep(0.05)
        found = index.refresh().count()
        failed = sum(child.returncode != 0 for child in children)
        rest = [path.name for path in folder.iterdir() if path.suffix != store.SUFFIX]
        result = {"writers": writers, "written": writers * runs, "found": found, "failed": failed,
                  "damaged": len(index.damaged), "left over": len(rest)}  # fmt: skip
        print(f"{json.dumps(result)} in {time.perf_counter() - began:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave the store there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        os.environ["XDG_CACHE_HOME"] = text
        folder = args.keep or Path(text) / "store"
        made(folder, args.runs)
        listed(folder)
    if args.writers:
        written_at_once(args.writers, 20)


if __name__ == "__main__":
    main()
