"""A whole study of a real model: all parts, in real processes; and what a part that fails costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from toy_runtimes import install, toy

from bitwatt.deploy import plans, statistics, study
from bitwatt.deploy.documents import as_json, of_json
from bitwatt.deploy.given import loading
from bitwatt.deploy.records import CONTROL, Call, Case, Plan, Scenario, Study
from bitwatt.deploy.runtimes import RUNTIMES
from bitwatt.errors import UnknownNameError

TINY = Plan(batches=(1, 16), processes=3, blocks=5, block_ms=1.0, fresh=1, loaded=False)


def logistic() -> Case:
    chance = np.random.default_rng(0)
    X = chance.normal(size=(300, 6)).astype(np.float32)
    y = (X[:, 0] + 0.3 * chance.normal(size=300) > 0).astype(int)
    return loading.case(LogisticRegression().fit(X, y), X, y)


@pytest.mark.slow
def test_a_study_has_all_that_was_found_out(tmp_path: Path) -> None:
    told: list[tuple[float, float, str]] = []
    plan = plans.plan(quick=True, batches=(1, 16), processes=3, fresh=1, load_seconds=0.2,
                      scenarios=("sklearn-fp64", "numpy", "onnx-fp32"))  # fmt: skip
    found, calls = study.measure(logistic(), None, plan, tmp_path, lambda *at: told.append(at))
    assert [row.name for row in found.scenarios] == ["sklearn-fp64", "numpy", "onnx-fp32"]
    for row in found.scenarios:
        assert row.failure == ""
        assert row.quality is not None
        assert set(row.footprint) == set(row.counts) == set(row.breakdown) == {1, 16}
        assert set(row.joules) == {"1x1", "16x1"}
        assert row.joules["1x1"].cpu_seconds
        assert row.load is not None
        assert row.load.points
    assert {call.scenario for call in calls} == {"sklearn-fp64", "numpy", "onnx-fp32", "sklearn-fp64" + CONTROL}
    quick = statistics.compare(calls, "onnx-fp32", "sklearn-fp64", 1, 1)
    assert quick is not None
    assert quick.verdict == "faster"
    assert not [note for note in found.notes if "failed" in note]
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == pytest.approx(told[-1][1])
    assert found.surroundings["cores"] >= 1
    assert of_json(Study, as_json(found)).scenarios == found.scenarios


def test_a_part_that_fails_costs_its_own_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of somebody else's that answers nonsense, and one that dies: the rest is known."""
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(install(packages)))
    vars(RUNTIMES).pop("_known", None)
    rows = [
        Scenario("good", "toy", artefact=toy("good"), baseline="native"),
        Scenario("dead", "toy", artefact=toy("dead", fails="exit")),  # it would end this process, too
        Scenario("unfit", "toy", failure="cannot be converted"),
    ]
    kept: list[tuple[Study, list[Call]]] = []
    found, calls = study.measure(logistic(), rows, TINY, tmp_path / "out", so_far=lambda *at: kept.append(at))
    vars(RUNTIMES).pop("_known", None)
    named = {row.name: row for row in found.scenarios}
    assert list(named) == ["good", "dead", "unfit"]
    assert "out of luck" in named["dead"].failure
    assert named["unfit"].failure == "cannot be converted"
    assert {call.scenario for call in calls} == {"good", "good" + CONTROL}
    assert named["good"].footprint[16].peak_uss_mb
    assert named["good"].joules["16x1"].cpu_seconds
    assert named["unfit"].footprint == {}
    # What was known is kept as it grows: by process, then by part.
    assert [len({call.process for call in known}) for _, known in kept[:3]] == [1, 2, 3]
    assert [bool(row.joules) for row in kept[0][0].scenarios] == [False, False, False]
    assert kept[-1][0].scenarios == found.scenarios
    assert kept[-1][1] == calls


def test_a_study_that_is_cut_short_knows_what_its_scenarios_compute(tmp_path: Path) -> None:
    told: list[str] = []

    def stop(found: Study, calls: list[Call]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(study.InterruptedStudy) as ended:
        study.measure(logistic(), None, replace(TINY, processes=9, scenarios=("sklearn-fp64",)), tmp_path,
                      lambda done, of, what: told.append(what), so_far=stop)  # fmt: skip
    (row,) = ended.value.study.scenarios
    assert ended.value.during == "timing"
    assert {call.process for call in ended.value.calls} == {0}
    assert [one.macs for one in row.counts.values()] == [6, 16 * 6], "a row has six products"
    assert told.index("building") < told.index("counting") < told.index("timing")
    assert row.breakdown == {}


def test_a_scenario_that_cannot_be_counted_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies when it is watched, and nowhere else."""
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(install(packages)))
    rows = [Scenario("good", "toy", artefact=toy("good"), baseline="native"),
            Scenario("shy", "toy", artefact=toy("shy", fails="watched"))]  # fmt: skip
    vars(RUNTIMES).pop("_known", None)
    found, calls = study.measure(logistic(), rows, replace(TINY, batches=(1,)), tmp_path / "out")
    vars(RUNTIMES).pop("_known", None)
    good, shy = found.scenarios
    assert shy.failure == ""
    assert any(call.scenario == "shy" for call in calls)
    assert "ended with 3 while its operations were counted: seen" in shy.counts[1].source
    assert good.counts[1].source.startswith("not counted: no rule")
    assert len([note for note in found.notes if note.startswith("shy could not be looked into: ")]) == 1


def test_a_scenario_that_nobody_knows_is_the_callers_to_hear_of(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        study.measure(logistic(), None, Plan(scenarios=("onnx-fp3",)), tmp_path)


def test_plans_differ_by_how_much_repeats() -> None:
    quick, usual, thorough = plans.plan(quick=True), plans.plan(), plans.plan(thorough=True)
    assert 8 <= quick.processes < usual.processes < thorough.processes
    assert quick.blocks < usual.blocks < thorough.blocks
    assert plans.plan(quick=True, batches=(7,)).batches == (7,)
