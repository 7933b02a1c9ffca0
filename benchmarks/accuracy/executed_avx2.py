"""Measure with the fpcount instrument what torch's CPU kernels execute, and print it beside flops:executed@avx2.

    python benchmarks/accuracy/executed_avx2.py --fpcount DIR      # DIR holds the files fpcount, build, fpcount.c, ...

The programs are rows of tests/data/torch_executed_avx2.jsonl (--programs names another file; rows need name, setup and
phases only). The script starts itself under the instrument (valgrind: AVX2, one thread; minutes). Each program runs
once to warm up and once to be measured, phase by phase; --out keeps the rows with what was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
STORED = HERE.parents[1] / "tests" / "data" / "torch_executed_avx2.jsonl"


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def measure(row: dict[str, Any]) -> dict[str, int]:
    """Operations executed in each phase. Only where the instrument runs this process."""
    import fpcount
    from programs import Program, execute

    program = Program(row["name"], row["setup"], row["phases"])
    execute(program, lambda _, run: run())
    executed: dict[str, int] = {}

    def count(phase: str, run: Callable[[], None]) -> None:
        executed[phase] = fpcount.measure(run)[1].flops

    execute(program, count)
    return executed


def price(row: dict[str, Any]) -> dict[str, int]:
    from programs import Program, ledger_of

    from bitwatt.pricing import totals

    return dict(totals(ledger_of(Program(row["name"], row["setup"], row["phases"])), "flops:executed@avx2").by("phase"))


def child(programs: Path, out: Path) -> None:
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with out.open("w") as file:
        for row in rows_of(programs):
            try:
                row["executed"] = measure(row)
            except Exception as error:
                print(f"{row['name']}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            file.write(json.dumps(row) + "\n")
            file.flush()


def under_instrument(folder: Path, programs: Path, out: Path) -> None:
    built = os.environ.get("FPCOUNT_OUT") or tempfile.mkdtemp(prefix="fpcount-")
    environment = os.environ | {"FPCOUNT_OUT": built, "ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "1"}
    command = [
        str(folder / "fpcount"),
        sys.executable,
        __file__,
        "--child",
        "--programs",
        str(programs),
        "--out",
        str(out),
    ]
    subprocess.run(command, env=environment, check=True)


def report(rows: list[dict[str, Any]]) -> None:
    """Truth beside model, the worst last, and the median error."""
    import torch
    from programs import find_bitwatt

    if not find_bitwatt():
        print("bitwatt cannot be imported: nothing to compare with")
        return
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    lines = []
    for row in rows:
        model = price(row)
        lines += [(row["name"], phase, truth, model.get(phase, 0)) for phase, truth in row["executed"].items()]
    lines.sort(key=lambda line: abs(line[3] / max(line[2], 1) - 1))
    for name, phase, truth, said in lines:
        print(f"{name[:70]:70} {phase:9} {truth:12d} {said:12d} {100 * (said / max(truth, 1) - 1):+8.1f} %")
    errors = [abs(said / truth - 1) for _, _, truth, said in lines if truth > 100]
    print(f"{len(lines)} phases; median error {100 * median(errors):.2f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--fpcount", type=Path, help="the instrument's folder; without it the stored counts are compared"
    )
    parser.add_argument("--programs", type=Path, default=STORED)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.programs, options.out)
    elif options.fpcount:
        out = options.out or Path(tempfile.mkdtemp(prefix="executed-")) / "rows.jsonl"
        under_instrument(options.fpcount, options.programs, out)
        report(rows_of(out))
    else:
        report(rows_of(options.programs))


if __name__ == "__main__":
    main()
