"""What holds a phase up, with the evidence."""

from __future__ import annotations

import pytest

from bitwatt.hardware.catalogue import find
from bitwatt.impact.bound import Bound, Spent, classify
from bitwatt.impact.work import Executed

H200 = find("NVIDIA H200")
#: bf16: 989.4e12 / 4.8e12 = 206 FLOP for each byte at the ridge.
WORK = [Executed("forward", "matrix", "bfloat16", 10**14)]


@pytest.mark.parametrize(
    ("spent", "moved", "bound"),
    [
        (Spent(1.0), 10**11, "compute"),  # 1000 FLOP/B
        (Spent(1.0), 10**12, "memory"),  # 100 FLOP/B
        (Spent(1.0, 0.9, 0.05, 0.0), 10**11, "compute"),
        (Spent(1.0, 0.3, 0.6, 0.05), 10**11, "input"),
        (Spent(1.0, 0.3, 0.1, 0.55), 10**11, "communication"),
        (Spent(1.0, 0.2, 0.1, 0.1), 10**11, "launch"),
        (Spent(1.0, 0.2, None, None, 1000), 10**11, "launch"),
        (Spent(1.0, None, 0.7), 10**11, "input"),
        (Spent(0.0), 10**11, "unknown"),
        (Spent(1.0), None, "unknown"),
    ],
)
def test_the_rule(spent: Spent, moved: int | None, bound: str) -> None:
    assert classify(spent, WORK, moved, H200).bound == bound


def test_the_evidence_stands_beside() -> None:
    found = classify(Spent(1.0, 0.8), WORK, 10**12, H200)
    assert found.evidence["flop_per_byte"] == 100
    assert found.evidence["ridge_flop_per_byte"] == pytest.approx(989.4 / 4.8)
    assert found.evidence["of_bandwidth"] == pytest.approx(1 / 4.8 / 0.8)
    assert str(found).startswith("memory-bound: 100 FLOP/B is below the ridge at 206; ")
    assert "modelled" in found.why


def test_launches_are_told_with_the_gap_of_each_op() -> None:
    found = classify(Spent(1.0, 0.2, 0.0, 0.0, 100_000), WORK, 10**11, H200)
    assert str(found) == (
        "launch-bound: the device had nothing to do 80.0 % of the time, "
        "with no wait for data or ranks seen, 8 µs for each op"
    )


def test_waits_are_told_without_a_known_device_and_roofs_are_not() -> None:
    assert classify(Spent(1.0, 0.1, 0.8), [], None, None).bound == "input"
    assert classify(Spent(1.0, 0.9), WORK, 10**11, None) == Bound(
        "unknown", {"device_busy_share": 0.9, "launch_share": pytest.approx(0.1)}, "the device's peaks are not known"
    )


def test_element_wise_work_is_held_against_the_vector_units() -> None:
    found = classify(Spent(1.0), [Executed("f", "vector", "float32", 10**9)], 8 * 10**9, H200)
    assert found.bound == "memory"
    assert found.evidence["ridge_flop_per_byte"] == pytest.approx(66.9 / 4.8)
