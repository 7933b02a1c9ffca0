"""Bytes of the ledger beside the bytes of device memory that Nsight Compute counts: how far the model is off.

    python benchmarks/traffic.py [--workloads mlp,resnet,...]      (an NVIDIA GPU, and ncu on the path)

The ledger adds up the sizes of what each op reads and writes, as if there were no cache. What a cache keeps is not read
again from memory, so on small networks memory sees less; what a kernel reads twice, or keeps for itself, the ledger
does not see. One training step, forward, backward and optimizer, after three that warm up.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import torch
from overhead_workloads import WORKLOADS

import bitwatt
from bitwatt.profiles.ncu import profile

NCU = (
    "ncu", "--csv", "--page", "raw", "--profile-from-start", "off", "--cache-control", "none",
    "--clock-control", "none", "--metrics", "dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum",
)  # fmt: skip


def child(name: str) -> None:
    """One step, for ncu."""
    torch.manual_seed(0)
    step = WORKLOADS[name]("cuda")
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    step()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


def ledger(name: str) -> int:
    torch.manual_seed(0)
    step = WORKLOADS[name]("cuda")
    for _ in range(3):
        step()
    with bitwatt.measure(name, keep=False, exactness="always", meter=False) as session:
        step()
    return bitwatt.totals(session.run, "bytes").total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="mlp,resnet,transformer,gpt2")
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for name in options.workloads.split(","):
        done = subprocess.run([*NCU, sys.executable, __file__, "--child", name], capture_output=True)
        if done.returncode:
            print(f"{name}: ncu failed: {done.stdout[-300:].decode()} {done.stderr[-300:].decode()}")
            continue
        seen, told = profile(done.stdout), ledger(name)
        if not seen.dram_bytes:
            print(f"{name}: ncu counted no bytes")
            continue
        print(
            f"{name:12} ledger {told / 1e6:9.1f} MB   memory {seen.dram_bytes / 1e6:9.1f} MB   "
            f"{told / seen.dram_bytes:5.2f}x   {seen.kernels} kernels",
            flush=True,
        )


if __name__ == "__main__":
    main()
