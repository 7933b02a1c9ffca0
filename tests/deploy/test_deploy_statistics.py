"""Verdicts on times whose truth is known: made with noise as it is seen, heavy in the tail and with a memory."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bitwatt.deploy import statistics
from bitwatt.deploy.records import CONTROL, Call
from bitwatt.deploy.statistics import steady
from bitwatt.deploy.statistics.ranks import holm, signed_rank
from bitwatt.deploy.statistics.ratios import ratio
from bitwatt.deploy.statistics.table import Key
from bitwatt.deploy.statistics.verdicts import judged

KEY = Key("b", 1, 1)


def noisy_logs(chance: np.random.Generator, truth: float, processes: int = 10, blocks: int = 16) -> np.ndarray:
    """Log-ratios of blocks. Processes differ (3 % as seen, one in twelve by far more), blocks remember the one before,
    and one in ten was hit by a neighbour."""
    process = 0.03 * chance.standard_t(3, size=(processes, 1))
    process += np.where(chance.random((processes, 1)) < 1 / 12, chance.normal(0, 0.2, (processes, 1)), 0.0)
    block = 0.03 * chance.standard_t(2, size=(processes, blocks))
    for index in range(1, blocks):
        block[:, index] += 0.5 * block[:, index - 1]
    hit = np.where(chance.random(block.shape) < 0.1, chance.normal(0, 0.5, block.shape), 0.0)
    return np.log(truth) + process + block + hit


def verdicts(truth: float, repeats: int, seed: int = 1) -> Counter[str]:
    chance = np.random.default_rng(seed)
    return Counter(judged(noisy_logs(chance, truth), KEY, "a").verdict for _ in range(repeats))


def test_two_that_are_the_same_are_seldom_told_apart() -> None:
    found = verdicts(1.0, 400)
    assert (found["faster"] + found["slower"]) / 400 < 0.03


@pytest.mark.parametrize("truth", [1.15, 1 / 1.15, 1.3, 1 / 1.3, 3.0])
def test_a_difference_has_the_same_verdict_again_and_again(truth: float) -> None:
    found = verdicts(truth, 100)
    assert found["faster" if truth > 1 else "slower"] / 100 > 0.95


@pytest.mark.parametrize("truth", [1.02, 1.05, 1.08, 1.1])
def test_nothing_is_faster_once_and_slower_once(truth: float) -> None:
    assert verdicts(truth, 100)["slower"] == 0
    assert verdicts(1 / truth, 100)["faster"] == 0


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    chance = np.random.default_rng(2)
    held = [abs(found.value - np.log(1.2)) < found.high - found.value
            for found in (ratio(noisy_logs(chance, 1.2)) for _ in range(200))]  # fmt: skip
    assert 0.93 <= np.mean(held) <= 1.0


def test_calls_of_one_process_show_nothing_however_many() -> None:
    logs = np.log(2) + np.random.default_rng(0).normal(0, 0.01, (1, 500))
    found = judged(logs, KEY, "a")
    assert found.verdict == "no difference shown"
    assert found.ratio == pytest.approx(2, rel=0.01)
    assert found.high == float("inf")


def test_processes_that_disagree_show_nothing_though_blocks_agree_in_each() -> None:
    """What a test on blocks alone would call highly significant."""
    chance = np.random.default_rng(0)
    logs = np.array([0.5, 0.4, -0.25, 0.3, -0.1])[:, None] + chance.normal(0, 0.01, (5, 40))
    found = judged(logs, KEY, "a")
    assert found.p < 1e-6
    assert found.verdict == "no difference shown"


def test_a_small_difference_that_is_sure_is_equivalent() -> None:
    logs = np.log(1.02) + np.random.default_rng(0).normal(0, 0.01, (8, 20))
    assert judged(logs, KEY, "a").verdict == "equivalent"
    assert judged(logs, KEY, "a", margin=0.01).verdict == "faster"


def test_a_ratio_turned_over_has_the_interval_turned_over() -> None:
    logs = noisy_logs(np.random.default_rng(3), 1.1)
    logs[2, 3:7] = np.nan
    one, other = ratio(logs), ratio(-logs)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))


def test_blocks_that_are_missing_cost_themselves() -> None:
    calls = made({"a": 100, "b": 50}, processes=6, blocks=10)
    kept = [call for call in calls if not (call.scenario == "b" and call.process == 1 and call.block < 4)]
    found = statistics.compare(kept, "b", "a", 1, 1)
    assert found is not None
    assert found.blocks == 56
    assert found.verdict == "faster"
    alone = statistics.compare([call for call in calls if call.scenario == "a"], "b", "a", 1, 1)
    assert alone is None


def test_wilcoxon_and_holm_agree_with_scipy() -> None:
    chance = np.random.default_rng(4)
    for shift in (0.0, 0.1, 0.5):
        values = np.round(chance.normal(shift, 1, 80), 1)  # with ties and zeros
        theirs = stats.wilcoxon(values, zero_method="wilcox", correction=True, method="asymptotic").pvalue
        assert signed_rank(values) == pytest.approx(theirs, rel=1e-9)
    assert signed_rank([1.0, 2.0, 3.0]) == 1.0
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def made(
    medians_us: dict[str, float],
    *,
    batches: tuple[int, ...] = (1,),
    processes: int = 8,
    blocks: int = 16,
    calls: int = 8,
) -> list[Call]:
    chance = np.random.default_rng(0)
    return [
        Call(process, block, position, name, batch, 1, index, int(wall), int(wall))
        for process in range(processes)
        for batch in batches
        for block in range(blocks)
        for position, (name, us) in enumerate(medians_us.items())
        for index, wall in enumerate(1000 * us * np.exp(chance.normal(0, 0.05, calls)))
    ]


def test_percentiles_are_of_the_calls_and_per_sample_of_the_batch() -> None:
    calls = [
        Call(0, index // 10, 0, "a", 4, 1, index % 10, 1000 * (index + 1), 500 * (index + 1)) for index in range(100)
    ]
    (times,) = statistics.cells(calls).values()
    walls = [call.wall_ns / 1e6 for call in calls]
    assert times.p50_ms == pytest.approx(np.quantile(walls, 0.5))
    assert times.p99_ms == pytest.approx(np.quantile(walls, 0.99))
    assert (times.max_ms, times.calls, times.blocks, times.processes) == (0.1, 100, 10, 1)
    assert times.ms_per_sample == pytest.approx(times.p50_ms / 4)
    assert times.per_sample("p95_ms") == pytest.approx(np.quantile(walls, 0.95) / 4)
    assert times.throughput == pytest.approx(4 / (times.p50_ms / 1000))
    assert times.cpu_per_wall == pytest.approx(0.5)
    hit = [replace(call, wall_ns=100 * call.wall_ns) if call.call == 0 else call for call in calls]
    (times,) = statistics.cells(hit).values()
    assert times.cpu_per_wall == pytest.approx(0.5)
    assert times.got < 0.1


def test_a_percentile_that_no_call_lies_beyond_is_not_known() -> None:
    (times,) = statistics.cells(made({"a": 10}, processes=1, blocks=5, calls=10)).values()
    assert times.p95_ms is not None
    assert times.p99_ms is None


def test_all_scenarios_against_a_baseline_with_the_control_apart() -> None:
    calls = made({"a": 100, "a" + CONTROL: 100, "b": 80, "c": 101, "d": 150}, batches=(1, 32))
    found = {(one.scenario, one.batch): one for one in statistics.compared(calls, "a")}
    said = {name: found[name, 32].verdict for name in ("b", "c", "d", "a" + CONTROL)}
    assert said == {"b": "faster", "c": "equivalent", "d": "slower", "a" + CONTROL: "equivalent"}
    assert found["b", 1].ratio == pytest.approx(1.25, rel=0.02)
    assert found["b", 1].low < 1.25 < found["b", 1].high
    assert "1.25x as fast" in found["b", 1].told
    assert found["b", 1].p_holm >= found["b", 1].p
    assert ("a" + CONTROL, 1) not in {(one.scenario, one.batch) for one in statistics.compared(calls, "b")}
    control = statistics.control(calls)
    assert control.baseline == "a"
    assert control.passed
    assert control.tried == 64
    assert "0 of 64" in control.told


def test_a_control_that_differs_is_told() -> None:
    control = statistics.control(made({"a": 100, "a" + CONTROL: 130}))
    assert not control.passed
    assert "told apart from itself" in control.told
    assert statistics.control(made({"a": 100})).told == "no control was timed"


def test_the_first_blocks_are_cold_where_they_are_slower() -> None:
    assert steady.cold_blocks([300, 200, 101, 100, 99, 100, 101, 100]) == 2
    assert steady.cold_blocks([100, 101, 99, 100, 101, 99]) == 0
    assert steady.cold_blocks([100, 150, 50, 100, 150, 50]) == 0  # as noisy as the rest
    assert steady.cold_blocks([5.0]) == 0
    calls = made({"a": 100}, processes=3, blocks=8)
    falling = [replace(call, wall_ns=call.wall_ns * (2 if call.block < 5 else 1)) for call in calls]
    marked, notes = steady.marked(falling)
    assert all(call.warm for call in marked)
    assert len(notes) == 1
    assert "never steady" in notes[0]


def test_the_whole_analysis_is_quick() -> None:
    names = {f"s{index}": 50.0 + 20 * index for index in range(8)} | {"s0" + CONTROL: 50.0}
    calls = made(names, batches=(1, 32, 256), processes=8, blocks=16, calls=30)
    began = time.process_time()
    table = statistics.Table(calls)
    statistics.cells(table)
    for baseline in ("s0", "s1"):
        statistics.compared(table, baseline)
    statistics.control(table)
    assert time.process_time() - began < 2.0


def test_where_neighbours_made_the_longer_one_wait_cpu_time_is_told_beside() -> None:
    calls = made({"a": 300, "b": 100})
    quiet = statistics.compare(calls, "b", "a", 1, 1)
    hit = [replace(call, wall_ns=4 * call.wall_ns) if call.scenario == "a" else call for call in calls]
    loud = statistics.compare(hit, "b", "a", 1, 1)
    assert quiet is not None
    assert loud is not None
    assert quiet.cpu_ratio == pytest.approx(3, rel=0.02)
    assert not quiet.disturbed
    assert loud.disturbed
    assert loud.ratio == pytest.approx(12, rel=0.02)
    assert f"(by CPU time {loud.cpu_ratio:.3g}x)" in loud.told
