"""Ranks whose models are on a GPU: the waits are on the device, and its clock times them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import bitwatt
from bitwatt.ranks.stragglers import waiting

sys.path.append(str(Path(__file__).parents[1] / "ranks"))
from launching import torchrun

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
PROGRAMS = Path(__file__).parents[1] / "ranks" / "rank_programs.py"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    torchrun(PROGRAMS, folder, "gpu_straggler", "gpu_slow_device")
    return folder


@pytest.mark.parametrize(("name", "late", "share"), [("gpu_straggler", 1, 0.5), ("gpu_slow_device", 0, 1.0)])
def test_the_rank_whose_host_or_device_is_late_is_named(store, name, late, share):
    job = bitwatt.join(name, store)
    assert {part.rank.clock for part in job.parts} == {"cuda"}
    found = waiting({part.number: part.arrivals for part in job.parts})
    assert found.delays[0].rank == late
    assert found.delays[0].steps / found.delays[0].of == pytest.approx(share, abs=0.2)
