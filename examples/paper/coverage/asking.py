"""Asks one profiler about every probe. Run in a process of its own for each, so that none meets another's patches.

python -m examples.paper.coverage.asking thop          # prints one line of JSON
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from examples.paper.coverage import probes


def _tried(call: Callable[[], Any]) -> dict[str, Any]:
    """What it returned, or the error it raised: a profiler that cannot do something says so in many ways."""
    torch.manual_seed(0)
    try:
        return {"returned": call()}
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return {"error": words[:120]}


def ask(name: str) -> dict[str, Any]:
    tool = importlib.import_module(f"examples.paper.coverage.{name}")
    found: dict[str, Any] = {"training": {}, "classical": {}}
    for program, make in probes.TRAINING.items():
        torch.manual_seed(0)
        work = make()
        answer = _tried(lambda work=work: tool.training(work))
        if "returned" in answer:
            phases = answer["returned"]
            answer = {"returned": {phase: phases.of(phase) for phase in probes.PHASES}, "raw": asdict(phases)}
        found["training"][program] = answer | {"true": work.true}
    layer, x, bops = probes.packed()
    answer = _tried(lambda: asdict(tool.quantised(layer, x)))
    found["quantisation"] = answer | {"true": {"bops": bops, "flops": bops // 4}}
    for fit, (estimator, X, y, executed) in probes.fits().items():
        one = _tried(lambda estimator=estimator, X=X, y=y: tool.classical(estimator, X, y))
        found["classical"][fit] = one | {"true": executed}
    return found


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with contextlib.redirect_stdout(sys.stderr):
        found = ask(sys.argv[1])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
