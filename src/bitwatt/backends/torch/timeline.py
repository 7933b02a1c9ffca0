"""What a GPU was busy with, and for how long: events in its queue where phases change, read when it has passed them.

The host runs ahead of a GPU, so its clock says little about which phase took the time. Nothing waits for the device
before the session ends. Each mark closes the stretch since the one before and says whose it was; of the laps of a lane
(replay.lanes) one in many is marked event by event, and the others are shared out as the time was spent in those.
Only the thread's current stream is timed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.lanes import Lane
    from bitwatt.context import Context, Token

    Span = tuple[Context, tuple[str, ...], str]

#: Marks in the queue before the oldest are asked whether they have been passed, and before any are let go.
_WAITING, _MOST = 32, 16_384
#: Lanes whose time is kept apart; more are written down as they stand.
_LANES = 64
#: One lap in so many is marked event by event.
ONE_IN = 16


class Cell:
    """Whose a stretch was. Its phase may get its name later, when a backward or a step tells."""

    __slots__ = ("span",)

    def __init__(self, span: Span) -> None:
        self.span = span


class Timeline:
    """One per thread that uses a GPU."""

    def __init__(self, event: Callable[[], Any] | None = None) -> None:
        self._new = event or (lambda: torch.cuda.Event(enable_timing=True))
        self._lock = threading.Lock()
        self._spare: list[Any] = []
        self._queue: deque[tuple[Any, Any]] = deque()  # event, and whose the stretch before it was
        self._last: Any = None  # the event read last: where the next stretch begins
        self._device = -1
        self._open: dict[Span, Cell] = {}  # phases without a name yet
        self.seconds: dict[Span, float] = {}
        self._lanes: dict[Lane, list[float]] = {}  # by step, and at the end laps that were not marked inside
        self.lost = 0  # marks let go
        self.broken = ""  # the error of a device that answers no more

    def mark(self, span: Span) -> None:
        """The stretch that ends here was a phase's."""
        self._add(self._cell(span) if span[2][0] == "?" else Cell(span))

    def mark_lane(self, lane: Lane, part: int) -> None:
        """It was one part of a lap, or whole laps (-1)."""
        self._add((lane, part))

    def mark_row(self, lanes: tuple[Lane, ...]) -> None:
        """It was whole laps of several lanes in turn."""
        self._add((lanes, -1))

    def _cell(self, span: Span) -> Cell:
        cell = self._open.get(span)
        if cell is None:
            cell = self._open[span] = Cell(span)
        return cell

    def _add(self, whose: Any) -> None:
        if self.broken:
            return
        try:
            with self._lock:
                self._record(whose)
        except RuntimeError as error:  # of the device: the program will meet it too, and is to see its own
            self._breaks(error)

    def _breaks(self, error: RuntimeError) -> None:
        self.broken = (str(error).splitlines() or ["the device failed"])[0][:200]
        self._queue.clear()
        self._spare, self._last = [], None

    def _record(self, whose: Any) -> None:
        if torch.cuda.is_current_stream_capturing():
            return
        device = torch.cuda.current_device()
        if device != self._device:  # events of two devices have no time between them
            self._read(wait=True)
            self._spare, self._last, self._device, whose = [], None, device, None
        event = self._spare.pop() if self._spare else self._new()
        event.record()
        self._queue.append((event, whose))
        if len(self._queue) > _WAITING:
            self._read()

    def _read(self, wait: bool = False) -> None:
        """Book what the device has done. A host that runs far ahead loses the oldest marks, and says so."""
        queue = self._queue
        while queue and (wait or queue[0][0].query()):
            event, whose = queue.popleft()
            if wait:
                event.synchronize()
            if self._last is not None:
                if whose is not None:
                    self._book(whose, self._last.elapsed_time(event) / 1e3)
                self._spare.append(self._last)
            self._last = event
        while len(queue) > _MOST:
            queue.popleft()
            self._last = None  # what comes next begins nowhere
            self.lost += 1

    def _flush(self) -> None:
        try:
            self._read(wait=True)
        except RuntimeError as error:
            self._breaks(error)

    def _book(self, whose: Any, seconds: float) -> None:
        if isinstance(whose, Cell):
            self.seconds[whose.span] = self.seconds.get(whose.span, 0.0) + seconds
            return
        lane, part = whose
        if isinstance(lane, tuple):
            shares = [sum(self._lanes.get(one, ())[:-1]) or sum(one.seconds) for one in lane]
            for one, share in zip(lane, shares, strict=True):
                self._book((one, -1), seconds * share / sum(shares) if any(shares) else seconds / len(lane))
            return
        spent = self._lanes.get(lane)
        if spent is None:
            if len(self._lanes) >= _LANES:
                self._share_out()
            spent = self._lanes[lane] = [0.0] * (len(lane.seconds) + 1)
        spent[part] += seconds

    def _share_out(self) -> None:
        """Write lanes to their phases; laps that were not marked as those that were, or as the host saw them."""
        for lane, (*marked, rest) in self._lanes.items():
            shares = marked if any(marked) else lane.seconds if any(lane.seconds) else [1.0] * len(marked)
            whole, known = sum(marked) + rest, sum(shares)
            for span, share in zip(lane.spans(), shares, strict=True):
                self.seconds[span] = self.seconds.get(span, 0.0) + whole * share / known
        self._lanes.clear()

    def resolve(self, meaning: Mapping[str, str], token: Token | None) -> None:
        """Phases have got their names."""
        for span in [s for s in list(self._open) if s[2] in meaning and token in (None, s[0].token)]:
            named = (span[0], span[1], meaning[span[2]])
            self._open.pop(span).span = named
            if span in self.seconds:
                self.seconds[named] = self.seconds.get(named, 0.0) + self.seconds.pop(span)

    def collect(self, token: Token) -> dict[Span, float]:
        """What a session that closes is told; the device has done all of it by then."""
        with self._lock:  # another thread's may go on
            self._flush()
            self._share_out()
        return {span: self.seconds.pop(span) for span in list(self.seconds) if span[0].token is token}


def timeline_here() -> Timeline | None:
    """One for a thread of a program that has begun to use a GPU; asking must not be what begins it."""
    return Timeline() if torch.cuda.is_initialized() else None
