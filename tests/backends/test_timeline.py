"""The time of a GPU by phase, from events in its queue: here with a device whose clock and progress the test sets."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bitwatt.backends.torch import timeline
from bitwatt.backends.torch.timeline import Timeline
from bitwatt.context import Context, Token


class Device:
    """A clock, and how far the device has come."""

    def __init__(self) -> None:
        self.now, self.done = 0.0, 0.0
        self.fails = False

    def event(self) -> Event:
        return Event(self)


class Event:
    def __init__(self, device: Device) -> None:
        self.device, self.at = device, 0.0

    def record(self) -> None:
        if self.device.fails:
            raise RuntimeError("CUDA error: device-side assert triggered")
        self.at = self.device.now

    def query(self) -> bool:
        return self.at <= self.device.done

    def synchronize(self) -> None:
        self.device.done = max(self.device.done, self.at)

    def elapsed_time(self, later: Event) -> float:
        assert self.query(), "read before the device has passed it"
        assert later.query(), "read before the device has passed it"
        return (later.at - self.at) * 1e3


class Lane:
    """Two events, and what the host saw of them."""

    def __init__(self, context: Context, seconds: list[float]) -> None:
        self.seconds, self._context = seconds, context

    def spans(self) -> list[Any]:
        return [(self._context, (), phase) for phase in ("other", "forward", "loss", "backward")]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    return Device()


@pytest.fixture
def context() -> Context:
    return Context(Token("run"), ())


def marked(line: Timeline, device: Device, context: Context, *stretches: tuple[str, float]) -> None:
    for phase, seconds in stretches:
        device.now += seconds
        line.mark((context, (), phase))


def by_phase(line: Timeline, context: Context) -> dict[str, float]:
    return {span[2]: pytest.approx(seconds) for span, seconds in line.collect(context.token).items()}


def test_each_stretch_between_two_marks_goes_to_the_phase_that_ends(device: Device, context: Context) -> None:
    line = Timeline(device.event)
    marked(line, device, context, ("other", 9.0))  # where the timeline begins: nothing is known of before
    marked(line, device, context, ("forward", 1.0), ("loss", 0.25), ("backward", 2.0), ("forward", 1.5))
    assert by_phase(line, context) == {"forward": 2.5, "loss": 0.25, "backward": 2.0}


def test_a_phase_that_is_named_later_gets_its_time_read_before_or_after(device: Device, context: Context) -> None:
    line = Timeline(device.event)
    marked(line, device, context, ("other", 0.0), ("?after", 1.0))
    for _ in range(timeline._WAITING):
        device.done = device.now
        marked(line, device, context, ("forward", 0.5))
    assert line.seconds[context, (), "?after"] == 1.0  # read, and not named yet
    marked(line, device, context, ("?after", 2.0))
    line.resolve({"?after": "loss"}, None)
    marked(line, device, context, ("?after", 4.0))  # of the next step
    line.resolve({"?after": "other"}, None)
    assert by_phase(line, context) == {"loss": 3.0, "forward": 0.5 * timeline._WAITING, "other": 4.0}


def test_laps_that_were_not_marked_are_shared_out_as_those_that_were(device: Device, context: Context) -> None:
    line, lane = Timeline(device.event), Lane(context, [1.0, 1.0, 1.0, 1.0])
    marked(line, device, context, ("other", 0.0))
    for part, seconds in enumerate([0.0, 1.0, 0.5, 2.5]):  # one lap: 4 s
        device.now += seconds
        line.mark_lane(lane, part)  # type: ignore[arg-type]
    device.now += 36.0  # nine laps more
    line.mark_lane(lane, -1)  # type: ignore[arg-type]
    assert by_phase(line, context) == {"other": 0.0, "forward": 10.0, "loss": 5.0, "backward": 25.0}


def test_laps_of_which_none_was_marked_are_shared_out_as_the_host_saw_them(device: Device, context: Context) -> None:
    line, lane = Timeline(device.event), Lane(context, [0.0, 3.0, 0.0, 1.0])
    marked(line, device, context, ("other", 0.0))
    device.now += 8.0
    line.mark_lane(lane, -1)  # type: ignore[arg-type]
    found = by_phase(line, context)
    assert (found["forward"], found["backward"]) == (6.0, 2.0)


def test_nothing_is_read_before_the_device_has_passed_it(device: Device, context: Context) -> None:
    line = Timeline(device.event)
    marked(line, device, context, ("other", 0.0), *[("forward", 1.0)] * (3 * timeline._WAITING))
    assert line.seconds == {}  # Event.elapsed_time would have failed
    assert by_phase(line, context) == {"forward": 3.0 * timeline._WAITING}


def test_a_host_that_runs_away_loses_the_oldest_marks_and_says_so(
    device: Device, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "_MOST", 100)
    line = Timeline(device.event)
    marked(line, device, context, ("other", 0.0), *[("forward", 1.0)] * 150)
    assert line.lost == 50
    assert by_phase(line, context) == {"forward": 99.0}  # between the hundred that are left


def test_a_device_that_fails_is_left_alone(device: Device, context: Context) -> None:
    line = Timeline(device.event)
    marked(line, device, context, ("other", 0.0), ("forward", 1.0))
    device.fails = True
    marked(line, device, context, ("backward", 1.0), ("forward", 1.0))
    assert "device-side assert" in line.broken
    assert by_phase(line, context) == {}


def test_another_device_begins_anew(device: Device, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    line = Timeline(device.event)
    marked(line, device, context, ("other", 0.0), ("forward", 1.0))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    marked(line, device, context, ("forward", 5.0), ("backward", 2.0))
    assert by_phase(line, context) == {"forward": 1.0, "backward": 2.0}


def test_a_session_gets_its_own_time(device: Device, context: Context) -> None:
    line, other = Timeline(device.event), Context(Token("other"), ())
    marked(line, device, context, ("other", 0.0), ("forward", 1.0))
    marked(line, device, other, ("forward", 3.0))
    assert by_phase(line, context) == {"forward": 1.0}
    assert by_phase(line, other) == {"forward": 3.0}
