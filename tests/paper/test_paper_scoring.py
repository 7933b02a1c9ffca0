"""Scores of profilers: a function of returned over true value, the same for all."""

from __future__ import annotations

import pytest
from examples.paper.coverage.scoring import facet_score, precision_score, score


@pytest.mark.parametrize(
    ("returned", "points"),
    [
        (None, 0), (0, 0), (-3, 0),
        (1000, 5), (1020, 5), (1000 / 1.02, 5),
        (1021, 4), (1100, 4), (910, 4),
        (1101, 3), (1500, 3), (700, 3),
        (1501, 2), (2000, 2), (500, 2), (3000, 2),
        (3001, 1), (1, 1), (1e9, 1),
    ],
)  # fmt: skip
def test_a_score_falls_with_the_factor_between_returned_and_true(returned: float | None, points: int) -> None:
    assert score(returned, 1000) == points


def test_too_much_and_too_little_count_the_same() -> None:
    for factor in (1.01, 1.05, 1.3, 2.5, 7.0):
        assert score(1e6 * factor, 1e6) == score(1e6 / factor, 1e6)


def test_a_probe_without_a_true_value_is_an_error() -> None:
    with pytest.raises(ValueError, match="true value"):
        score(1, 0)


def test_showing_dtypes_without_resolving_packing_is_one_point() -> None:
    assert precision_score(None, 100, ()) == 0
    assert precision_score(None, 100, ("uint8", "float")) == 1
    assert precision_score(0, 100, ("uint8",)) == 1
    assert precision_score(100, 100, ()) == 5
    assert precision_score(800, 100, ()) == 1  # priced as float32: eight times too much


def test_a_facet_is_right_only_where_all_its_probes_are() -> None:
    assert facet_score([5, 5, 5]) == 5
    assert facet_score([5, 5, 4]) == 4
    assert facet_score([5, 0]) == 2
