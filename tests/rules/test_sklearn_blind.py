"""Random settings of all modules, drawn and measured without looking: judged together, as unseen ones will be."""

from __future__ import annotations

import statistics
import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))

pytest.importorskip("sklearn")

import estimators

_ROWS = [row for row in estimators.rows() if row.get("kept") == "blind"]


def _cases(step: int) -> list[estimators.Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [case for row in _ROWS[::step] for case in estimators.cases(row) if case.measured > 2000]


@pytest.mark.parametrize(("step", "slack"), [(9, 0.03), pytest.param(1, 0.0, marks=pytest.mark.slow)])
def test_settings_nobody_looked_at(step: int, slack: float) -> None:
    """A few of them may be a little worse than all."""
    cases = _cases(step)
    assert not any(case.missing for case in cases)
    for is_fit, median, share in ((True, 1.03 + slack, 0.85 - slack), (False, 1.02, 0.93 - slack)):
        found = [case for case in cases if (case.method == "fit") == is_fit]
        assert len(found) > 30
        assert statistics.median(case.error for case in found) < median
        assert statistics.median(case.bops_error for case in found) < median
        assert sum(case.error <= 1.1 for case in found) >= share * len(found)
        assert sum(case.bops_error <= 1.1 for case in found) >= (share - 0.03) * len(found)


def test_what_is_far_off_says_so() -> None:
    far = [case for case in _cases(9) if case.method == "fit" and case.error > 1.5]
    assert all(case.estimated for case in far)
