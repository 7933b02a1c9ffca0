"""Joules per TFLOP of three networks on this machine's GPU, in float32, TF32 and bfloat16, beside the counter by hand.

    python benchmarks/energy.py [--seconds 12] [--networks resnet,transformer,gpt2] [--json FILE]

Each network trains for so long after a warm-up. The GPU's own counter is read by hand around the same seconds, with the
device synchronised before both readings: `off` is how far the run's energy is from it. FLOPs are those that the
networks need, whatever the precision; the executed precision decides what they cost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from overhead_workloads import WORKLOADS, Step

import bitwatt

PRECISIONS = ("float32", "tf32", "bfloat16")


@contextlib.contextmanager
def precision(name: str) -> Iterator[None]:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = name == "tf32"
    with torch.autocast("cuda", torch.bfloat16, enabled=name == "bfloat16"):
        yield


def counter() -> Callable[[], float]:
    """Joules since the driver was loaded, of the GPU that torch uses."""
    import pynvml

    pynvml.nvmlInit()
    uuid = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
    handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)

    def read() -> float:
        torch.cuda.synchronize()
        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3

    return read


def trained(step: Step, seconds: float, read: Callable[[], float]) -> dict[str, Any]:
    for _ in range(20):
        step()
    steps = 0
    with bitwatt.measure("energy", keep=False) as session:
        before, until = read(), time.monotonic() + seconds
        while time.monotonic() < until:
            for _ in range(10):
                step()
            steps += 10
            torch.cuda.synchronize()
        by_hand = read() - before
    run = session.run
    gpu = next(part for part in run.meter.energy if part.device.kind == "gpu")
    phases = {
        phase: {device: joules for device, joules in share.energy_j.items() if device == gpu.device.id}
        for phase, share in run.meter.phases.items()
    }
    return {
        "steps": steps,
        "seconds": run.seconds,
        "joules": gpu.energy_j,
        "by_hand_j": by_hand,
        "mean_w": gpu.mean_w,
        "tflop": bitwatt.totals(run, "flops").total / 1e12,
        "tbop": bitwatt.totals(run, "bops").total / 1e12,
        "phases": {phase: sum(found.values()) for phase, found in phases.items()},
        "remainder_j": run.meter.remainder_j.get(gpu.device.id, 0.0),
        "gpu": gpu.device.name,
        "exact": run.replay.exact,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--networks", default="resnet,transformer,gpt2")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    read, rows = counter(), []
    print(
        f"{'network':<13}{'precision':<10}{'steps/s':>9}{'mean W':>8}{'TFLOP':>9}{'J/TFLOP':>9}{'J/TBOP':>9}{'off':>8}"
    )
    for network in args.networks.split(","):
        step = WORKLOADS[network]("cuda")
        for name in PRECISIONS:
            with precision(name):
                found = trained(step, args.seconds, read)
            rows.append({"network": network, "precision": name, **found})
            joules = found["joules"]
            print(
                f"{network:<13}{name:<10}{found['steps'] / found['seconds']:>9.1f}{found['mean_w']:>8.0f}"
                f"{found['tflop']:>9.1f}{joules / found['tflop']:>9.3f}{joules / found['tbop']:>9.5f}"
                f"{100 * (joules / found['by_hand_j'] - 1):>7.2f}%",
                flush=True,
            )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
