"""What each tool says of one training step. Run by peers.py, one fresh process for each tool and program.

    python benchmarks/accuracy/peer_tools.py TOOL PROGRAM        # prints one line of JSON

Every tool is called as its documentation shows. An answer holds the unit and what was returned by phase; a phase that
is not there is not covered by the tool.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from workloads import Workload, build

Answer = dict[str, Any]
Phases = list[tuple[str, Callable[[], Any]]]
PHASES = ("forward", "loss", "backward", "optimizer")
KNOWN = {*PHASES, "unit", "note"}


@dataclass(frozen=True)
class Tool:
    ask: Callable[[Workload], list[Answer]]
    distribution: str
    how: str


def phases(work: Workload) -> Phases:
    """The parts of a step, to be run in this order."""
    made: dict[str, torch.Tensor] = {}

    def forward() -> None:
        made["out"] = work.model(work.x)

    def loss() -> None:
        made["loss"] = work.loss(made["out"], work.y)

    def backward() -> None:
        made["loss"].backward()

    return [("forward", forward), ("loss", loss), ("backward", backward), ("optimizer", work.optimizer.step)]


def bitwatt(work: Workload) -> list[Answer]:
    import bitwatt

    work.step()
    with bitwatt.measure("accuracy", keep=False) as session:
        work.step()
    answers = []
    for model, unit in (("macs", "MAC"), ("flops", "FLOP")):
        totals = bitwatt.totals(session.run, model)
        answer: Answer = {"unit": unit} | dict.fromkeys(PHASES, 0)
        for phase, n in totals.by("phase").items():
            place = phase.split("/")[0]  # backward/recompute is part of backward
            answer[place] = answer.get(place, 0) + n
        notes = [f"missing: {sorted(totals.missing)}"] if totals.missing else []
        notes += [f"{phase} {answer[phase]}" for phase in answer if phase not in KNOWN and answer[phase]]
        if notes:
            answer["note"] = "; ".join(notes)
        answers.append(answer)
    return answers


def flop_counter_mode(work: Workload) -> list[Answer]:
    from torch.utils.flop_counter import FlopCounterMode

    work.step()
    work.optimizer.zero_grad()
    answer: Answer = {"unit": "FLOP"}
    for name, run in phases(work):
        with FlopCounterMode(display=False) as counter:
            run()
        answer[name] = counter.get_total_flops()
    return [answer]


def torch_profiler(work: Workload) -> list[Answer]:
    work.step()
    work.optimizer.zero_grad()
    answer: Answer = {"unit": "FLOP"}
    for name, run in phases(work):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_flops=True) as profile:
            run()
        answer[name] = sum(event.flops or 0 for event in profile.key_averages())
    return [answer]


def fvcore(work: Workload) -> list[Answer]:
    from fvcore.nn import FlopCountAnalysis

    analysis = FlopCountAnalysis(work.model, work.x).unsupported_ops_warnings(False)
    answer: Answer = {"unit": "MAC", "forward": int(analysis.total())}
    skipped = analysis.unsupported_ops().items()
    products = [f"{n} {op}" for op, n in sorted(skipped) if any(word in op for word in ("attention", "mm", "lstm"))]
    if products:
        answer["note"] = "says it skipped " + ", ".join(products)
    return [answer]


def thop(work: Workload) -> list[Answer]:
    from thop import profile

    macs, _ = profile(work.model, inputs=(work.x,), verbose=False)
    return [{"unit": "MAC", "forward": int(macs)}]


def ptflops(work: Workload, backend: str) -> list[Answer]:
    from ptflops import get_model_complexity_info

    # By keyword: with a positional tensor the pytorch backend divides some of its counts by the batch and some not.
    name = next(iter(inspect.signature(getattr(work.model, "_orig_mod", work.model).forward).parameters))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        macs, _ = get_model_complexity_info(
            work.model,
            tuple(work.x.shape[1:]),
            as_strings=False,
            print_per_layer_stat=False,
            input_constructor=lambda _: {name: work.x},
            backend=backend,
        )
    if macs is None:
        raise RuntimeError("returned None; printed: " + " ".join(printed.getvalue().split()))
    return [{"unit": "MAC", "forward": int(macs)}]


def calflops(work: Workload) -> list[Answer]:
    from calflops import calculate_flops

    flops, macs, _ = calculate_flops(work.model, args=[work.x], print_results=False, output_as_string=False)
    return [{"unit": "FLOP", "forward": int(flops)}, {"unit": "MAC", "forward": int(macs)}]


def deepspeed(work: Workload) -> list[Answer]:
    from deepspeed.profiling.flops_profiler import get_model_profile

    flops, macs, _ = get_model_profile(work.model, args=[work.x], print_profile=False, as_string=False)
    return [{"unit": "FLOP", "forward": int(flops)}, {"unit": "MAC", "forward": int(macs)}]


def floppy(work: Workload) -> list[Answer]:
    from floppy import FLOPpyTracker

    work.step()
    tracker = FLOPpyTracker(run_name="accuracy")
    tracker.run(model=work.model, optimizer=work.optimizer, criterion=work.loss)
    work.step()
    tracker.batch()
    report = tracker.stop().report()
    answer = {"forward": report.model_forward_flop, "loss": report.loss_forward_flop}
    answer |= {"backward": report.model_backward_flop + report.loss_backward_flop, "optimizer": report.optimizer_flop}
    return [{"unit": "FLOP"} | answer]


TOOLS: dict[str, Tool] = {
    "bitwatt": Tool(bitwatt, "bitwatt", "`measure()` around one step; cost models `macs` and `flops`"),
    "FlopCounterMode": Tool(flop_counter_mode, "torch", "`torch.utils.flop_counter`, one mode for each phase"),
    "torch.profiler": Tool(torch_profiler, "torch", "`profile(with_flops=True)`, one for each phase"),
    "fvcore": Tool(fvcore, "fvcore", "`FlopCountAnalysis(model, x).total()`; its flop is a multiply-accumulate"),
    "thop": Tool(thop, "thop", "`profile(model, inputs)`"),
    "ptflops-pytorch": Tool(lambda w: ptflops(w, "pytorch"), "ptflops", "`get_model_complexity_info`, backend pytorch"),
    "ptflops-aten": Tool(lambda w: ptflops(w, "aten"), "ptflops", "`get_model_complexity_info`, backend aten"),
    "calflops": Tool(calflops, "calflops", "`calculate_flops`; its backward option is a factor on the forward"),
    "DeepSpeed": Tool(deepspeed, "deepspeed", "`get_model_profile`"),
    "floppy-tracker": Tool(floppy, "floppy-tracker", "`FLOPpyTracker.run(...)` around one step"),
}


def main() -> None:
    tool, program = sys.argv[1:]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    work = build(program)
    result: dict[str, Any] = {"truth": {"forward": work.forward, "loss": work.loss_flops, "backward": work.backward}}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            result["answers"] = TOOLS[tool].ask(work)
    except Exception as error:
        result["error"] = f"{type(error).__name__}: {error}"
    print(json.dumps(result))


if __name__ == "__main__":
    main()
