"""What predicts joules: the statistics behind the answer."""

from __future__ import annotations

import math

import pytest
from examples.paper.thesis import pairs_right, rank_correlation, typical_factor, verdict


def test_rank_correlation_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for a, b in (([1, 2, 3, 4], [10, 20, 15, 40]), ([1, 1, 2, 3, 3], [5, 4, 9, 9, 1]), ([1, 2, 3], [3, 2, 1])):
        assert rank_correlation(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)


def test_what_is_constant_ranks_nothing() -> None:
    assert rank_correlation([7, 7, 7], [1, 2, 3]) is None


def test_a_scale_is_no_error_and_a_factor_is() -> None:
    assert typical_factor([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    # logs of truth over prediction are 0, 0, log 4 and log 4: the scale is in the middle, 2, and all are off by 2
    assert typical_factor([1, 1, 1, 1], [1, 1, 4, 4]) == pytest.approx(2)
    assert math.isclose(typical_factor([1, 10], [1, 1000]), 10)


def test_pairs_within_a_network() -> None:
    assert pairs_right([([1, 2], [5, 9])]) == (1, 1)
    assert pairs_right([([2, 1], [5, 9])]) == (0, 1)
    assert pairs_right([([1, 1], [5, 9])]) == (0.5, 1)  # equal predictions are half right
    assert pairs_right([([2, 1], [100, 104])]) == (0, 0)  # too near to call
    assert pairs_right([([1, 2], [5, 9]), ([2, 1], [5, 9])]) == (0.5, 2)


def test_the_verdict_names_the_best_model_of_bit_operations() -> None:
    points = [
        {"counts": {"flops": 5, "bops": n, "bops:paper": -n, "bytes": n}, "joules": n, "seconds": -n} for n in (1, 2, 3)
    ]
    assert verdict(points) == "joules: 1.00 (`bops`) against 0.00; seconds: 1.00 (`bops:paper`) against 0.00"
