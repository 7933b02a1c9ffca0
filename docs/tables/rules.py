"""Writes docs/reference/rules.md: every op that the installed torch can dispatch, and by which formula it is counted.

Run `python docs/tables/rules.py` after a rule or the installed torch changes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bitwatt.registry import RULES

TARGET = Path(__file__).parents[1] / "reference" / "rules.md"
STATUSES = ("counted", "free", "missing")


def ops() -> list[str]:
    """Every op of the dispatcher; one in place stands on the line of its functional twin, whose rule it shares."""
    import torch

    names = {name.split(".")[0].replace("::", ".", 1) for name in torch._C._dispatch_get_all_op_names()}
    return sorted(name for name in names if not (name.endswith("_") and name.rstrip("_") in names))


def row(name: str) -> tuple[str, str, str, str]:
    """Name, status, family, formula."""
    rule = RULES.find(name)
    if rule is None:
        return name, "missing", "", ""
    status = "free" if rule.function is None else "counted"
    return name, status, rule.family, " ".join(rule.formula.split()).replace("|", "\\|")


def page(rows: list[tuple[str, str, str, str]], version: str) -> str:
    spaces = sorted({name.split(".")[0] for name, *_ in rows})
    tally = Counter((name.split(".")[0], status) for name, status, *_ in rows)
    lines = [
        "# Rules",
        "",
        f"Every op that torch {version} can dispatch. *Counted*: a rule turns it into work. *Free*: it does none, on",
        "purpose. *Missing*: no rule; a report lists such calls and never prices them at 0. In-place ops and `out=`",
        "variants use the rule of the op they belong to. Written by `docs/tables/rules.py`.",
        "",
        "| namespace | counted | free | missing |",
        "|---|---:|---:|---:|",
    ]
    for space in spaces:
        lines.append(f"| {space} | " + " | ".join(str(tally[space, status]) for status in STATUSES) + " |")
    totals = Counter(status for _, status, *_ in rows)
    lines.append("| **all** | " + " | ".join(f"**{totals[status]}**" for status in STATUSES) + " |")
    for space in spaces:
        lines += ["", f"## {space}", "", "| op | status | family | formula |", "|---|---|---|---|"]
        lines += [f"| `{name}` | {' | '.join(rest)} |" for name, *rest in rows if name.split(".")[0] == space]
    return "\n".join(lines) + "\n"


def main() -> None:
    import torch

    rows = [row(name) for name in ops()]
    TARGET.write_text(page(rows, torch.__version__.partition("+")[0]), encoding="utf-8")
    print(f"{TARGET}: {dict(Counter(status for _, status, *_ in rows))}")


if __name__ == "__main__":
    main()
