"""Writes the graph that onnxruntime makes of a graph, in a process of its own.

A graph that the runtime cannot bear may end the process (onnxruntime 1.31 does so on some in half precision), and that
must cost a row of the report only: `python -m bitwatt.deploy.making.optimising graph.onnx optimised.onnx cpu`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bitwatt.deploy.records import UnfitError

PATIENCE = 300.0  # seconds


def optimise(path: Path, out: Path, device: str = "cpu") -> None:
    """Raises `UnfitError` where the runtime refuses the graph, or dies of it."""
    command = [sys.executable, "-m", __name__, str(path), str(out), device]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise UnfitError(f"onnxruntime did not load it in {PATIENCE:.0f} seconds") from error
    if ended.returncode < 0:
        raise UnfitError(f"onnxruntime dies when it loads this graph (signal {-ended.returncode})")
    if ended.returncode:
        raise UnfitError(f"onnxruntime cannot load it: {ended.stdout.strip() or ended.stderr.strip()[-200:]}")


def main(path: str, out: str, device: str) -> int:
    import onnxruntime

    from bitwatt.deploy.runtimes.onnx_fp32 import providers

    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = out
    options.log_severity_level = 4  # it warns that the file fits this machine alone, which is the point
    try:
        onnxruntime.InferenceSession(path, options, providers=providers(device))
    except Exception as error:  # every fault of the runtime has a class of its own
        print(str(error).strip().splitlines()[0])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
