"""What holds a phase up, with the evidence."""

from __future__ import annotations

from dataclasses import replace

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
    assert classify(Spent(1.0, 0.9), WORK, 10**11, None, name="A GPU") == Bound(
        "unknown", {"device_busy_share": 0.9, "launch_share": pytest.approx(0.1)}, "no peak is known for 'A GPU'"
    )


def test_element_wise_work_is_held_against_the_vector_units() -> None:
    found = classify(Spent(1.0), [Executed("f", "vector", "float32", 10**11)], 8 * 10**11, H200)
    assert found.bound == "memory"
    assert found.evidence["ridge_flop_per_byte"] == pytest.approx(66.9 / 4.8)


SMALL = [Executed("forward", "vector", "float32", 10**6)]


@pytest.mark.parametrize(
    ("spent", "bound"),
    [
        (Spent(1.0, calls=100_000), "launch"),  # 10 µs each: what issuing one takes
        (Spent(1.0, calls=20_000), "unknown"),  # 50 µs each, and nobody knows what the host did
        (Spent(1.0, calls=20_000, host_s=1.0), "launch"),
        (Spent(1.0, calls=20_000, host_s=1.1, idle=0.8), "launch"),
        (Spent(1.0, calls=20_000, host_s=0.3), "unknown"),  # the host ran ahead
        (Spent(1.0, calls=2_000, host_s=1.0), "unknown"),  # 500 µs each: they are not small
        (Spent(1.0, calls=20_000, host_s=1.0, idle=0.01), "memory"),  # the device was busy: the host waited for it
        (Spent(1.0, calls=100_000, idle=0.01), "memory"),
    ],
)
def test_many_small_ops_are_held_up_by_their_launching(spent: Spent, bound: str) -> None:
    found = classify(spent, SMALL, 8 * 10**6, H200)
    assert found.bound == bound
    if bound == "launch":
        assert (
            f"{spent.calls:,} ops, {10**6 // spent.calls} µs each; their work at peak is < 0.1 % of that" in found.why
        )
    if bound == "memory":
        assert "the device was busy, its kernels are far from both" in found.why


def test_large_work_in_many_calls_is_not_held_up_by_launching() -> None:
    work = [Executed("f", "matrix", "bfloat16", 7 * 10**14)]
    found = classify(Spent(1.0, calls=100_000, host_s=1.0), work, 10**11, H200)
    assert found.bound == "compute"


def test_without_peaks_only_the_pace_of_ops_can_be_told() -> None:
    assert classify(Spent(1.0, calls=200_000), SMALL, 10**6, None).bound == "launch"
    assert classify(Spent(1.0, calls=20_000, host_s=1.0), SMALL, 10**6, None).bound == "unknown"


def test_one_roof_alone_says_it_where_most_of_the_time_goes_there() -> None:
    assert H200 is not None
    half = [Executed("f", "matrix", "bfloat16", 6 * 10**14)]
    assert classify(Spent(1.0), half, None, H200).bound == "compute"
    assert classify(Spent(1.0), WORK, None, H200).why == "the bytes it moved are not known"
    no_bandwidth = replace(H200, bandwidth=None)
    assert (
        classify(Spent(1.0), WORK, 10**11, no_bandwidth).why == "the bandwidth of NVIDIA H200 SXM 141 GB is not known"
    )
    odd = [Executed("f", "matrix", "float7", 10**14)]
    assert classify(Spent(1.0), odd, 10**11, H200, name="it").why == "no peak of it is known for float7"
    assert classify(Spent(1.0), odd, 4 * 10**12, H200).bound == "memory"  # 83 % of the bandwidth, whatever it computes


def test_copies_alone_are_held_up_by_memory_and_nothing_by_nothing() -> None:
    assert classify(Spent(1.0), [], 4 * 10**12, H200).bound == "memory"
    assert classify(Spent(1.0), [], 0, H200).why == "no work was counted in it"
    assert classify(Spent(1.0), WORK, 0, H200).why == "it moved no byte"


def test_more_than_the_peak_is_told() -> None:
    assert "more than the peak" in classify(Spent(0.05), WORK, 10**11, H200).why
