"""What predicts joules: the statistics behind the answer."""

from __future__ import annotations

import json
import math

import pytest
from examples.paper import energy, gpu, thesis
from examples.paper.thesis import in_order, lead, pairs_right, rank_correlation, typical_factor, verdict


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


def test_a_lead_is_shown_where_drawing_the_points_anew_cannot_undo_it() -> None:
    points = [{"counts": {"flops": 5, "bops": n}, "joules": n, "seconds": n % 2} for n in range(12)]
    low, high = lead(points, "bops", "flops")
    assert 0.9 < low <= high <= 1
    assert lead(points, "bops", "bops") == (0, 0)
    joules, seconds = verdict(points).split("; ")
    assert joules.startswith("joules: shown, 1.00 against 0.00 (lead ")
    assert seconds.startswith("seconds: not shown, ")
    refuted = [point | {"joules": -point["joules"]} for point in points]
    assert verdict(refuted).startswith("joules: refuted, -1.00 against 0.00")


def test_what_the_page_says_in_words_is_what_was_measured() -> None:
    """Other measurements may want another answer: then `energy.ANSWER` is to be written anew."""
    points = energy.later(json.loads(gpu.TARGET.read_text(encoding="utf-8")))
    plain = [point for point in points if point["precision"] in gpu.TRAINING]
    joules = {name: thesis.rank(points, name) for name in points[0]["counts"]}
    seconds = {name: thesis.rank(points, name, "seconds") for name in points[0]["counts"]}
    assert joules["flops"] < joules["bops:product"] < joules["bops"] < joules["tf32"] < joules["bytes"]
    assert seconds["flops"] < seconds["bops"] < seconds["bytes"]
    assert max(seconds, key=lambda name: seconds[name]) == max(joules, key=lambda name: joules[name]) == "bytes"
    assert thesis.rank(plain, "bops") < thesis.rank(plain, "tf32")
    assert lead(points, "bops", "flops")[0] > 0 > lead(points, "bops", "flops", "seconds")[0]
    for one, other in (("bops", "bops:product"), ("bytes", "bops")):
        for target in ("joules", "seconds"):
            low, high = lead(points, one, other, target)
            assert low < 0 < high
    flops, by_bytes, bops = (in_order(points, name, "joules")[0] for name in ("flops", "bytes", "bops"))
    assert flops < by_bytes < bops
    assert in_order(plain, "flops", "seconds") < in_order(plain, "bops", "seconds")
    assert in_order(points, "flops", "seconds") > in_order(points, "bops", "seconds")
    errors = {
        name: typical_factor([p["counts"][name] for p in points], [p["joules"] for p in points]) for name in joules
    }
    assert min(errors, key=lambda name: errors[name]) == "bytes"
    said = energy.answer(points, plain)
    assert f"FLOPs, {joules['bops']:.2f} against {joules['flops']:.2f} (" in said
    assert "0.50 and 1.81 times in INT8" in said
