"""Runs every profiler in a process of its own, scores what came back, and shows it."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from examples.paper.coverage.probes import FACETS, PHASES, ROOT
from examples.paper.coverage.scoring import MEANING, facet_score, precision_score, score
from examples.paper.tables import science, table

#: Module -> name, in the paper's order; floppy-tracker stands beside its seven.
PROFILERS = {
    "thop": "thop", "ptflops": "ptflops", "fvcore": "fvcore", "calflops": "calflops", "deepspeed": "DeepSpeed",
    "torch_profiler": "torch.profiler", "bitwatt": "bitwatt", "floppy": "floppy-tracker",
}  # fmt: skip
OURS = ("torch_profiler", "bitwatt")


def measure() -> dict[str, Any]:
    """The other profilers are no dependencies: they are installed into a folder of their own, as for the accuracy page,
    because some change what accelerate and transformers do wherever they can be imported."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "accuracy"))
    from peers import PEERS, install, versions

    install()
    found, installed = {}, versions()
    for module in PROFILERS:
        paths = [str(ROOT), *([] if module in OURS else [str(PEERS)])]
        settings = {"OMP_NUM_THREADS": "1", "DS_BUILD_OPS": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "examples.paper.coverage.asking", module],
            env=os.environ | settings | {"PYTHONPATH": os.pathsep.join(paths)},
            cwd=tempfile.gettempdir(), capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{module}: {done.stderr[-2000:]}")
        distribution = importlib.import_module(f"examples.paper.coverage.{module}").DISTRIBUTION
        version = installed.get(distribution, "").split("+")[0]
        found[module] = {"version": version, **json.loads(done.stdout.splitlines()[-1])}
    return found


def scores(found: dict[str, Any]) -> dict[str, int]:
    """Of one profiler, by facet."""
    result = {}
    for phase in PHASES:
        programs = found["training"].values()
        result[phase] = facet_score([score((p.get("returned") or {}).get(phase), p["true"][phase]) for p in programs])
    layer = found["quantisation"].get("returned") or {}
    true = found["quantisation"]["true"]["bops"]
    result["quantisation"] = precision_score(layer.get("bops"), true, layer.get("dtypes", ()))
    result["classical"] = facet_score([score(f.get("returned"), f["true"]) for f in found["classical"].values()])
    return result


def draw(data: dict[str, Any]) -> None:
    from examples.paper.drawing import figure

    grid = [[scores(found)[facet] for facet in FACETS] for found in data.values()]
    with figure("coverage", "What profilers see: 0 (nothing) to 5 (right)", size=(6.5, 4)) as axes:
        axes.imshow(grid, cmap="YlGnBu", vmin=0, vmax=5, aspect="auto")
        axes.set_xticks(range(len(FACETS)), FACETS, rotation=20)
        axes.set_yticks(range(len(data)), [PROFILERS[module] for module in data])
        for row, values in enumerate(grid):
            for column, value in enumerate(values):
                axes.text(column, row, str(value), ha="center", va="center", color="white" if value > 2 else "black")
        axes.spines[:].set_visible(False)


def _cell(answer: dict[str, Any], returned: float | None, true: float) -> str:
    if "error" in answer:
        return "refuses"
    if returned is None:
        return "-"
    return f"{science(returned)} ({returned / true:.3f})" if returned else "0"


def _raw(data: dict[str, Any]) -> str:
    """Every value as it was returned, in FLOPs, with its ratio to the true one."""
    first = next(iter(data.values()))
    rows = []
    for program, about in first["training"].items():
        for phase in PHASES:
            cells = [
                _cell(one, (one.get("returned") or {}).get(phase), one["true"][phase])
                for one in (found["training"][program] for found in data.values())
            ]
            rows.append([f"{phase}, {program}", f"{about['true'][phase]:,}", *cells])
    for unit in ("flops", "bops"):
        cells = []
        for found in data.values():
            one = found["quantisation"]
            cells.append(_cell(one, (one.get("returned") or {}).get(unit), one["true"][unit]))
        rows.append([f"4-bit layer, {unit.upper()[:-1]}s", f"{first['quantisation']['true'][unit]:,}", *cells])
    dtypes = [
        ", ".join((found["quantisation"].get("returned") or {}).get("dtypes", [])) or "-" for found in data.values()
    ]
    rows.append(["4-bit layer, precision shown", "nf4", *dtypes])
    for fit, about in first["classical"].items():
        cells = [
            _cell(one["classical"][fit], one["classical"][fit].get("returned"), about["true"]) for one in data.values()
        ]
        rows.append([f"fit, {fit}", f"{about['true']:,}", *cells])
    return table(["probe", "true", *(PROFILERS[module] for module in data)], rows, "l" + "r" * (len(data) + 1))


def text(data: dict[str, Any]) -> str:
    rows = []
    for module, found in data.items():
        marks = scores(found)
        how = importlib.import_module(f"examples.paper.coverage.{module}").HOW
        rows.append([f"{PROFILERS[module]} {found['version']}", *(str(marks[facet]) for facet in FACETS), how])
    head = ["profiler", *FACETS, "called as"]
    return "\n\n".join(
        [INTRODUCTION, table(head, rows, "l" + "r" * 6 + "l"), f"{MEANING}. {RULES}", _raw(data), REASONS]
    )


INTRODUCTION = """\
## Table 1 and Figure 3: what profilers see

![Eight profilers by six facets](images/paper/coverage.svg)

The paper's scores are judgements; its Table 1 has five facets and its Figure 3 six. Here each profiler was really
run, on programs whose true values are known, and scored by one rule:"""

RULES = """\
Quantisation is scored by bit-operations, and is 1 where a profiler shows dtypes but does not resolve packing. A
facet is the mean of its probes, rounded down. The rule is `score` in `examples/paper/coverage/scoring.py`, the
probes and how their true values were counted are in `probes.py`. They are bitwatt's authors' choice: small,
ordinary programs; [Accuracy](accuracy.md) has twenty larger ones and 299 fits, with the rows where bitwatt is off.

**The marks for loss and optimizer depend on a convention that is bitwatt's own**: an exponential, a root or a
division is one operation, which makes 4 for each logit, 4 for each parameter with SGD and 14 with AdamW. The
instrument that the fits are held against reads what those kernels execute on AVX2 as about 26, 5 and 27. By that
truth bitwatt's `flops` would have 1 and 3 and 2 for these probes, not 5, and floppy-tracker's would be no higher.
Fits are held against executed operations, since there is no shorter definition of what they compute.

What was returned, in FLOPs, and its ratio to the true value. Multiply-accumulates are taken twice. "-": the
profiler has no such number; refuses: it raised an error."""

REASONS = """\
- Profilers of the forward miss attention where it is one fused call, which has no module of its own; DeepSpeed,
  which replaces that function too, sees it.
- calflops' backward is twice its forward, by option; nothing is looked at. The gradient of the images, which nobody
  asks for, is in it.
- torch.profiler sees the products of a linear layer's backward, and no convolution's."""
