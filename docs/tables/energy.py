"""Writes docs/images/energy-h200.svg and the table in docs/energy.md, from what benchmarks/energy.py measured.

python docs/tables/energy.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
DATA, PICTURE = DOCS / "tables" / "energy-h200.json", DOCS / "images" / "energy-h200.svg"
PAGE = DOCS / "energy.md"
BEGIN, END = "<!-- energy-h200 -->", "<!-- /energy-h200 -->"
NAMES = {"resnet": "ResNet-18, 32 x 3x32x32", "transformer": "transformer, 8 x 128", "gpt2": "GPT-2 small, 4 x 256"}
COLOURS = {"float32": "#4053d3", "tf32": "#ddb310", "bfloat16": "#00b25d"}


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| network | precision | steps/s | mean power | J/TFLOP | forward | backward | optimizer |",
        "|---|---|" + "--:|" * 6,
    ]
    for row in rows:
        shares = [100 * row["phases"].get(phase, 0.0) / row["joules"] for phase in ("forward", "backward", "optimizer")]
        cells = [
            NAMES[row["network"]],
            row["precision"],
            f"{row['steps'] / row['seconds']:.0f}",
            f"{row['mean_w']:.0f} W",
        ]
        cells += [f"{row['joules'] / row['tflop']:.1f}", *[f"{share:.0f} %" for share in shares]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def picture(rows: list[dict[str, Any]]) -> str:
    """Bars, one for each network and precision, with their J/TFLOP written beside them."""
    width, label, bar, gap = 680, 190, 20, 16
    values = [row["joules"] / row["tflop"] for row in rows]
    scale, y, parts = (width - label - 60) / max(values), 10, []
    for index, (row, value) in enumerate(zip(rows, values, strict=True)):
        if not index % 3:
            y += gap
            name = NAMES[row["network"]]
            parts.append(f'<text x="{label - 10}" y="{y + 1.5 * bar + 5}" text-anchor="end">{name}</text>')
        colour = COLOURS[row["precision"]]
        parts.append(
            f'<rect x="{label}" y="{y}" width="{value * scale:.1f}" height="{bar - 3}" rx="2" fill="{colour}"/>'
            f'<text x="{label + value * scale + 6:.1f}" y="{y + 13}">{value:.1f}</text>'
        )
        y += bar
    legend = "".join(
        f'<rect x="{label + 110 * i}" y="{y + 22}" width="12" height="12" rx="2" fill="{colour}"/>'
        f'<text x="{label + 18 + 110 * i}" y="{y + 32}">{name}</text>'
        for i, (name, colour) in enumerate(COLOURS.items())
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + 50}" font-family="sans-serif"'
    title = "<title>Joules per TFLOP of training steps on an H200</title>"
    caption = f'<text x="{label}" y="14" font-weight="bold">J per TFLOP, less is better</text>'
    paper = '<rect width="100%" height="100%" rx="6" fill="#fff"/>'
    return f'{head} font-size="13" fill="#444">{title}{paper}{caption}{"".join(parts)}{legend}</svg>\n'


def main() -> None:
    rows = json.loads(DATA.read_text())
    PICTURE.write_text(picture(rows))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{after}")


if __name__ == "__main__":
    main()
