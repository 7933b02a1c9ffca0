"""Waits on a device, by a clock that the test turns: events carry its time, and are there when it has passed them."""

import pytest
import torch

from bitwatt.backends.torch.device_clock import FIRST, ONE_IN, DeviceClock
from bitwatt.ranks.arrivals import Arrivals, Recorder


class Device:
    """A stream: the host queues, the device comes after."""

    queued = 0.0  # milliseconds of work queued so far
    done = 0.0  # how far the device has come

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            self.at = Device.queued

        def query(self) -> bool:
            return Device.done >= self.at

        def elapsed_time(self, later: "Device.Event") -> float:
            assert self.query(), "CUDA raises where an event has not happened yet"
            assert later.query(), "CUDA raises where an event has not happened yet"
            return later.at - self.at


@pytest.fixture
def recorder(monkeypatch):
    Device.queued = Device.done = 0.0
    monkeypatch.setattr(torch.cuda, "Event", Device.Event)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    return Recorder()


def step(clock: DeviceClock, busy: float, wait: float) -> None:
    """Compute, wait for the others in two messages, and update."""
    for _ in range(2):
        Device.queued += busy / 2
        clock.mark()
        Device.queued += wait / 2
        clock.mark()
    Device.queued += 1.0
    clock.stepped()


def test_a_step_is_booked_when_the_device_has_done_it(recorder):
    clock = DeviceClock(recorder)
    clock.stepped()
    step(clock, 8.0, 2.0)
    assert recorder.steps == 0
    Device.done = Device.queued
    clock.read()
    assert (recorder.steps, recorder.busy, recorder.wait) == (1, 0.008, 0.002)


def test_after_the_first_steps_a_part_is_timed_and_speaks_for_all(recorder):
    clock = DeviceClock(recorder)
    clock.stepped()
    for _ in range(2000):
        step(clock, 8.0, 2.0)
        Device.done = Device.queued
    found = Arrivals.unpacked(recorder.packed())
    assert recorder.timed == pytest.approx(FIRST + (2000 - FIRST) / ONE_IN, rel=0.05)
    assert set(range(FIRST)) <= set(found.sample)
    assert found.count == pytest.approx(2000, abs=4 * ONE_IN)
    assert found.wait == pytest.approx(2000 * 0.002, rel=0.02)


def test_a_device_far_behind_does_not_fill_the_memory(recorder):
    clock = DeviceClock(recorder)
    clock.stepped()
    for _ in range(5000):
        step(clock, 8.0, 2.0)
    assert len(clock._waiting) <= 64
    Device.done = Device.queued
    clock.read()
    assert 0 < recorder.timed <= 64
