"""Sessions inside sessions: time, and with it energy, is of the one that was open, and of those around it once."""

from __future__ import annotations

import math
import time

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

import bitwatt
from bitwatt.metering.attached import Attached
from bitwatt.units import format_duration


def steps(model: torch.nn.Module) -> None:
    for _ in range(3):
        model(torch.ones(8, 64)).sum().backward()


def test_what_ran_before_an_inner_session_is_not_in_its_phases():
    model = torch.nn.Linear(64, 64)
    with bitwatt.measure("outer", keep=False), bitwatt.phase("load"):
        steps(model)
        time.sleep(0.5)
        with bitwatt.measure("inner", keep=False) as inner:
            steps(model)
    assert 0 < math.fsum(inner.run.phase_seconds.values()) <= inner.run.seconds * (1 + 1e-9)


def test_what_closing_a_session_takes_is_no_part_of_its_phases(monkeypatch):
    """The meter reads memory when it ends, which may take longer than all that was measured."""
    end = Attached.end
    monkeypatch.setattr(Attached, "end", lambda attached: (time.sleep(0.3), end(attached)))
    with bitwatt.measure("short", keep=False) as session:
        steps(torch.nn.Linear(64, 64))
    assert 0 < math.fsum(session.run.phase_seconds.values()) <= session.run.seconds * (1 + 1e-9)


def test_phases_of_an_inner_session_have_their_time_in_the_outer_one():
    model = torch.nn.Linear(64, 64)
    with bitwatt.measure("outer", keep=False) as outer:
        steps(model)
        with bitwatt.phase("fold"), bitwatt.measure("inner", keep=False) as inner:
            steps(model)
    assert outer.run.phase_seconds["fold/forward"] == pytest.approx(inner.run.phase_seconds["forward"], rel=0.02)
    assert {"forward", "fold/forward"} <= {row.phase for row in outer.run.ledger}
    assert math.fsum(outer.run.phase_seconds.values()) <= outer.run.seconds * 1.05


class Slow(IterableDataset):
    def __iter__(self):
        time.sleep(1.2)
        yield from torch.ones(4, 3)


def test_the_time_and_energy_until_the_first_batch():
    with bitwatt.measure("outer", keep=False) as outer:
        time.sleep(0.3)
        with bitwatt.measure("inner", keep=False) as inner:
            for _ in DataLoader(Slow(), batch_size=2):
                pass
            time.sleep(0.2)
    first = {one.run.name: one.run.meter.usage["first_batch_seconds"] for one in (outer, inner)}
    assert 1.2 <= first["inner"] < inner.run.seconds - 0.2
    assert first["inner"] + 0.3 <= first["outer"] < outer.run.seconds - 0.2
    told = format_duration(float(f"{first['inner']:.3g}"))
    assert f"first batch after {told}" in bitwatt.report(inner.run)


def test_without_a_loader_there_is_no_first_batch():
    with bitwatt.measure("none", keep=False) as session:
        torch.ones(2) + 1
    assert "first_batch_seconds" not in session.run.meter.usage
