"""Times of scenarios, in real fresh processes that print, raise, die and hang."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from toy_runtimes import install, toy

from bitwatt.deploy import statistics
from bitwatt.deploy.measuring import batching
from bitwatt.deploy.measuring.timing import Timed, timed
from bitwatt.deploy.records import CONTROL, Artefact, Plan

PLAN = Plan(batches=(1, 16), processes=2, blocks=6, block_ms=1.0, cell_s=5.0)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(install(packages)))
    return batching.save(np.arange(400.0).reshape(100, 4), tmp_path / "rows")


def time_them(rows: Path, *artefacts: Artefact, plan: Plan = PLAN, baseline: str = "", hangs_s: float = 120.0) -> Timed:
    known = {artefact.scenario: artefact for artefact in artefacts}
    return timed(known, rows, plan, rows.parent / "work", baseline=baseline, timeout_s=hangs_s)


def test_every_block_has_all_scenarios_in_an_order_of_its_own(rows: Path) -> None:
    found = time_them(rows, toy("a"), toy("b"), toy("c"), baseline="a")
    assert not found.failures
    names = {"a", "b", "c", "a" + CONTROL}
    blocks: dict[tuple[int, int, int], dict[str, int]] = {}
    for call in found.calls:
        blocks.setdefault((call.process, call.batch, call.block), {})[call.scenario] = call.position
    assert len(blocks) == 2 * 2 * 6
    assert all(set(block) == names and sorted(block.values()) == [0, 1, 2, 3] for block in blocks.values())
    assert len({tuple(sorted(block, key=block.__getitem__)) for block in blocks.values()}) > 8
    assert all(call.wall_ns >= 50_000 and call.cpu_ns >= 0 for call in found.calls)


def test_a_known_difference_is_found_and_a_scenario_equals_itself(rows: Path) -> None:
    plan = Plan(batches=(1,), processes=6, blocks=10, block_ms=2.0)
    found = time_them(rows, toy("slow", us=150), toy("quick", us=100), plan=plan, baseline="slow")
    table = statistics.Table(found.calls)
    quick = statistics.compare(table, "quick", "slow", 1, 1)
    assert quick is not None
    assert quick.verdict == "faster"
    assert quick.ratio == pytest.approx(1.5, rel=0.1)
    control = statistics.control(table)
    assert control.passed, control.told
    assert control.rate is not None
    assert control.rate < 0.07
    turned = statistics.compare(table, "slow", "quick", 1, 1)
    assert turned is not None
    assert turned.verdict == "slower"


def test_what_a_model_prints_is_no_result(rows: Path) -> None:
    found = time_them(rows, toy("loud", prints=True), toy("calm"))
    assert {call.scenario for call in found.calls} == {"loud", "calm"}


@pytest.mark.parametrize(
    ("manners", "said"),
    [
        ({"fails": "load"}, "could not be loaded: ValueError: this model is broken"),
        ({"fails": "exit", "after": 20}, "ended with 3 at batch size"),
        ({"fails": "exit"}, "out of luck"),
        ({"fails": "crash"}, "SIGABRT"),
        ({"fails": "hang"}, "hung for 15 s"),
    ],
)
def test_a_scenario_that_dies_costs_itself_alone(rows: Path, manners: dict[str, object], said: str) -> None:
    plan = Plan(batches=(1, 16), processes=1, blocks=5, block_ms=0.5)
    found = time_them(rows, toy("bad", **manners), toy("good"), plan=plan, baseline="bad", hangs_s=15.0)
    assert set(found.failures) == {"bad"}
    assert said in found.failures["bad"]
    assert {call.scenario for call in found.calls} == {"good"}
    assert {call.batch for call in found.calls} == {1, 16}


def test_a_scenario_that_raises_at_one_batch_size_has_the_others(rows: Path) -> None:
    found = time_them(rows, toy("small", fails="large"), toy("good"))
    assert not found.failures
    assert {call.batch for call in found.calls if call.scenario == "small"} == {1}
    assert {call.batch for call in found.calls if call.scenario == "good"} == {1, 16}
    assert found.notes == ["small fails at batch size 16 with 1 thread: ValueError: no rows like these"]


def test_blocks_before_steady_state_are_kept_and_marked(rows: Path) -> None:
    plan = Plan(batches=(1,), processes=1, blocks=20, block_ms=2.0)
    found = time_them(rows, toy("late", us=100, cold=3), plan=plan)  # its first 40 calls are slow
    cold = [call for call in found.calls if not call.warm]
    assert {call.block for call in cold} == set(range(len({call.block for call in cold})))
    assert np.median([call.wall_ns for call in cold]) > 250_000
    warm = [call.wall_ns for call in found.calls if call.warm]
    assert np.median(warm) < 150_000
    assert statistics.cells(found.calls)["late", 1, 1].calls == len(warm)


def test_progress_ends_where_it_should(rows: Path) -> None:
    told: list[tuple[float, float]] = []
    timed({"a": toy("a")}, rows, PLAN, rows.parent / "w", progress=lambda done, of, what: told.append((done, of)))
    assert told == sorted(told)
    assert all(0 <= done <= of == 2 for done, of in told)


def test_slow_scenarios_have_fewer_blocks_and_no_fewer_than_five(rows: Path) -> None:
    plan = Plan(batches=(1,), processes=1, blocks=100, block_ms=1.0, cell_s=0.1)
    found = time_them(rows, toy("slow", us=20_000), plan=plan)
    assert len({call.block for call in found.calls}) == 5


def test_batches_change_from_call_to_call_and_wrap_round() -> None:
    rows = np.arange(10)
    assert [list(batch) for batch in batching.batches(rows, 4, 64)][:2] == [[0, 1, 2, 3], [1, 2, 3, 4]]
    assert list(batching.batch(rows, 8, 4)) == [8, 9, 0, 1]
    assert len(batching.batch(rows, 3, 25)) == 25
    assert len({tuple(batch) for batch in batching.batches(np.arange(5000), 1, 64)}) == 64
    assert batching.batch(["a", "b", "c"], 2, 2) == ["c", "a"]
    assert [len(part) for part in batching.batch((rows, rows), 8, 4)] == [4, 4]


def test_tensors_come_back_as_tensors_or_as_arrays(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    inputs = (torch.arange(6.0).reshape(3, 2), torch.tensor([1, 2, 3]))
    path = batching.save(inputs, tmp_path / "rows")
    for before, after in zip(inputs, batching.load(path), strict=True):
        assert torch.equal(before, after)
    assert all(isinstance(part, np.ndarray) for part in batching.load(path, tensors=False))
    half = batching.load(batching.save(torch.ones(2, dtype=torch.bfloat16), tmp_path / "half"))
    assert half.dtype is torch.bfloat16
