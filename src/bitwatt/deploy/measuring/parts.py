"""The parts of a study: how far it has come, for the bar, and that a part which fails costs itself alone."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from bitwatt.deploy.measuring.timing import Progress

#: Guesses are believed for so long: what the first seconds took says little of what follows.
_BELIEVED_S = 10.0
#: From this share of a part on, what is left of it is reckoned from how long it has taken.
_ENOUGH = 0.05


class Parts:
    """`seconds` are guesses of what each part takes, in order. What is left of the part under way is reckoned from its
    share that is done, what is left after it from the guesses, corrected by how far they were off so far."""

    def __init__(
        self, seconds: Mapping[str, float], progress: Progress | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds, self._progress, self._clock = dict(seconds), progress, clock
        self._name, self._began = "", clock()
        self._started = self._began
        self._guessed = 0.0  # for the parts that are behind
        self.notes: list[str] = []

    @property
    def name(self) -> str:
        """Of the part that is under way."""
        return self._name

    def guess(self, seconds: Mapping[str, float]) -> None:
        """Better guesses, once more is known."""
        self._seconds |= seconds

    def begin(self, name: str) -> None:
        names = list(self._seconds)
        self._guessed = sum(self._seconds[one] for one in names[: names.index(name)])
        self._name, self._began = name, self._clock()
        self.tell(0.0, 1.0, name)

    @contextmanager
    def apart(self, what: str) -> Iterator[None]:
        """What is raised inside is a note."""
        try:
            yield
        except Exception as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            self.notes.append(f"{what} failed: {type(error).__name__}: {error} ({at.name}, line {at.lineno})")

    def tell(self, done: float, of: float, what: str) -> None:
        """Of the part that has begun; in seconds, so that their ratio is the time that is left."""
        if self._progress is None:
            return
        now = self._clock()
        share = min(max(done / of, 0.0), 1.0) if of else 1.0
        behind = self._began - self._started
        off = (behind + _BELIEVED_S) / (self._guessed + _BELIEVED_S)
        names = list(self._seconds)
        here = off * self._seconds.get(self._name, 0.0)
        if share >= _ENOUGH:
            here = (now - self._began) / share
        later = names[names.index(self._name) + 1 :] if self._name in names else names
        left = here * (1 - share) + off * sum(self._seconds[one] for one in later)
        self._progress(now - self._started, now - self._started + left, what or self._name)
