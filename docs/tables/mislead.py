"""Writes docs/images/flops-mislead.svg for docs/concepts/flops.md, from what benchmarks/energy.py measured on an H200.

python docs/tables/mislead.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
DATA, TARGET = DOCS / "tables" / "energy-h200.json", DOCS / "images" / "flops-mislead.svg"
NAMES = {"resnet": "ResNet-18", "transformer": "transformer", "gpt2": "GPT-2 small"}
COLOURS = {"float32": "#4053d3", "tf32": "#ddb310", "bfloat16": "#00b25d"}
WIDTH, LEFT, TOP, HEIGHT, BAR, GAP = 760, 56, 56, 190, 14, 26


def steps(rows: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Network -> precision -> what one step takes, as a share of the float32 step's."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        one = {"FLOPs": row["tflop"], "BOPs": row["tbop"], "joules": row["joules"], "seconds": row["seconds"]}
        step = {name: value / row["steps"] for name, value in one.items()}
        found.setdefault(row["network"], {})[row["precision"]] = step
    for network in found.values():
        whole = dict(network["float32"])
        for step in network.values():
            step.update({name: value / whole[name] for name, value in step.items()})
    return found


def picture(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """A panel for each network; in it three bars, one for each precision, for each of four quantities."""
    tallest = max(share for network in found.values() for step in network.values() for share in step.values())
    scale, panel, parts = HEIGHT / tallest, (WIDTH - LEFT) / len(found), []
    room = panel - GAP
    for share in (0.5, 1.0):
        y = TOP + HEIGHT - share * scale
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 10}" stroke="#ccc" stroke-dasharray="3 3"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    for index, (network, precisions) in enumerate(found.items()):
        left = LEFT + index * panel
        parts.append(f'<text x="{left + room / 2:.1f}" y="{TOP - 8}" text-anchor="middle">{NAMES[network]}</text>')
        for place, quantity in enumerate(next(iter(precisions.values()))):
            middle = left + (place + 0.5) * room / 4
            parts.append(
                f'<text x="{middle:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="middle" font-size="11">{quantity}</text>'
            )
            for number, (precision, step) in enumerate(precisions.items()):
                tall = step[quantity] * scale
                x = middle + (number - 1.5) * BAR
                parts.append(
                    f'<rect x="{x:.1f}" y="{TOP + HEIGHT - tall:.1f}" width="{BAR - 2}" height="{tall:.1f}" '
                    f'fill="{COLOURS[precision]}"><title>{NAMES[network]}, {precision}: {quantity} '
                    f"{step[quantity]:.0%} of float32</title></rect>"
                )
    below = TOP + HEIGHT + 38
    parts += [
        f'<rect x="{LEFT + 110 * i}" y="{below}" width="12" height="12" rx="2" fill="{colour}"/>'
        f'<text x="{LEFT + 18 + 110 * i}" y="{below + 11}">{name}</text>'
        for i, (name, colour) in enumerate(COLOURS.items())
    ]
    title = "One training step on an H200, as a share of the same step in float32"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {below + 26}" font-family="sans-serif" '
        f'font-size="13" fill="#444"><title>{title}</title><rect width="100%" height="100%" rx="6" fill="#fff"/>'
        f'<text x="{LEFT}" y="22" font-weight="bold">{title}</text>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    TARGET.write_text(picture(steps(json.loads(DATA.read_text(encoding="utf-8")))), encoding="utf-8")
    print(TARGET)


if __name__ == "__main__":
    main()
