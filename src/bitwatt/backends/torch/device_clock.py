"""Waits on a GPU, timed by the GPU: with NCCL the host only queues them, and no step is worth a synchronisation.

Events are recorded around messages and read when they have long passed. Of the steps after the first ones only a part
is timed, the same on every rank.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from bitwatt.ranks.arrivals import Recorder, chosen

#: All of the first steps are timed, then one in so many.
FIRST, ONE_IN = 64, 8
#: Marks in one step, and steps that wait to be read: what comes on top is let go.
_MARKS, _WAITING = 512, 64


class DeviceClock:
    """Marks come in pairs: before a message or a wait for one, and after it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._spare: list[Any] = []
        self._marks: list[Any] | None = None  # of the step under way, if it is timed
        self._waiting: deque[tuple[int, list[Any]]] = deque()
        self._step = -1

    def mark(self) -> None:
        marks = self._marks
        if marks is not None and len(marks) < _MARKS and not torch.cuda.is_current_stream_capturing():
            marks.append(self._event())

    def stepped(self) -> None:
        """An optimizer has queued its step. The next one begins where it will have ended."""
        if self._marks is not None and len(self._marks) > 2:
            self._waiting.append((self._step, self._marks))
            if len(self._waiting) > _WAITING:
                self._spare += self._waiting.popleft()[1]
        self._step += 1
        self._marks = None
        if (self._step < FIRST or chosen(self._step, ONE_IN)) and not torch.cuda.is_current_stream_capturing():
            self._marks = [self._event()]
        self.read()

    def read(self) -> None:
        """Book the steps that the device has done."""
        while self._waiting and all(mark.query() for mark in reversed(self._waiting[0][1])):  # on several streams
            step, marks = self._waiting.popleft()
            last, busy, wait = marks[0], 0.0, 0.0
            for arrived, left in zip(marks[1::2], marks[2::2], strict=False):
                busy += last.elapsed_time(arrived)
                wait += arrived.elapsed_time(left)
                last = left
            self._recorder.add(busy / 1e3, wait / 1e3, step)
            self._spare += marks

    def _event(self) -> Any:
        event = self._spare.pop() if self._spare else torch.cuda.Event(enable_timing=True)
        event.record()
        return event
