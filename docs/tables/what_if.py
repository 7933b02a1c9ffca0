"""Writes docs/images/what-if.svg, the plot of docs/guides/what-if.md: the program of that page in four formats.

Run `python docs/tables/what_if.py` after the plot or a cost model changes.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import bitwatt

TARGET = Path(__file__).parents[1] / "images" / "what-if.svg"


def main() -> None:
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512))
    with torch.no_grad(), bitwatt.measure("mlp", keep=False) as session:
        model(torch.randn(8, 512))
    bitwatt.sweep(session.run, formats=("fp32", "fp16", "int8", "int4")).save(TARGET)
    print(TARGET)


if __name__ == "__main__":
    main()
