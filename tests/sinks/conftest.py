"""Sinks have time here: a crowded machine lets a thread stand still for long, and nothing is wrong with the sink."""

from __future__ import annotations

import pytest
from passing import Passing

from bitwatt.sinks import delivery, prometheus


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sinks that are not told theirs."""
    monkeypatch.setattr(delivery, "PATIENCE", 300.0)
    monkeypatch.setattr(prometheus, "PATIENCE", 300.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Passing:
    """Of tries, and of the time between them."""
    passing = Passing()
    monkeypatch.setattr(delivery, "time", passing)
    return passing
