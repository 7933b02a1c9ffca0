"""The estimators' part of docs/accuracy.md: every fit of tests/data/sklearn_executed.jsonl, counted and executed.

    python benchmarks/accuracy/truth_page.py [--fpcount DIR] [--out FILE]       # `make truth`

bitwatt counts the fits here and now; the executed operations are those of the file, or are counted anew by the fpcount
instrument in DIR (valgrind and a C compiler are needed then, and some hours). Beside them stand the paper's formulas
(cost model `flops:paper`) and floppy-tracker, which is installed into a folder of its own and asked in a process of its
own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from estimators import DATA, Case, as_measured, cases, rows
from marked import replaced

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXECUTED = DATA / "sklearn_executed.jsonl"
FLOPPY = "floppy-tracker==0.2.2"
PART = "estimators"


@dataclass(frozen=True)
class Fit:
    """One measured fit, and what everybody says of it. `floppy` is a number, or why there is none."""

    row: dict[str, Any]
    case: Case
    floppy: int | str = "not asked"

    @property
    def module(self) -> str:
        parts = self.row["cls"].split(".")
        return ".".join(parts[: 2 if parts[0] == "sklearn" else 1])

    @property
    def executed(self) -> int:
        return self.case.measured


def gather(rows: Iterable[dict[str, Any]]) -> tuple[list[Fit], list[Case]]:
    """Fits, and the calls of other methods that were measured with them."""
    fits, others = [], []
    for row in rows:
        for case in cases(row):
            if case.method == "fit":
                fits.append(Fit(row, case))
            else:
                others.append(case)
    return fits, others


def ask_floppy(rows: Path) -> list[int | str]:
    """A number for each fit, or why there is none."""
    folder = ROOT / ".venv" / "floppy"
    if not (folder / "floppy").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--target", str(folder), FLOPPY, "psutil"], check=True)
        # It imports wandb for its uploads, which nothing here uses: an empty module stands in for it.
        (folder / "wandb.py").write_text('"""Stands in for an uploader that is imported and not used."""\n')
    command = [sys.executable, str(HERE / "truth_floppy.py"), str(rows), str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return [answer["flops"] if "error" not in answer else str(answer["error"]) for answer in answers]


def measure(instrument: Path) -> Path:
    """A file like EXECUTED with counts made here. It is kept with the build, so that a stopped run goes on."""
    name = hashlib.sha256(EXECUTED.read_bytes()).hexdigest()[:12]
    built = Path(os.environ.get("FPCOUNT_OUT") or ROOT / ".venv" / "fpcount")
    built.mkdir(parents=True, exist_ok=True)
    target = built / f"executed-{name}.jsonl"
    command = [str(instrument / "fpcount"), sys.executable, str(HERE / "truth_measure.py"), str(EXECUTED), str(target)]
    subprocess.run(command, env=os.environ | {"FPCOUNT_OUT": str(built)}, check=True)
    before, after = (list(map(json.loads, file.read_text().splitlines())) for file in (EXECUTED, target))
    moved = [old["name"] for old, new in zip(before, after, strict=True) if old["fit"] != new["fit"]]
    print(f"{len(after)} fits measured, {len(moved)} differ from the stored counts: {', '.join(moved[:20])}")
    return target


def amount(value: int | None) -> str:
    return "-" if value is None else f"{value:.2e}".replace("e+0", "e").replace("e+", "e")


def factor(said: int | str | None, executed: int) -> str:
    if not isinstance(said, int) or not executed:
        return "-"
    ratio = said / executed
    return f"{ratio:.3f}" if 0.1 <= ratio < 10 else f"{ratio:.2g}"


def errors(pairs: Iterable[tuple[int, int]]) -> list[float]:
    """max(p/m, m/p), in order; a zero for something is no answer and infinitely wrong."""
    return sorted(max(a / b, b / a) if a and b else float("inf") for a, b in pairs)


def _rating(found: Sequence[float]) -> list[str]:
    if not found:
        return ["0", "-", "-", "-"]
    within = sum(error <= 1.1 for error in found) / len(found)
    return [str(len(found)), _error(statistics.median(found)), f"{within:.0%}", _error(found[-1])]


def _error(value: float) -> str:
    return "silent zero" if value == float("inf") else f"{value:.3f}" if value < 10 else f"{value:.3g}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> str:
    sides = ["---"] * texts + ["--:"] * (len(head) - texts)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, sides, *rows)) + "\n"


def summary(fits: Sequence[Fit], others: Sequence[Case]) -> str:
    """How right each is."""
    whole = [fit for fit in fits if fit.executed]
    sources = {
        "bitwatt, `fit`": [(fit.case.counted, fit.executed) for fit in whole],
        "the paper's formulas, `fit`": [(fit.case.paper, fit.executed) for fit in whole if fit.case.paper is not None],
        "floppy-tracker, `fit`": [(fit.floppy, fit.executed) for fit in whole if isinstance(fit.floppy, int)],
        "bitwatt, `predict`, `transform`, ...": [(case.counted, case.measured) for case in others if case.measured],
    }
    rows = [[name, *_rating(errors(pairs))] for name, pairs in sources.items()]
    for row in rows:
        total = len(whole) if "fit" in row[0] else sum(bool(case.measured) for case in others)
        row[1] = f"{row[1]} of {total}"
    return _table(["whose count", "answers", "median factor", "within 10 %", "worst"], rows)


def by_module(fits: Sequence[Fit]) -> str:
    rows = []
    for module in sorted({fit.module for fit in fits}):
        own = [fit for fit in fits if fit.module == module and fit.executed]
        marked = sum(bool(fit.case.estimated) for fit in own)
        refused = sum(isinstance(fit.floppy, str) for fit in own)
        found = errors((fit.case.counted, fit.executed) for fit in own)
        rows.append([f"`{module}`", *_rating(found), str(marked), f"{refused} of {len(own)}"])
    head = ["module", "fits", "median factor", "within 10 %", "worst", "marked estimated", "floppy-tracker refuses"]
    return _table(head, rows)


def line(sizes: Sequence[Fit]) -> list[str]:
    """One estimator, at one size or two."""
    said = [fit.floppy for fit in sizes]
    floppy = [amount(one) if isinstance(one, int) else "refuses" for one in said]
    if len(set(floppy)) == 1 and floppy[0] == "refuses":
        floppy = ["refuses"]
    columns = [
        [fit.row["name"] for fit in sizes[:1]],
        [f"{fit.row['n']}×{fit.row['f']}" if fit.row["f"] else str(fit.row["n"]) for fit in sizes],
        [amount(fit.executed) for fit in sizes],
        [amount(fit.case.counted) for fit in sizes],
        [factor(fit.case.counted, fit.executed) + ("~" if fit.case.estimated else "") for fit in sizes],
        [amount(fit.case.paper) for fit in sizes],
        [factor(fit.case.paper, fit.executed) for fit in sizes],
        floppy,
        [factor(one, fit.executed) for one, fit in zip(said, sizes, strict=True)],
    ]
    return [" / ".join(["-"] if set(column) == {"-"} else column) for column in columns]


def by_estimator(fits: Sequence[Fit]) -> str:
    sizes: dict[tuple[str, str], list[Fit]] = {}
    for fit in fits:
        sizes.setdefault((fit.row["cls"], fit.row["name"]), []).append(fit)
    head = ["fit", "size", "executed", "bitwatt", "÷ executed", "paper", "÷ executed", "floppy-tracker", "÷ executed"]
    return _table(head, (line(found) for found in sizes.values()), 2)


def refusals(fits: Sequence[Fit]) -> str:
    """What floppy-tracker says where it has no number, the class left open; and zeros that it says nothing about."""
    kinds: dict[str, set[str]] = {}
    for fit in fits:
        name = fit.row["cls"].rpartition(".")[2]
        if isinstance(fit.floppy, str):
            words = re.sub(rf"\S*\b{re.escape(name)}\b\S*", "...", fit.floppy)
            kinds.setdefault(f"“{words.strip()}”", set()).add(name)
        elif not fit.floppy and fit.executed:
            kinds.setdefault("0, without a word", set()).add(name)
    rows = ([said, ", ".join(sorted(names)), str(len(names))] for said, names in sorted(kinds.items()))
    return _table(["what it says", "of", "classes"], rows, 2)


def text(fits: Sequence[Fit], others: Sequence[Case]) -> str:
    return f"""<!-- Generated by benchmarks/accuracy/truth_page.py (`make truth`). Do not edit. -->

## What estimators execute

{len(fits)} fits of scikit-learn, XGBoost, LightGBM and CatBoost, most of them at two sizes. *Executed* are additions,
subtractions, multiplications, divisions and square roots that the processor really made, a fused multiply-add being
two, read by a valgrind tool on one thread (AVX2); they are kept in `tests/data/sklearn_executed.jsonl`. A factor is the
larger of count and truth over the smaller.

{summary(fits, others)}
{FLOPPY.replace("==", " ")} is called as its documentation shows, and reports `fit` as backward. Where it
has no formula it prints a warning and reports 0: that is *refuses* below. The paper's formulas are the cost model
`flops:paper`; “-” where it has none.

{by_module(fits)}
*Marked estimated* are fits whose amount depends on what nobody saw, such as the values that columns share; reports say
so too.

### Every fit

“~” is the mark *estimated*. Two sizes are divided by “/”. [Estimators](reference/estimators.md) has the formulas, and
errors over all {_measured()} measured fits, of which these are a part.

{by_estimator(fits)}
### Where floppy-tracker has no number

{refusals(fits)}"""


def _measured() -> str:
    return f"{sum(1 for _ in rows()):,}"


def main() -> None:
    as_measured()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fpcount", type=Path, help="the instrument's folder: count anew what is executed")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "accuracy.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    source = measure(options.fpcount) if options.fpcount else EXECUTED
    answers = ask_floppy(source)
    fits, others = gather(map(json.loads, source.read_text().splitlines()))
    fits = [Fit(fit.row, fit.case, said) for fit, said in zip(fits, answers, strict=True)]
    options.out.write_text(replaced(options.out.read_text(), PART, text(fits, others)))
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
