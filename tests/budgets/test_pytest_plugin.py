"""The pytest plugin on real pytest: off it does nothing, on it counts, and a failure says who is to blame."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bitwatt

pytest_plugins = ["pytester"]

PLUGIN = "bitwatt.pytest_plugin"
#: 2 · 64 · 32 · 16 = 65,536 FLOP in a product of 64 x 32 by 32 x 16; 32,768 MAC; 4,096 more in the addition.
TESTS = """
import pytest

@pytest.fixture
def operands():
    import torch
    return torch.ones(64, 32), torch.ones(32, 16)

@pytest.mark.limit_flops("65_536 FLOP")
@pytest.mark.limit_bops("1 TBOP")
def test_within(operands):
    a, b = operands
    a @ b

@pytest.mark.limit_flops("65.535 kFLOP")
def test_over(operands):
    a, b = operands
    a @ b

@pytest.mark.limit_flops("32_768 MAC")
def test_in_macs(operands):
    a, b = operands
    a @ b + 1

@pytest.mark.limit_bytes("1 B")
def test_bytes(operands):
    a, b = operands
    a @ b
"""


@pytest.fixture
def alone(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Without the plugins that happen to be installed; ours is named."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(bitwatt.__file__).parents[1]))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return pytester


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", PLUGIN, "--strict-markers", "-p", "no:cacheprovider", *options)


def test_without_the_option_limits_do_nothing(alone: pytest.Pytester) -> None:
    alone.makepyfile(TESTS)
    run(alone).assert_outcomes(passed=4)


def test_with_it_they_hold_and_a_failure_names_count_limit_and_culprits(alone: pytest.Pytester) -> None:
    alone.makepyfile(TESTS)
    result = run(alone, "--bitwatt")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*flops 65.5 kFLOP (65,536) is over the limit of 65.535 kFLOP: by 1 FLOP",
            "*top layers:",
            "*test_over*65.5 kFLOP",
            "*top ops:",
            "*aten.mm*65.5 kFLOP",
        ]
    )
    result.stdout.fnmatch_lines(["*bytes * is over the limit of 1 B*"])
    assert not (alone.path / ".bitwatt").exists()  # tests are not kept among the runs


def test_an_ini_file_switches_it_on(alone: pytest.Pytester) -> None:
    alone.makepyfile(TESTS)
    alone.makeini("[pytest]\nbitwatt = true")
    run(alone).assert_outcomes(passed=2, failed=2)


def test_it_works_in_workers_of_xdist(alone: pytest.Pytester) -> None:
    alone.makepyfile(TESTS)
    result = run(alone, "-p", "xdist.plugin", "-n", "2", "--bitwatt")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*flops 65.5 kFLOP (65,536) is over the limit of 65.535 kFLOP*"])


def test_the_fixture_tells_what_the_test_computed(alone: pytest.Pytester) -> None:
    alone.makepyfile(
        """
        import pytest, torch

        @pytest.fixture
        def warm():
            torch.ones(512, 512) @ torch.ones(512, 512)  # set up: not measured

        def test_numbers(warm, bitwatt):
            torch.ones(64, 32) @ torch.ones(32, 16)
            assert bitwatt.flops == 2 * 64 * 32 * 16
            assert bitwatt.macs == 64 * 32 * 16
            assert bitwatt.totals("bops").by("phase")
            assert bitwatt.bops > bitwatt.flops
            assert bitwatt.missing == {}
            assert bitwatt.run.name == "test_numbers"
            torch.ones(64, 32) @ torch.ones(32, 16)  # asked already: over
            assert bitwatt.flops == 2 * 64 * 32 * 16
            bitwatt.restart()
            torch.ones(2, 2) @ torch.ones(2, 2)
            assert bitwatt.flops == 16

        @pytest.mark.limit_flops("1 kFLOP")
        def test_with_a_limit(bitwatt):
            torch.ones(64, 32) @ torch.ones(32, 16)
            assert bitwatt.flops == 65536
            torch.ones(64, 32) @ torch.ones(32, 16)  # the limit's own count goes on
        """
    )
    run(alone).assert_outcomes(passed=2)
    result = run(alone, "--bitwatt")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*flops 131 kFLOP (131,072) is over the limit of 1 kFLOP*"])


def test_limits_of_a_phase_or_layer_and_mistakes(alone: pytest.Pytester) -> None:
    alone.makepyfile(
        """
        import pytest, torch
        from torch import nn

        def work():
            model = nn.Sequential(nn.Linear(8, 4, bias=False), nn.Linear(4, 2, bias=False))
            with torch.no_grad():
                model(torch.ones(1, 8))

        @pytest.mark.limit_flops("16 FLOP", layer="1")
        def test_layer():  # 2 * 4 * 2
            work()

        @pytest.mark.limit_flops("15 FLOP", layer="1")
        def test_layer_over():
            work()

        @pytest.mark.limit_flops("1 MFLOP", layer="head")
        def test_no_such_layer():
            work()

        @pytest.mark.limit_flops("+2 %")
        def test_relative():
            work()

        @pytest.mark.limit_flops("4 GW")
        def test_unit():
            work()

        class TestClosest:
            pytestmark = pytest.mark.limit_flops("1 FLOP")

            @pytest.mark.limit_flops("1 GFLOP")
            def test_own_limit(self):
                work()

        @pytest.mark.limit_flops("1 FLOP")
        def test_that_fails_by_itself():
            work()
            assert 1 == 2

        @pytest.mark.limit_flops("1 FLOP")
        def test_that_skips():
            pytest.skip("no")
        """
    )
    result = run(alone, "--bitwatt")
    result.assert_outcomes(passed=2, failed=5, skipped=1)
    result.stdout.fnmatch_lines(["*the run has no layer 'head'*", "*against a baseline, which a test has not*"])
    result.stdout.fnmatch_lines(["*it is in W, wanted is FLOP*"])
    result.stdout.fnmatch_lines(["*assert 1 == 2"])


def test_energy_is_gated_by_repetitions_or_said_not_to_be(alone: pytest.Pytester) -> None:
    alone.makepyfile(
        """
        import pytest, time

        calls = []

        @pytest.mark.limit_seconds("1 ms")
        def test_slow():
            calls.append(1)
            time.sleep(0.02)

        def test_it_was_repeated():
            assert len(calls) == 5

        @pytest.mark.limit_seconds("1 ms", repetitions=1)
        def test_once():
            time.sleep(0.02)

        @pytest.mark.limit_energy("1 nJ", repetitions=1)
        def test_energy():
            pass
        """
    )
    result = run(alone, "--bitwatt", "-W", "error")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*seconds * is over the limit of 1 ms: by * 95 % interval *, n 5"])
    result.stdout.fnmatch_lines(
        ["*limits that decided nothing*", "*test_once: seconds: not gated: one run, 5 repetitions are needed"]
    )
    result.stdout.fnmatch_lines(["*test_energy: energy: not gated: *"])


def test_when_off_it_imports_neither_a_framework_nor_the_rest_of_bitwatt(alone: pytest.Pytester) -> None:
    alone.makepyfile(
        """
        import sys

        def test_modules():
            ours = {name for name in sys.modules if name.startswith("bitwatt")}
            assert ours == {"bitwatt", "bitwatt.pytest_plugin"}
            assert not {"torch", "numpy", "sklearn"} & set(sys.modules)
        """
    )
    run(alone).assert_outcomes(passed=1)


def test_pytest_finds_it_by_its_entry_point(alone: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """As installed: the entry point of pyproject.toml in a distribution's metadata, and no -p."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = project["entry-points"]["pytest11"]
    assert found == {"bitwatt": PLUGIN}
    metadata = alone.path / "site" / "bitwatt_alone-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: bitwatt-alone\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[pytest11]\nbitwatt_alone = {found['bitwatt']}\n")
    alone.makepyfile(TESTS)
    paths = os.pathsep.join([str(metadata.parent), str(Path(bitwatt.__file__).parents[1])])
    blocked = ["-p", "no:bitwatt"]  # the one that is installed here, where it is
    environment = {**os.environ, "PYTHONPATH": paths, "PYTEST_PLUGINS": ""}
    environment.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *blocked, "--bitwatt", "-q", "-p", "no:cacheprovider"],
        cwd=alone.path, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "2 failed, 2 passed" in done.stdout, done.stdout + done.stderr
