"""Watch estimators: start, stop, and hand a session what was counted for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from sys import modules
from threading import get_ident
from time import perf_counter
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from bitwatt.backends.harvest import Folder, Harvest
from bitwatt.backends.sklearn import boosters, facts, methods, own, parallel, probes, readers, results, rounds, streams
from bitwatt.backends.sklearn.calls import MANY, Call, Calls
from bitwatt.backends.sklearn.frames import Frame
from bitwatt.backends.sklearn.plans import FITS, Plan
from bitwatt.backends.text import TORCH, _torch_state
from bitwatt.context import Context, Token, left, phase_path
from bitwatt.ledger import Ledger, Row
from bitwatt.passing import handed_on
from bitwatt.records import Layer

#: Remarks that are kept: their texts may hold what differs each time.
_NOTES = 100
#: Distinct calls in a ledger before they are folded.
_ROOM = 10_000


class EstimatorWatch:
    """One per process while any session is open."""

    #: The one that is at work. What is put in the place of methods is made once, for all that come after each other.
    now: ClassVar[EstimatorWatch | None] = None

    def __init__(self) -> None:
        self.on, self.has_workers = True, False
        self.calls: dict[Context, Calls] = {}
        self.layers: dict[str, Layer] = {}
        self.notes: dict[str, None] = {}
        self._room = _ROOM
        self.loops: dict[tuple[int, Context], rounds.Loop] = {}
        self.own: WeakValueDictionary[int, type] = WeakValueDictionary()  # classes of the program, by identity
        self._undo: list[Callable[[], None]] = []
        self._plans: dict[tuple[type, str, Any], Plan] = {}

    def start(self) -> None:
        type(self).now = self
        readers.load()
        facts.forget()
        streams.forget()
        self._undo += methods.install(self)
        self._undo += own.install(self)
        self._undo += boosters.install(self)
        self._undo += probes.install(self)
        self._undo += parallel.install(self)

    def stop(self) -> None:
        self.forget()
        while self._undo:
            self._undo.pop()()
        facts.forget()

    def arrive(self) -> None:
        """A patch holds for every thread."""

    begin = leave = arrive

    def forget(self) -> None:
        self.on = False
        if type(self).now is self:
            type(self).now = None

    def plan(self, kind: type, method: str, function: Any) -> Plan:
        key = (kind, method, function)
        known = self._plans.get(key)
        if known is None:
            known = self._plans[key] = Plan(kind, method, function)
        return known

    def enter(self, estimator: Any, plan: Plan, above: Frame | None, context: Context) -> Frame:
        frame = Frame()
        frame.estimator, frame.method, frame.unheard, silent = estimator, plan.method, plan.unheard, plan.silent
        frame.silent = silent if type(silent) is bool else silent(estimator)
        frame.again = frame.told = frame.held = frame.mark = frame.names = None
        frame.kinds, frame.probes = (), {}
        if above is None:
            frame.phase, frame.scope = plan.phase, plan.scope
            calls = frame.calls = self.calls.get(context) or self._calls(context)
            if plan.phase not in calls.paths:
                frame.mark = calls.begin(plan.phase)
            frame.began = perf_counter()
            return frame
        frame.phase, frame.began = above.phase or plan.phase, 0.0
        if above.estimator is None and not above.kinds:  # a fold
            frame.scope = f"{above.scope}.{plan.scope}"
        elif above.estimator is estimator:
            frame.scope = above.scope
        else:
            frame.scope = f"{above.scope}.{above.name_of(estimator)}"
        return frame

    def record(
        self, frame: Frame, plan: Plan, args: Any, kwargs: Any, result: Any, context: Context, caller: str = ""
    ) -> None:
        """It is called for every method that ends, so it does at once only what cannot wait. `caller` is the method of
        the same estimator that called this one."""
        try:
            estimator, known, seen = frame.estimator, frame.told, frame.probes
            if plan.hollow and (caller or not frame.began):
                if plan.fits and known is None:
                    facts.outdated(estimator)
                self._note(frame, (plan, *facts.NOTHING, ()), context)
                return
            if plan.look is not None and (found := results.told(plan.look, estimator, args, result)) is not None:
                seen[found] = 1
            if plan.fits:
                if known is None or not facts.still_holds(estimator, frame.held):
                    known = facts.known(estimator, True)
                if caller:  # fit_transform calls fit, fit calls partial_fit
                    frame.told, frame.held = known, estimator.__dict__.copy()
            elif known is None or frame.held is not None or caller in FITS:  # what is learnt so far may change
                known = facts.known(estimator, False)
                if caller not in FITS and frame.held is None:
                    frame.told = known
            given = facts.given(args, kwargs, None if result is estimator else result, plan.given, plan.streams)
            plan.given = given
            self._note(frame, (plan, known, given, tuple(seen.items()) if seen else ()), context)
        except Exception as error:  # the user's program comes first
            self.lost(f"{type(frame.estimator).__name__}.{plan.method}", error)
        if frame.began and not caller:
            self.clock(frame, context)

    def _note(self, frame: Frame, call: Call, context: Context) -> None:
        calls = self.calls.get(context) or self._calls(context)
        waiting = calls.waiting
        waiting.append((frame.phase, frame.scope, call))
        if len(waiting) >= MANY:
            calls.count()
            self.relieve(context)

    def called(self, frame: Frame, plan: Plan, context: Context) -> None:
        """A function of a class: there is no estimator that tells anything."""
        self._note(frame, (plan, *facts.NOTHING, ()), context)
        self.clock(frame, context)

    def lost(self, name: str, error: Exception) -> None:
        handed_on(error)
        note = f"{name} could not be recorded: {type(error).__name__}: {error}"
        if note not in self.notes and len(self.notes) < _NOTES:
            self.notes[note] = None
            warnings.warn(f"bitwatt: {note}", RuntimeWarning, stacklevel=3)

    def _calls(self, context: Context) -> Calls:
        return self.calls.get(context) or self.calls.setdefault(context, Calls(context, self.layers, self.lost))

    def relieve(self, context: Context) -> None:
        """Fold calls of too many sizes, as long as there are too many."""
        calls = self._calls(context)
        if calls.size > self._room and context.token.folder is not None:
            folder: Folder = context.token.folder(self.layers)
            self._room = max(_ROOM, 2 * calls.fold(folder, _ROOM))

    def add(self, context: Context, rows: Iterable[Row], kinds: Mapping[str, str], notes: Iterable[str]) -> None:
        """What a worker process counted. Its phases hold the user's already."""
        self._calls(context).add(rows)
        self.relieve(context)
        for scope, kind in kinds.items():
            self.layers.setdefault(scope, Layer(kind))
        self.notes |= dict.fromkeys(notes)

    def failed(self, frame: Frame, context: Context) -> None:
        self.raised(frame)
        if frame.began:
            self.clock(frame, context)

    def raised(self, frame: Frame) -> None:
        """A call that raised did some work that nobody can tell."""
        name = f"{type(frame.estimator).__name__}.{frame.method}"
        self.notes.setdefault(f"{name} raised: what it had computed until then is not counted", None)

    def clock(self, frame: Frame, context: Context) -> None:
        """The outermost call has ended."""
        phase, began, mark, calls = frame.phase, frame.began, frame.mark, frame.calls
        spent, token = perf_counter() - began, context.token
        if mark is not None:
            left(context, mark)
        if not token.open:  # it was under way when its session closed
            return
        if TORCH not in modules or _torch_state() is None:
            calls.seconds[phase] += spent
        if mark is None and (observer := token.observer) is not None:
            ended = observer.ended
            ended.append((calls.paths[phase], began, spent, get_ident()))
            if len(ended) >= MANY:
                observer.add_up()

    def collect(self, token: Token) -> Harvest:
        ledger, seconds = Ledger(), dict[str, float]()
        rounds.settle(self, token)
        parallel.settle(token)
        for context in [c for c in self.calls if c.token is token]:
            calls = self.calls.pop(context)
            ledger += calls.ledger()
            for found, spent in calls.seconds.items():
                phase = phase_path(found, context.phases, context.phases)
                seconds[phase] = seconds.get(phase, 0.0) + spent
        return Harvest(ledger, seconds, dict(self.layers), tuple(self.notes))
