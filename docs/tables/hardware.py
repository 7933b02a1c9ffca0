"""Writes docs/reference/hardware-table.md: every device of the catalogue with its peaks and their source.

Run `python docs/tables/hardware.py` after a file in src/bitwatt/hardware changes.
docs/reference/hardware.md includes the table.
"""

from __future__ import annotations

from pathlib import Path

from bitwatt.config import PEAKS
from bitwatt.hardware.catalogue import Chip, chips

TARGET = Path(__file__).parents[1] / "reference" / "hardware-table.md"
FORMATS = [name for name in PEAKS if name != "bandwidth"]


def rate(value: float) -> str:
    return f"{value / 1e12:,.4g}" if value < 1e15 else f"{value / 1e12:,.0f}"


def cell(chip: Chip, name: str) -> str:
    """Dense, and sparse behind a bar."""
    dense, sparse = chip.peaks.get(name), chip.sparse.get(name)
    if dense is None:
        return ""
    return rate(dense.value) + (f" / {rate(sparse.value)}" if sparse else "")


def table(kind: str, found: list[Chip]) -> list[str]:
    shown = [name for name in FORMATS if any(name in chip.peaks for chip in found)]
    lines = [f"### {kind}", "", "| device | " + " | ".join(shown) + " | GB/s | TDP (W) |"]
    lines.append("|---|" + "---:|" * (len(shown) + 2))
    for chip in found:
        assert chip.bandwidth is not None
        rates = " | ".join(cell(chip, name) for name in shown)
        bandwidth, power = f"{chip.bandwidth.value / 1e9:,.5g}", f"{chip.tdp_w:g}" if chip.tdp_w else "not published"
        lines.append(f"| {chip.name} | {rates} | {bandwidth} | {power} |")
    return [*lines, ""]


def sources(found: list[Chip]) -> list[str]:
    lines = ["### Sources", "", "| device | as drivers call it | source | compared | note |", "|---|---|---|---|---|"]
    for chip in found:
        names = ", ".join(f"`{name}`" for name in chip.names)
        lines.append(f"| {chip.name} | {names} | [{chip.source}]({chip.url}) | {chip.checked} | {chip.note} |")
    return [*lines, ""]


def main() -> None:
    known = sorted(chips(), key=lambda chip: chip.name)
    lines = table("Accelerators", [chip for chip in known if chip.kind != "cpu"])
    lines += table("CPUs, one socket", [chip for chip in known if chip.kind == "cpu"])
    lines += sources(known)
    TARGET.write_text("\n".join(lines), encoding="utf-8")
    print(f"{TARGET}: {len(known)} devices")


if __name__ == "__main__":
    main()
