"""The parts of a study: how far it has come, for the bar, and that a part which fails costs itself alone."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bitwatt.deploy.measuring.timing import Progress


class Parts:
    """`seconds` are guesses of what each part takes, in order. They need not be right but for their ratio: what is left
    is reckoned from what is done."""

    def __init__(self, seconds: Mapping[str, float], progress: Progress | None) -> None:
        self._seconds, self._progress = dict(seconds), progress
        self._before, self._here = 0.0, 0.0
        self.notes: list[str] = []

    def begin(self, name: str) -> None:
        names = list(self._seconds)
        self._before = sum(self._seconds[one] for one in names[: names.index(name)])
        self._here = self._seconds[name]
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
        """Of the part that has begun."""
        if self._progress is not None:
            share = min(max(done / of, 0.0), 1.0) if of else 1.0
            self._progress(self._before + self._here * share, sum(self._seconds.values()), what)
