"""When a rank arrived at the others and how long it waited for them: one pair of numbers for each step.

Clocks of hosts need not agree. All ranks leave a collective together, so the time since the last one that was left is
the same on every rank: a rank's own part of it (`busy`) is until it arrived at the next one, the rest is `wait`.
"""

from __future__ import annotations

import base64
import heapq
import struct
import zlib
from array import array
from dataclasses import dataclass

#: Steps that are kept one by one. A longer run keeps a sample of that many: the same steps on every rank.
KEPT = 1024
#: The longest steps, kept beside the sample: what happened once is among them.
LONGEST = 16
_MIX, _SPAN = 2654435761, 1 << 32  # 2^32 over the golden ratio: multiples are spread evenly, whatever their period
_MAX = 0xFFFFFFFF
_HEAD = "<QQddQ?"


def chosen(index: int, one_in: int) -> bool:
    """Whether a step belongs to a sample of that size: the same answer on every rank."""
    return index * _MIX % _SPAN < _SPAN // one_in


class Recorder:
    """Takes the times in; memory stays the same however long the run. Times are seconds of any steady clock."""

    __slots__ = (
        "_busy",
        "_floor",
        "_heap",
        "_last",
        "_limit",
        "_samples",
        "_wait",
        "busy",
        "rounds",
        "steps",
        "timed",
        "wait",
    )

    def __init__(self) -> None:
        self.steps = 0
        self.timed = 0  # of them
        self.busy = self.wait = 0.0  # of those
        self.rounds = True  # no optimizer seen yet: each collective ends a round
        self._busy = self._wait = 0.0  # of the step under way
        self._last = -1.0  # when the last collective was left
        self._samples = array("d")  # index, busy and wait, over and over
        self._limit = _SPAN
        self._heap: list[tuple[float, int, float, float]] = []
        self._floor = 0.0

    def waited(self, arrived: float, left: float) -> None:
        """This rank came to a collective and left it."""
        last = self._last
        if last < 0.0:  # the first one: nothing to measure from
            self._last = left
            return
        if arrived > last:
            self._busy += arrived - last
            self._wait += left - arrived
        elif left > last:  # on two threads at a time
            self._wait += left - last
        if left > last:
            self._last = left
        if self.rounds:
            self._end()

    def stepped(self) -> None:
        """An optimizer has stepped: the collectives since the last time belong to one step."""
        if self.rounds:  # what came before was setting up, or evaluating
            last = self._last
            self.__init__()  # type: ignore[misc]
            self._last, self.rounds = last, False
        elif self._busy or self._wait:
            self._end()

    def add(self, busy: float, wait: float, index: int | None = None) -> None:
        """A whole step, measured elsewhere. Steps before number `index` may have been left out."""
        self.rounds = False
        if index is not None:
            self.steps = index
        self._busy, self._wait = busy, wait
        self._end()

    def _end(self) -> None:
        index, busy, wait = self.steps, self._busy, self._wait
        self.steps = index + 1
        self.timed += 1
        self.busy += busy
        self.wait += wait
        self._busy = self._wait = 0.0
        if busy + wait > self._floor:
            self._long(busy + wait, index, busy, wait)
        if index * _MIX % _SPAN < self._limit:
            samples = self._samples
            samples.extend((index, busy, wait))
            if len(samples) >= 3 * KEPT:
                self._thin()

    def _long(self, length: float, index: int, busy: float, wait: float) -> None:
        heapq.heappush(self._heap, (length, index, busy, wait))
        if len(self._heap) > LONGEST:
            heapq.heappop(self._heap)
            self._floor = self._heap[0][0]

    def _thin(self) -> None:
        self._limit //= 2
        kept = array("d")
        for at in range(0, len(self._samples), 3):
            if int(self._samples[at]) * _MIX % _SPAN < self._limit:
                kept.extend(self._samples[at : at + 3])
        self._samples = kept

    def packed(self) -> str:
        """Everything in a text."""
        if not self.steps:
            return ""
        samples = list(self._samples)
        steps = [*zip(samples[::3], samples[1::3], samples[2::3], strict=True)]
        steps += [long[1:] for long in list(self._heap)]
        flat = [n for index, *spans in steps for n in (int(index), *[min(_MAX, int(span * 1e6)) for span in spans])]
        columns = [flat[column::3] for column in range(3)]  # like beside like packs better
        head = struct.pack(_HEAD, self.steps, self.timed, self.busy, self.wait, len(samples) // 3, self.rounds)
        body = b"".join(struct.pack(f"<{len(column)}I", *(number & _MAX for number in column)) for column in columns)
        return base64.b64encode(zlib.compress(head + body, 6)).decode("ascii")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a rank's recorder kept. Steps are (busy, wait) in microseconds by their number."""

    count: int
    busy: float  # seconds of all steps, also of those between the ones that were timed
    wait: float
    sample: dict[int, tuple[int, int]]
    longest: dict[int, tuple[int, int]]
    rounds: bool = False  # ended by collectives, since no optimizer was seen

    @classmethod
    def unpacked(cls, text: str) -> Arrivals | None:
        if not text:
            return None
        raw = zlib.decompress(base64.b64decode(text))
        count, timed, busy, wait, sampled, rounds = struct.unpack_from(_HEAD, raw)
        share = timed / count
        third = (len(raw) - struct.calcsize(_HEAD)) // 12
        columns = struct.unpack_from(f"<{3 * third}I", raw, struct.calcsize(_HEAD))
        index, spans = columns[:third], list(zip(columns[third : 2 * third], columns[2 * third :], strict=True))
        sample = dict(zip(index[:sampled], spans, strict=False))
        return cls(
            count, busy / share, wait / share, sample, dict(zip(index[sampled:], spans[sampled:], strict=True)), rounds
        )
