"""Inside plain products of numpy: the steps before the product, the product, and what makes answers of its scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bitwatt.deploy.breakdown.timeline import POSTPROCESS, PREPROCESS, Part, Timeline, compare
from bitwatt.deploy.records import Breakdown

STEPS, HEAD = Part("steps before the product", group=PREPROCESS), Part("answers of the scores", group=POSTPROCESS)


class Steps:
    """They are gone through in a loop: its time is theirs, from the first to the end of the last."""

    def __init__(self, timeline: Timeline, steps: Sequence[Any]) -> None:
        self._timeline, self._steps = timeline, steps

    def __iter__(self) -> Iterator[Any]:
        with self._timeline.during(STEPS):
            yield from self._steps


def split(loaded: Any, again: Any, batches: Iterator[Any], batch: int, seconds: float) -> Breakdown:
    """`again`: a second copy, which is watched."""
    import numpy as np

    timeline = Timeline(whole="the product")
    steps, head = again.steps, again.head
    again.steps, again.head = Steps(timeline, steps), timeline.wrap(head, HEAD)
    try:
        timed = compare(loaded.predict, lambda rows: timeline.of(lambda: again.predict(rows)), batches, seconds)
    finally:
        again.steps, again.head = steps, head
    source = f"lines of numpy {np.__version__}, medians of {timed.calls} calls"
    return Breakdown(batch, timed.stages, timed.overhead, timed.plain_ms, source)
