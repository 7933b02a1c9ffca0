"""Between processes: how a task finds out that it is in another one, and how its counts come home.

A task is pickled so that it is watched from the moment it is unpickled, and so that a worker without bitwatt gets the
bare function. A result is pickled so that it takes its counts off where the task was made: nobody there, be it joblib,
a callback or the user, ever holds anything but the value.
"""

from __future__ import annotations

import itertools
import os
import secrets
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from bitwatt.backends.sklearn import own
from bitwatt.backends.sklearn.frames import Frame, Parts, tally
from bitwatt.context import Context
from bitwatt.ledger import Row

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

_MARK = secrets.token_hex(8)
_numbers = itertools.count()


def process() -> str:
    """This process and no other: on two machines ids may be equal, and a forked child inherits the mark."""
    return f"{_MARK}.{os.getpid()}"


class Place(NamedTuple):
    """Where a task was made: plain values, which any process can unpickle."""

    process: str
    call: int
    phases: tuple[str, ...]
    phase: str
    scope: str
    silent: bool
    is_fold: bool
    kinds: Parts
    known: tuple[tuple[int, str], ...]  # arguments that are parts of the estimator above, and their names
    unheard: frozenset[str]


class Brought(NamedTuple):
    """What a task did elsewhere."""

    rows: list[Row]
    kinds: dict[str, str]
    notes: tuple[str, ...]
    probes: dict[tuple[Any, ...], int]


class Home:
    """One call of Parallel: where its tasks belong, and what came back for it."""

    def __init__(self, watch: EstimatorWatch, context: Context, frame: Frame | None) -> None:
        self.watch, self.context, self.frame = watch, context, frame
        self.number = next(_numbers)
        self.thread = threading.get_ident()
        self.sent = 0
        self.ran_here = False
        self._brought: dict[str, Brought | None] = {}  # by task, None once it is settled
        self._probes: list[dict[tuple[Any, ...], int]] = []
        self._lock = threading.Lock()  # results come on threads of joblib's
        self._open = True

    def expect(self) -> None:
        """Something of it is on its way, and will ask for it."""
        self.watch.has_workers = True
        HOMES[self.number] = self

    def counted_here(self, seen: dict[tuple[Any, ...], int]) -> None:
        with self._lock:
            self._probes.append(seen)

    def receive(self, task: str, brought: Brought) -> None:
        """A result may be unpickled more than once."""
        with self._lock:
            if self._open:
                self._brought.setdefault(task, brought)

    def settle(self) -> None:
        """On the thread of the call: nobody else writes to its frames."""
        if not self.ran_here:
            own.catch_up(self.watch)
        if not self._brought and not self._probes:
            return
        with self._lock:
            news = [brought for brought in self._brought.values() if brought is not None]
            self._brought = dict.fromkeys(self._brought)
            seen, self._probes = self._probes, []
        for brought in news:
            self.watch.add(self.context, brought.rows, brought.kinds, brought.notes)
            seen.append(brought.probes)
        if self.frame is not None:
            for one in seen:
                tally(self.frame.probes, one)

    def close(self, reason: str) -> None:
        self.settle()
        lost = self.sent - len(self._brought)
        if self._open and lost and not self.ran_here:
            self.watch.notes[f"what {lost} joblib tasks had computed is not counted: {reason}"] = None
        self._open = False


#: Calls whose tasks or results are on their way, while somebody holds them.
HOMES: WeakValueDictionary[int, Home] = WeakValueDictionary()


class Landing:
    """Pickled as an expression, since a worker may not have bitwatt. It is evaluated ahead of the task's function,
    which then is found, by its name, as the one that counts."""

    def __call__(self, place: tuple[Any, ...], function: Any) -> Any:
        raise TypeError("only its pickled form is called")

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return eval, (_EXPRESSION.format(process()),)


_EXPRESSION = (
    "__import__('bitwatt.backends.sklearn.parallel', fromlist=['landed']).landed({!r}) "
    "if __import__('importlib.util').util.find_spec('bitwatt') else lambda place, function: function"
)


class Returning:
    """A result on its way home."""

    def __init__(self, place: tuple[str, int], task: str, value: Any, brought: Brought) -> None:
        self.content = place, task, value, brought

    def __reduce__(self) -> Any:
        return returned, self.content


def returned(place: tuple[str, int], task: str, value: Any, brought: Iterable[Any]) -> Any:
    if place[0] != process():
        return Returning(place, task, value, Brought(*brought))
    home = HOMES.get(place[1])
    if home is not None:
        home.receive(task, Brought(*brought))
    return value
