"""Writes docs/reference/onnx-rules.md: every operator of the installed onnx, and those of ONNX Runtime with a rule.

Run `python docs/tables/onnx_rules.py` after a rule or the installed onnx changes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bitwatt.registry import RULES

TARGET = Path(__file__).parents[1] / "reference" / "onnx-rules.md"
SPACES = {
    "onnx": "The default domain",
    "onnx_ml": "ai.onnx.ml",
    "onnx_preview": "ai.onnx.preview",
    "onnx_preview_training": "ai.onnx.preview.training",
    "com_microsoft": "com.microsoft",
    "com_microsoft_nchwc": "com.microsoft.nchwc",
    "com_ms_internal_nhwc": "com.ms.internal.nhwc",
}


def names() -> list[str]:
    from onnx.defs import get_all_schemas
    from onnx.helper import make_node

    from bitwatt.backends.onnx.facts import name_of

    known = {name_of(make_node(schema.name, [], [], domain=schema.domain)) for schema in get_all_schemas()}
    return sorted(known | {rule.name for rule in RULES if rule.name.partition(".")[0] in SPACES})


def row(name: str) -> tuple[str, str, str]:
    """Status, family, formula."""
    rule = RULES.find(name)
    if rule is None:
        return "missing", "", ""
    status = "free" if rule.function is None else "counted"
    return status, rule.family, " ".join(rule.formula.split()).replace("|", "\\|")


def page(version: str) -> str:
    rows = {name: row(name) for name in names()}
    tally = Counter((name.partition(".")[0], status) for name, (status, *_) in rows.items())
    lines = [
        "# ONNX operators",
        "",
        f"Every operator of onnx {version}, and those that ONNX Runtime adds and a rule covers. *Counted*: a rule",
        "turns it into work. *Free*: it does none, on purpose. *Missing*: no rule. Written by",
        "`docs/tables/onnx_rules.py`.",
        "",
        "| domain | counted | free | missing |",
        "|---|---:|---:|---:|",
    ]
    for space, title in SPACES.items():
        lines.append(
            f"| {title} | " + " | ".join(str(tally[space, of]) for of in ("counted", "free", "missing")) + " |"
        )
    for space, title in SPACES.items():
        lines += ["", f"## {title}", "", "| op | status | family | formula |", "|---|---|---|---|"]
        lines += [
            f"| `{name}` | {' | '.join(told)} |" for name, told in rows.items() if name.partition(".")[0] == space
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    import onnx

    TARGET.write_text(page(onnx.__version__), encoding="utf-8")
    print(TARGET)


if __name__ == "__main__":
    main()
