"""joblib: tasks carry where they belong; those that run in another process bring their counts back with the result."""

from __future__ import annotations

import copy
import functools
import secrets
from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any, cast

from bitwatt.backends.sklearn import own
from bitwatt.backends.sklearn.frames import TOP, Frame, Parts, framed, qualified
from bitwatt.backends.sklearn.names import LIBRARIES
from bitwatt.backends.sklearn.standins import out_of_sight
from bitwatt.backends.sklearn.travel import HOMES, Brought, Home, Landing, Place, Returning, process
from bitwatt.backends.watchers import WATCHERS
from bitwatt.context import CONTEXT, Token, current, opened
from bitwatt.ledger import Ledger

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

#: Functions that fit and score one fold of a cross-validation.
_FOLDS = ("_fit_and_score", "_fit_and_predict", "_incremental_fit_estimator")
#: Errors that tell of a worker's death: joblib's and the standard library's, Dask's, Ray's.
_DEATHS = frozenset({"BrokenExecutor", "KilledWorker", "RayActorError", "ActorDiedError", "WorkerCrashedError"})


def install(watch: EstimatorWatch) -> list[Callable[[], None]]:
    from joblib import Parallel

    original = Parallel.__call__

    @out_of_sight
    @functools.wraps(original)
    def watched_call(self: Any, iterable: Any) -> Any:
        context = current() if watch.on else None
        if context is None:
            return original(self, iterable)
        frame, sized = TOP.get(), hasattr(iterable, "__len__")
        if _runs_in_turn(self):
            if frame is not None and frame.silent:
                return original(self, iterable)
            return original(self, (_SizedTurns if sized else _Turns)(iterable, frame))
        home = Home(watch, context, frame)
        tasks = _SizedTasks if sized else _Tasks
        try:
            results = original(self, tasks(iterable, home))
        except BaseException as error:
            home.close(_loss(error))
            raise
        if isinstance(results, list):
            home.close("bitwatt cannot be imported there")
            return results
        home.expect()
        return _stream(home, results)

    Parallel.__call__ = watched_call

    def restore() -> None:
        if Parallel.__call__ is watched_call:
            Parallel.__call__ = original

    return [restore]


def _loss(error: BaseException) -> str:
    died = any(parent.__name__ in _DEATHS for parent in type(error).__mro__)
    return f"a worker died, {type(error).__name__}" if died else f"{type(error).__name__} ended the call"


def _stream(home: Home, results: Any) -> Iterator[Any]:
    try:
        for result in results:
            home.settle()
            yield result
    except GeneratorExit:
        home.close("their results were not waited for")
        raise
    except BaseException as error:
        home.close(_loss(error))
        raise
    home.close("bitwatt cannot be imported there")


def settle(token: Token) -> None:
    """A session closes: take in what has come back for it until now."""
    for home in list(HOMES.values()):
        if home.context.token is token:
            home.close("the session closed before")


class _Tasks:
    """joblib's tasks, as lazy as they were."""

    def __init__(self, tasks: Any, home: Home) -> None:
        self.tasks, self.home = tasks, home

    def __iter__(self) -> Iterator[Any]:
        return _placed(iter(self.tasks), self.home)


class _SizedTasks(_Tasks):
    """joblib tells of its progress where it knows how many tasks there are."""

    def __len__(self) -> int:
        return len(self.tasks)


def _placed(tasks: Iterator[Any], home: Home) -> Iterator[Any]:
    frame = home.frame if home.frame is not None else framed(None, "", "", "")
    parts = frame.parts()
    kinds = tuple([(name, part if isinstance(part, str) else qualified(type(part))) for name, part in parts])
    ids = {id(part) for _, part in parts}
    begins = (process(), home.number, home.context.phases, frame.phase)
    inside = Place(*begins, frame.scope, frame.silent, False, kinds, (), frame.unheard)
    for number, task in enumerate(tasks):
        if not isinstance(task, tuple) or len(task) != 3:
            yield task  # it is joblib's to complain
            continue
        function, args, kwargs = task
        fold = "" if frame.silent else _fold(function, kwargs, number)
        if fold:
            scope = f"{frame.scope}.{fold}" if frame.scope else fold
            place = Place(*begins, scope, frame.silent, True, (), (), frozenset())
        else:
            known = not ids.isdisjoint(map(id, args)) and _known(args, parts)
            place = inside._replace(known=known) if known else inside
        home.sent += 1
        yield Task(place, function, home), args, kwargs


def _runs_in_turn(parallel: Any) -> bool:
    """One job of joblib's own backends: its tasks run one after the other, where it was called, before it returns."""
    own = type(getattr(parallel, "_backend", None)).__module__ == "joblib._parallel_backends"
    return own and parallel.n_jobs == 1 and not getattr(parallel, "return_generator", False)


class _Turns:
    """Tasks that run in turn: only folds are new places."""

    def __init__(self, tasks: Any, above: Frame | None) -> None:
        self.tasks, self.above = tasks, above

    def __iter__(self) -> Iterator[Any]:
        above = self.above
        phase, begins = ("", "") if above is None else (above.phase, f"{above.scope}." if above.scope else "")
        for number, task in enumerate(self.tasks):
            fold = _fold(task[0], task[2], number) if isinstance(task, tuple) and len(task) == 3 else ""
            yield (_in_fold(task[0], phase, begins + fold), *task[1:]) if fold else task


class _SizedTurns(_Turns):
    def __len__(self) -> int:
        return len(self.tasks)


def _in_fold(function: Any, phase: str, scope: str) -> Any:
    @out_of_sight
    def fold(*args: Any, **kwargs: Any) -> Any:
        reset = TOP.set(framed(None, "", phase, scope))
        try:
            return function(*args, **kwargs)
        finally:
            TOP.reset(reset)

    return fold


def _known(args: Any, parts: Parts) -> tuple[tuple[int, str], ...]:
    return tuple([(i, name) for i, arg in enumerate(args) for name, part in parts if part is arg])


def _fold(function: Any, kwargs: Any, number: int) -> str:
    """Which fold of a cross-validation a task fits and scores; its functions are known by their names."""
    if getattr(getattr(function, "function", function), "__name__", "") not in _FOLDS:
        return ""
    progress = kwargs.get("split_progress")
    return f"fold {progress[0] + 1 if progress else number + 1}"


class Task:
    """A joblib task that knows where it was made; else it is its function."""

    def __init__(self, place: Place, function: Any, home: Home | None) -> None:
        self.place, self.function, self.home = place, function, home

    @property
    def __name__(self) -> str:
        """Dask shows it."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __reduce__(self) -> Any:
        if self.home is not None:
            self.home.expect()
        return Landing(), (tuple(self.place), self.function)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and bool(self.function == other.function)

    def __hash__(self) -> int:
        return hash(self.function)

    @out_of_sight
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.home is not None:
            return self._here(self.home, args, kwargs)
        return self._elsewhere(args, kwargs)

    def _parts(self, args: Any) -> Parts:
        return tuple((name, args[i]) for i, name in self.place.known)

    @out_of_sight
    def _here(self, home: Home, args: Any, kwargs: Any) -> Any:
        home.ran_here = True
        frame, place = home.frame, self.place
        alone = home.thread == get_ident() and TOP.get() is frame  # in turn, where joblib was called
        if alone and not place.is_fold:
            return self.function(*args, **kwargs)
        probes: dict[tuple[Any, ...], int] = {}
        if place.is_fold:
            frame = framed(None, "", place.phase, place.scope)
        elif frame is not None:  # threads must not count in one frame
            frame = copy.copy(frame)
            frame.probes, frame.kinds = probes, frame.kinds + self._parts(args)  # Dask copies what it sends to threads
        before, reset = None if alone else CONTEXT.set(home.context), TOP.set(frame)
        try:
            return self.function(*args, **kwargs)
        finally:
            TOP.reset(reset)
            if before is not None:
                CONTEXT.reset(before)
            if probes:
                home.counted_here(probes)

    @out_of_sight
    def _elsewhere(self, args: Any, kwargs: Any) -> Any:
        place = self.place
        kinds = self._parts(args) + place.kinds
        frame = framed(None, "", place.phase, place.scope, place.silent, kinds, place.unheard)
        with opened("worker", phases=place.phases) as context:
            reset = TOP.set(frame if place.scope else None)
            function = self._seen((*args, *kwargs.values()))
            try:
                value = function(*args, **kwargs)
            finally:
                TOP.reset(reset)
            probes = frame.probes if not place.is_fold else {}  # no rule speaks for a fold
            try:
                brought = _harvested(context.token, probes)
            except Exception as error:  # the task comes first
                brought = Brought([], {}, (f"a worker's counts are lost: {type(error).__name__}: {error}",), probes)
        return Returning(place[:2], secrets.token_hex(8), value, brought)

    def _seen(self, given: Iterable[Any]) -> Any:
        """The function, and with it the program's classes, as they are seen in the process where the task was made."""
        watch = WATCHERS.watches.get("sklearn")
        if watch is not None:
            seeing = cast("EstimatorWatch", watch)
            own.catch_up(seeing)
            own.meet(seeing, given, frozenset(kind for _, kind in self.place.kinds))
        return own.bound_anew(self.function)


def _harvested(token: Token, probes: dict[tuple[Any, ...], int]) -> Brought:
    harvests = WATCHERS.harvest(token)
    rows = list(sum((harvest.ledger for harvest in harvests), sum(token.inner, Ledger())))
    scopes = {row.scope for row in rows}
    kinds = {scope: layer.kind for one in harvests for scope, layer in one.layers.items() if scope in scopes}
    notes = dict.fromkeys(note for one in harvests for note in one.notes)
    if not WATCHERS.sessions:
        for watch in WATCHERS.watches.values():
            watch.notes.clear()  # this worker may serve another session next
            getattr(watch, "layers", {}).clear()
    return Brought(rows, kinds, tuple(notes), probes)


def landed(origin: str) -> Callable[..., Any]:
    """A task made in process `origin` is being unpickled. It and its function follow."""
    home_again = origin == process()
    if not home_again:
        WATCHERS.hold(*LIBRARIES)

    def task(place: tuple[Any, ...], function: Any) -> Any:
        at = Place(*place)
        home = HOMES.get(at.call) if home_again else None
        return function if home_again and home is None else Task(at, function, home)

    return task
