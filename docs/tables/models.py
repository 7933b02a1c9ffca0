"""Writes docs/reference/cost-models-table.md: every built-in cost model with its unit, formula and source.

Run `python docs/tables/models.py` after a cost model changes. docs/concepts/cost-models.md includes the table.
"""

from __future__ import annotations

from pathlib import Path

from bitwatt.pricing import CostModel, cost_models

TARGET = Path(__file__).parents[1] / "reference" / "cost-models-table.md"


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def table(models: list[CostModel]) -> str:
    lines = ["| name | unit | formula | source |", "|---|---|---|---|"]
    lines += [f"| `{m.name}` | {m.unit} | {cell(m.about)} | {cell(m.source)} |" for m in models]
    return "\n".join(lines) + "\n"


def built_in() -> list[CostModel]:
    """Those that come with bitwatt: what a plug-in on this machine adds is no part of its documentation."""
    models = (model for model in cost_models().values() if model.charges.__module__.startswith("bitwatt."))
    return sorted(models, key=lambda model: model.name)


def main() -> None:
    models = built_in()
    TARGET.write_text(table(models), encoding="utf-8")
    print(f"{TARGET}: {len(models)} cost models")


if __name__ == "__main__":
    main()
