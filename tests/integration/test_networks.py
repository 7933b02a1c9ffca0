"""Whole training steps: the same work on the CPU and on fake tensors, phase by phase."""

from __future__ import annotations

import pytest

import bitwatt
from backends.measuring import macs, measured
from networks import NETWORKS


@pytest.mark.parametrize("name", list(NETWORKS))
def test_a_training_step_is_the_closed_form_and_misses_nothing(name: str) -> None:
    program = NETWORKS[name]("cpu")
    run = measured(program.step)
    assert macs(run) == {"forward": program.forward_macs, "backward": program.backward_macs}
    assert bitwatt.totals(run).missing == {}


@pytest.mark.parametrize("name", list(NETWORKS))
def test_measured_and_estimated_have_the_same_fingerprint(name: str) -> None:
    def build_and_step() -> None:
        NETWORKS[name]("cpu").step()

    real, fake = measured(build_and_step), bitwatt.estimate(build_and_step)
    assert real.fingerprint.digest == fake.fingerprint.digest
    flops = bitwatt.totals(real, "flops").total
    assert bitwatt.totals(fake, "flops").total == pytest.approx(flops, rel=0.001)
