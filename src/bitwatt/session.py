"""measure(): open the backends, run the user's code, and close into a Run."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

from bitwatt import backends, context, journal, revision, store
from bitwatt.about import About, described
from bitwatt.backends.harvest import Harvest
from bitwatt.backends.watchers import WATCHERS
from bitwatt.closing import add, by_children, give, have_workers, inside, new_id, status_of, summary_of
from bitwatt.companions import Beside
from bitwatt.config import Settings, settings_here
from bitwatt.errors import BitwattError
from bitwatt.folding import Folder, note
from bitwatt.ledger import Ledger
from bitwatt.machine import describe, float32
from bitwatt.metering import Attached, Meter
from bitwatt.observed import settled
from bitwatt.observing import Observer, most
from bitwatt.pricing import totals
from bitwatt.ranks.identity import from_environment
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.ranks.pattern import apart, recognised
from bitwatt.records import Layer, Machine, Op, Rank, Run
from bitwatt.replaying import joined
from bitwatt.served import Requests
from bitwatt.store.places import Where, absolute
from bitwatt.telling import Teller
from bitwatt.uncollected import uncollected

#: Credit steps that are known and count what varies, count every step, or sample also what varies.
EXACTNESS = ("auto", "always", "sample")

F = TypeVar("F", bound=Callable[..., Any])


_names: Counter[str] = Counter()  # sessions of each name so far


class Serves(Protocol):
    """Counts requests (serving.counter)."""

    def told(self) -> Requests: ...


class Session:
    """A measurement under way. `run` is there once it has ended, also by an exception; `path` if it was kept."""

    def __init__(
        self,
        name: str,
        *,
        keep: bool,
        root: str | Path | None,
        strict: bool,
        command: str,
        fakes: bool = False,
        exactness: str = "auto",
        meter: bool | Meter = True,
        settings: Settings | None = None,
        nvtx: bool = False,
        about: About | None = None,
        to: Any = None,
    ) -> None:
        self.name, self.strict, self.command = name, strict, command
        self.run: Run | None = None
        self.path: Where | None = None
        self.trouble = ""  # why it is not where it should be kept
        self.requests: Serves | None = None  # counts what is served, if it is a server that is measured
        self._machine: Machine | None = None
        self._float32 = float32()
        self._remarks: list[str] = []
        self._workers = False  # that send back what they count
        self.counts = True  # else a command, whose processes are metered alone
        self._keep, self.root = keep, absolute(self._place(root) if keep else store.FOLDER)
        self._settings = settings_here() if settings is None and keep else settings  # the program may change its folder
        self._process = os.getpid()
        self._nth = _names[name]
        _names[name] += 1
        outer = context.CONTEXT.get()
        self._phases = outer.phases if outer else ()
        self._context: AbstractContextManager[context.Context] = context.opened(
            name, fakes=fakes, folder=Folder, exactness="always" if fakes else exactness
        )
        WATCHERS.open()
        self._token = self._context.__enter__().token
        self._meter = Attached(False if fakes else meter, self._token, self._settings)
        self._started, self._clock = datetime.now(UTC), time.perf_counter()
        WATCHERS.begin()
        self._observer = self._token.observer = Observer(nvtx=nvtx)
        self._beside = Beside(self._clock)
        self.id = new_id(self._started)
        self._git = revision.head() if keep else {}
        self._teller = self._token.about = Teller(self.id, inside(about or About(), self._token.parent))
        if keep and not fakes:
            journal.begin(self, self.root)
            self._token.offer = {"job": self.id, "name": name, "store": str(self.root), "command": command}
        #: What takes the run elsewhere, and what became of that (sinks.delivery).
        self.delivery = None if fakes else self._attached(to)
        self.receipts: list[Any] = []

    def _attached(self, to: Any) -> Any:
        """Settings speak for the outermost session: what is inside it is sent with it."""
        is_inner = self._token.parent is not None
        wanted = to if to is not None else () if is_inner or self._settings is None else self._settings.to
        if not wanted:
            return None
        from bitwatt.sinks.attached import attached

        return attached(self, wanted, self._started.isoformat(timespec="milliseconds"), self._settings)

    def _place(self, given: str | Path | None) -> Where:
        """What is given must be right; a setting that is not must not stop the program."""
        if given is not None:
            return store.place(given).root
        try:
            return store.place().root
        except BitwattError as error:
            self._remarks.append(f"it is kept in {store.FOLDER}: {error}")
            warnings.warn(f"bitwatt: {self._remarks[-1]}", stacklevel=6)
            return store.FOLDER

    def close(self, error: BaseException | None = None) -> None:
        """End the measurement. In a forked child nothing happens: the parent reports."""
        if os.getpid() != self._process or self.run is not None:
            return
        if self.delivery is not None:
            self.delivery.rest()
        with journal.closing(self), uncollected():
            self._close(error)
        if self.delivery is not None and self.run is not None:
            self.receipts = self.delivery.finish(self.run)
            self._note([*self.delivery.notes, *(note for receipt in self.receipts if (note := receipt.note))])
        if self.strict and error is None and self.run is not None:
            totals(self.run, strict=True)

    def _close(self, error: BaseException | None) -> None:
        self._meter.synchronise()
        self._token.ended = time.perf_counter()
        seconds = self._token.ended - self._clock
        self._meter.end()
        harvests, notes = list[Harvest](), list[str]()
        self._workers |= have_workers(WATCHERS.watches)
        try:
            harvests = WATCHERS.harvest(self._token)
        except Exception as problem:  # the user's program, and his exception, come first
            notes = [f"what was counted could not be collected: {type(problem).__name__}: {problem}"]
            warnings.warn(f"bitwatt: {notes[0]}", RuntimeWarning, stacklevel=4)
        finally:
            self._context.__exit__(None, None, None)
            WATCHERS.close()
        try:
            self.run = self._finished(harvests, notes, seconds, status_of(error))
        finally:
            self._beside.close()
        # What a session inside another one counted is part of both; an estimate computed nothing.
        if (outer := self._token.parent) is not None and not self._token.fakes:
            give(outer, self.run, self._phases)
            if outer.observer is not None:
                outer.observer.take(self._observer, self.run.observed, self._phases)
        self._save()

    def _note(self, notes: list[str]) -> None:
        """What went wrong after the run was kept."""
        if notes and self.run is not None:
            self.run = replace(self.run, notes=(*self.run.notes, *notes))
            self._save()

    def _save(self) -> None:
        if self._keep and self.run is not None:
            try:
                self.path, self.trouble = store.keep(self.run, self.root, summary=summary_of(self.run, self._settings))
            except (OSError, BitwattError) as problem:
                self.trouble = f"{problem}; it is lost"
            if self.trouble:
                warnings.warn(f"bitwatt: {self.trouble}", stacklevel=4)

    def _finished(self, harvests: list[Harvest], notes: list[str], seconds: float, status: str) -> Run:
        ledger = sum(self._token.inner, Ledger())
        spans, layers, contents = dict(self._token.inner_seconds), dict[str, Layer](), dict[Op, int]()
        on_device = dict(self._token.inner_device_seconds)
        rank = from_environment()
        for harvest in harvests:
            rank = harvest.rank or rank
            contents |= harvest.contents
            ledger += harvest.ledger
            notes += harvest.notes
            layers |= harvest.layers
            add(spans, harvest.seconds)
            add(on_device, harvest.device_seconds)
        notes += WATCHERS.troubles.values()
        notes += self._remarks + self._meter.remarks + self._beside.notes() + self._teller.notes
        if not harvests and not notes:
            notes.append(f"nothing was watched: the program imported none of {', '.join(backends.FRAMEWORKS)}")
        ledger = Folder(layers).ledger(apart(rank, ledger))
        notes += filter(None, [note(ledger)])
        if len(self._token.contexts) > context.PHASES:
            notes.append(f"more than {context.PHASES:,} phases were named: in the names of later ones numbers are #")
        observed = self._observer.told(
            most(harvest.device_memory for harvest in harvests),
            max((h.device_peak for h in harvests if h.device_peak is not None), default=None),
            self._beside.figures(),
        )
        spans = settled(spans, observed.phases if observed is not None else {}, seconds)
        metered = self._meter.metered(spans, on_device, self._observer.beginning)
        notes += filter(None, [by_children(metered, counted=self._workers or not self.counts)])
        found = None if rank is None else self._one_of(recognised(rank, ledger, layers), contents)
        about = self._teller.told(self._git if status == UNDER_WAY else revision.with_changes(self._git))
        if found is not None and about.parent_kind in ("", "session"):
            about = replace(about, parent=found.job, parent_kind="rank")
        return Run(
            id=self.id,
            name=self.name,
            started=self._started.isoformat(timespec="milliseconds"),
            seconds=seconds,
            ledger=ledger,
            machine=self._machine if status == UNDER_WAY and self._machine is not None else describe(self._float32),
            phase_seconds=spans,
            layers=layers,
            command=self.command,
            status=status,
            notes=tuple(notes),
            device_seconds=on_device,
            replay=joined(harvests, layers),
            rank=found,
            about=about,
            meter=metered,
            requests=None if self.requests is None else self.requests.told(),
            observed=observed,
        )

    def _one_of(self, rank: Rank, contents: dict[Op, int]) -> Rank:
        """Sessions of one name are told apart by their order, which is the same on every rank."""
        return replace(rank, job=f"{rank.job}.{self._nth}" if self._nth else rank.job, contents=contents)

    @property
    def is_rank(self) -> bool:
        """Whether this process is known by now to be one of several."""
        return from_environment() is not None or any(
            getattr(watch, "rank", None) for watch in list(WATCHERS.watches.values())
        )

    def so_far(self, status: str) -> Run | None:
        """What was counted until now, while the program goes on; None where no backend can tell."""
        seconds, harvests = time.perf_counter() - self._clock, WATCHERS.snapshot(self._token)
        notes = [] if harvests else ["what it counted is known when it ends"]
        run = self._finished(harvests, notes, seconds, status) if harvests or self._meter.is_on else None
        self._machine = run.machine if run is not None else None  # once is enough while it runs
        return run

    def remark(self, text: str) -> None:
        """For the notes of the run."""
        self._remarks.append(text)

    def __repr__(self) -> str:
        return f"<session {self.name!r}: {'under way' if self.run is None else self.run.status}>"

    def _repr_html_(self) -> str:
        return self.run._repr_html_() if self.run is not None else f"<p>{self.name}: under way</p>"


class Measure:
    """What measure() returns: a context manager, also an asynchronous one, and a decorator."""

    def __init__(self, name: str | None, options: dict[str, Any]) -> None:
        self._name, self._options = name, options
        self._sessions: list[Session] = []

    def __enter__(self) -> Session:
        self._sessions.append(Session(self._name or "run", **self._options))
        return self._sessions[-1]

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self._sessions.pop().close(error)

    async def __aenter__(self) -> Session:
        return self.__enter__()

    async def __aexit__(self, *problem: Any) -> None:
        self.__exit__(*problem)

    def __call__(self, function: F) -> F:
        """Measure every call of `function`; the last one's session is its `session` attribute."""
        name = self._name or function.__qualname__

        def again() -> Measure:
            return Measure(name, self._options)

        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def measured(*args: Any, **kwargs: Any) -> Any:
                with again() as measured.session:  # type: ignore[attr-defined]
                    async for item in function(*args, **kwargs):
                        yield item

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def measured(*args: Any, **kwargs: Any) -> Any:
                with again() as measured.session:  # type: ignore[attr-defined]
                    yield from function(*args, **kwargs)

        elif inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def measured(*args: Any, **kwargs: Any) -> Any:
                with again() as measured.session:  # type: ignore[attr-defined]
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def measured(*args: Any, **kwargs: Any) -> Any:
                with again() as measured.session:  # type: ignore[attr-defined]
                    return function(*args, **kwargs)

        return measured  # type: ignore[return-value]


def measure(
    name: str | Callable[..., Any] | None = None,
    *,
    keep: bool = True,
    store: str | Path | None = None,
    strict: bool = False,
    command: str | None = None,
    fakes: bool = False,
    exactness: str = "auto",
    meter: bool | Meter = True,
    settings: Settings | None = None,
    nvtx: bool = False,
    tags: Mapping[str, str] | Iterable[str] | str | None = None,
    version: str = "",
    parameters: Mapping[str, Any] | None = None,
    dataset: str = "",
    batch_size: int | None = None,
    parent: str = "",
    parent_kind: str = "",
    to: Any = None,
) -> Any:
    """Count what runs inside: `with measure("resnet18") as session: ...`, or as a decorator.

    `keep` writes the run to the store (by default .bitwatt/ beside the project); `strict` raises at the end if an op
    was called that no rule covers. `fakes` is for estimate(): it counts fake tensors, which otherwise are torch working
    out shapes. `meter` also reads what the machine tells of energy and use: False for nothing, or a Meter of your own.
    `exactness` says which steps are looked at: those that are not known ("auto"), all ("always"), or of those that vary
    a sample ("sample"); see docs/concepts/always-on.md. `settings` are those of the current folder unless given. `nvtx`
    marks phases for NVIDIA's tools on CUDA. The rest is kept with the run, to find it by: tags ("good", or
    {"team": "vision"}), the model's version, parameters, data, and the run or sweep that it is part of. `to` names
    where the run is sent as well: "mlflow", "csv=emissions.csv", or a list of such (docs/guides/sinks.md).
    """
    if to:
        from bitwatt.sinks import make

        make(to)  # what is wrong with it is told now
    if exactness not in EXACTNESS:
        raise BitwattError(f"exactness is one of {', '.join(EXACTNESS)}, not {exactness!r}")
    options = {
        "keep": keep,
        "root": store,
        "strict": strict,
        "command": " ".join(sys.argv) if command is None else command,
        "fakes": fakes,
        "exactness": exactness,
        "meter": meter,
        "settings": settings,
        "nvtx": nvtx,
        "to": to,
        "about": described(
            tags=tags, version=version, parameters=parameters, dataset=dataset, batch_size=batch_size, parent=parent,
            parent_kind=parent_kind,
        ),
    }  # fmt: skip
    if callable(name):
        return Measure(None, options)(name)
    return Measure(name, options)
