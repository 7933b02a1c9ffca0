"""What bitwatt counts for one call of an estimator, and the operations of one work."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bitwatt
from bitwatt.records import Work

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks" / "accuracy"))

import estimators


def counted(call: Callable[[], Any]) -> tuple[Any, bitwatt.Run]:
    """Its result and its run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimators.counted(call)


def flops(call: Callable[[], Any]) -> int:
    """No op may be missing."""
    return bitwatt.totals(counted(call)[1], strict=True).total


def amount(work: Work) -> int:
    """FLOPs of one work: all but comparisons."""
    return 2 * work.macs + sum(n for kind, _, _, n in work.ops if kind != "compare")
