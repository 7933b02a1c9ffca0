"""What all callbacks do: open a session around a fit, switch phases, pass metrics on, and close."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from bitwatt import context
from bitwatt.errors import BitwattError
from bitwatt.records import Run
from bitwatt.session import Measure, Session, measure

#: What backends call the samples that loaders hand out, where they see it.
LOADED = "samples loaded"


class Around:
    """`options` are those of bitwatt.measure. Inside another session (`bitwatt run`), what is measured is part of both,
    and only the outer one is kept unless `keep=True` says otherwise."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        self._name, self._options = name, options
        measure(name, **options)  # what is wrong with the options is told here, not in the middle of a fit
        self.session: Session | None = None
        self._measure: Measure | None = None
        self._phase: AbstractContextManager[None] | None = None
        self._in: str | None = None
        self._counted = 0
        self._told: dict[str, Any] = {}

    @property
    def run(self) -> Run | None:
        """The finished run; None before."""
        return self.session.run if self.session is not None else None

    @property
    def is_open(self) -> bool:
        return self._measure is not None

    def begin(self, name: str, **about: Any) -> None:
        self.end(BitwattError("it was left without an end"))  # the one before, if it was: not all frameworks tell
        options = {"keep": context.current() is None, **about, **self._options}
        self._counted, self._told = 0, {}
        self._measure = measure(self._name or name, **options)
        self.session = self._measure.__enter__()
        atexit.register(self._left)

    def end(self, error: BaseException | None = None) -> None:
        if self._measure is None:
            return
        self.enter(None)
        measured, self._measure = self._measure, None
        atexit.unregister(self._left)
        measured.__exit__(type(error) if error else None, error, None)

    def enter(self, phase: str | None) -> None:
        """This phase in place of the one before."""
        if phase == self._in or (self._measure is None and phase is not None):
            return
        if self._phase is not None:
            self._phase.__exit__(None, None, None)
        self._phase, self._in = None, phase
        if phase is not None:
            self._phase = context.phase(phase)
            self._phase.__enter__()

    def count(self, **amounts: int) -> None:
        from bitwatt.observing import count

        if self._measure is not None:
            count(**amounts)

    def count_loaded(self) -> None:
        """What loaders handed out in this phase since the last time was trained on by now."""
        observer = self.session._token.observer if self.session is not None and self._measure is not None else None
        told = observer.told() if observer is not None else None
        if told is not None and self._in is not None:
            mine = [amounts for path, amounts in told.processed.items() if self._in in path.split("/")]
            loaded = sum(amounts.get(LOADED, 0) for amounts in mine)
            if loaded > self._counted:
                self.count(samples=loaded - self._counted)
                self._counted = loaded

    def metrics(self, told: Mapping[str, Any], step: int, skip: Iterable[str] = ()) -> None:
        """Numbers by name, each once for a step: for this session and those around it."""
        token = self.session._token if self.session is not None and self._measure is not None else None
        ends = tuple(skip)
        for name, value in told.items():
            if self._told.get(name) == step or isinstance(value, bool) or (ends and name.endswith(ends)):
                continue
            here = token
            while here is not None and here.about is not None:
                try:
                    here.about.metric(name, value, step)
                except BitwattError:  # it is no number
                    break
                here = here.parent
            self._told[name] = step

    def _left(self) -> None:
        """The process ends in the middle of it."""
        if self.session is not None and os.getpid() == self.session._process:
            self.end(SystemExit("fit did not end"))

    def __getstate__(self) -> dict[str, Any]:
        """Copies, as frameworks send to workers, have no session."""
        return {"_name": self._name, "_options": self._options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, state["_name"], **state["_options"])


def size_of(batch: Any) -> int | None:
    """Samples in a batch: the length of the first array in it, however deep; None where there is none."""
    if isinstance(batch, Mapping):
        return next((n for value in batch.values() if (n := size_of(value)) is not None), None)
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    if isinstance(batch, list | tuple):
        if batch and all(isinstance(one, str | bytes | int | float) for one in batch):
            return len(batch)
        return next((n for value in batch if (n := size_of(value)) is not None), None)
    return None
