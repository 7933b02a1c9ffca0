"""Memory and cold start of real processes, in which something is known to be held, let go or leaked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from toy_runtimes import install, toy

from bitwatt.deploy.measuring import batching, memory
from bitwatt.deploy.measuring.footprint import footprints
from bitwatt.deploy.records import Artefact, Footprint, Plan

PLAN = Plan(batches=(16, 1), fresh=1)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    packages = tmp_path / "packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(str(install(packages)))
    return batching.save(np.ones((64, 4)), tmp_path / "rows")


def weighed(rows: Path, *artefacts: Artefact, plan: Plan = PLAN) -> dict[str, dict[int, Footprint]]:
    found, failures = footprints({one.scenario: one for one in artefacts}, rows, plan, rows.parent / "work")
    assert not failures
    return found


def test_what_is_held_let_go_and_leaked_is_seen(rows: Path) -> None:
    found = weighed(rows, toy("plain"), toy("spikes", spikes_mb=80), toy("leaks", leaks_mb=8))
    plain, spikes, leaks = (found[name][1] for name in ("plain", "spikes", "leaks"))
    assert plain.processes == 1
    for one in (plain, spikes, leaks):
        assert one.peak_uss_mb is not None
        assert one.uss_mb is not None
        assert one.rss_mb is not None
        assert one.base_mb is not None
        assert one.peak_uss_mb >= one.uss_mb > one.base_mb
        assert one.rss_mb >= one.uss_mb
    assert plain.peak_uss_mb is not None
    assert plain.uss_mb is not None
    assert spikes.peak_uss_mb == pytest.approx(plain.peak_uss_mb + 80, abs=5)  # gone when one looks, and seen
    assert spikes.uss_mb == pytest.approx(plain.uss_mb, abs=5)
    assert leaks.model_mb == pytest.approx(80, abs=6)  # ten calls
    assert found["leaks"][16].model_mb == pytest.approx(160, abs=10)  # the smaller batch comes first
    assert "smaps_rollup" in plain.source
    assert "1 fresh process:" in plain.source


def test_modules_of_the_users_own_are_found_where_they_came_from(rows: Path, tmp_path: Path) -> None:
    """A model whose class stands in a file next to the data, as most do."""
    (tmp_path / "mine_own.py").write_text("held = bytearray(40_000_000)\n", encoding="utf-8")
    found = weighed(rows, toy("mine", imports=("mine_own",), homes=[str(tmp_path)]), plan=Plan(batches=(1,), fresh=1))
    assert found["mine"][1].library_mb == pytest.approx(40, abs=3)


def test_a_library_is_weighed_apart_from_the_model(rows: Path) -> None:
    found = weighed(rows, toy("bare", imports=()), toy("numpy"), plan=Plan(batches=(1,), fresh=2))
    bare, numpy = found["bare"][1], found["numpy"][1]
    assert bare.processes == 2
    assert "2 fresh processes:" in bare.source
    assert bare.library_mb == pytest.approx(0, abs=0.5)
    assert numpy.library_mb is not None
    assert numpy.library_mb > 2
    assert numpy.model_mb == pytest.approx(0, abs=1)
    assert numpy.import_ms is not None
    assert bare.import_ms is not None
    assert numpy.import_ms > bare.import_ms
    assert set(numpy.spread) >= {"peak_uss_mb", "rss_mb", "import_ms", "load_ms", "first_ms", "cold_ms"}
    low, high = numpy.spread["cold_ms"]
    assert numpy.cold_ms is not None
    assert low * 0.99 <= numpy.cold_ms <= high * 1.01


def test_the_first_answer_is_slower_where_it_is(rows: Path) -> None:
    found = weighed(rows, toy("slow", us=50_000), plan=Plan(batches=(1,), fresh=1))["slow"][1]
    assert found.first_ms is not None
    assert found.first_ms >= 50


def test_one_that_fails_is_told_and_costs_no_other(rows: Path) -> None:
    artefacts = {one.scenario: one for one in (toy("bad", fails="exit"), toy("worse", fails="raise"), toy("good"))}
    found, failures = footprints(artefacts, rows, Plan(batches=(1,), fresh=2), rows.parent / "work")
    assert set(failures) == {"bad", "worse"}
    assert "out of luck" in failures["bad"]
    assert failures["worse"] == "ValueError: no rows like these"
    assert found["good"][1].processes == 2
    assert found["bad"] == {}


def test_memory_where_the_system_tells_otherwise(tmp_path: Path) -> None:
    here = memory.read()
    elsewhere = memory.read(tmp_path / "no proc")  # psutil, where it is installed
    pytest.importorskip("psutil")
    assert here.uss is not None
    assert elsewhere.uss == pytest.approx(here.uss, rel=0.05)
    assert elsewhere.peak_uss is not None
    assert "psutil" in elsewhere.source
