"""CPU time is set by hand, as the clock is: how often the meter looks follows from what its looks cost it."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from metered_machine import spent

from bitwatt.metering import meter as metering


@pytest.fixture(autouse=True)
def _free_of_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look costs what a sensor says that it burns, however slow this machine is."""
    clocks = SimpleNamespace(monotonic=time.monotonic, process_time=time.process_time, thread_time=spent)
    monkeypatch.setattr(metering, "time", clocks)
