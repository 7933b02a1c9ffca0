"""What the raw times show: pure functions of the calls. Make a `Table` once where several questions are asked."""

from __future__ import annotations

from bitwatt.deploy.statistics.controls import Control, control
from bitwatt.deploy.statistics.percentiles import Times, cells
from bitwatt.deploy.statistics.table import Key, Table
from bitwatt.deploy.statistics.verdicts import (
    EQUIVALENT,
    FASTER,
    MARGIN,
    NO_DIFFERENCE,
    SLOWER,
    Comparison,
    compare,
    compared,
)

__all__ = [
    "EQUIVALENT", "FASTER", "MARGIN", "NO_DIFFERENCE", "SLOWER", "Comparison", "Control", "Key", "Table", "Times",
    "cells", "compare", "compared", "control",
]  # fmt: skip
