"""Watch estimators: start, stop, and hand a session what was counted for it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bitwatt.backends.harvest import Folder, Harvest
from bitwatt.backends.sklearn import boosters, facts, methods, parallel, probes, readers
from bitwatt.backends.sklearn.frames import Frame
from bitwatt.backends.sklearn.names import op_name
from bitwatt.backends.text import _torch_state
from bitwatt.context import Context, Token, phase_path
from bitwatt.ledger import Ledger, Row
from bitwatt.records import Layer, Op

#: Calls noted down before they are entered in the ledger, and distinct ones in it before they are folded.
_MANY = 10_000
#: Remarks that are kept: their texts may hold what differs each time.
_NOTES = 100
#: Methods after which an estimator knows new things.
_FITS = ("fit", "partial_fit", "fit_transform", "fit_predict")


class EstimatorWatch:
    """One per process while any session is open."""

    def __init__(self) -> None:
        self.on = True
        self.ledgers: dict[Context, Ledger] = {}
        self.calls: dict[Context, list[tuple[str, str, Any]]] = {}
        self.seconds: dict[tuple[Context, str], float] = {}
        self.layers: dict[str, Layer] = {}
        self.notes: dict[str, None] = {}
        self._room = _MANY
        self._undo: list[Callable[[], None]] = []
        self._began: dict[Frame, float] = {}

    def start(self) -> None:
        readers.load()
        facts.forget()
        self._undo += methods.install(self)
        self._undo += boosters.install(self)
        self._undo += probes.install(self)
        self._undo += parallel.install(self)

    def stop(self) -> None:
        self.on = False
        while self._undo:
            self._undo.pop()()

    def arrive(self) -> None:
        """A patch holds for every thread."""

    leave = arrive

    def forget(self) -> None:
        self.on = False

    def enter(self, estimator: Any, method: str, above: Frame | None) -> Frame:
        silent = facts.is_whole(type(estimator), method)
        if above is None:
            frame = Frame(estimator, method, methods.phase_of(method), type(estimator).__name__, silent)
            self._began[frame] = time.perf_counter()
            return frame
        is_own = above.estimator is estimator  # score calls predict, predict calls decision_function
        scope = above.scope if is_own else f"{above.scope}.{above.name_of(estimator)}"
        return Frame(estimator, method, above.phase or methods.phase_of(method), scope, silent)

    def record(self, frame: Frame, function: Any, args: Any, kwargs: Any, result: Any, context: Context) -> None:
        try:
            self._record(frame, function, args, kwargs, result, context)
        except Exception as error:  # the user's program comes first
            name = f"{type(frame.estimator).__name__}.{frame.method}"
            note = f"{name} could not be recorded: {type(error).__name__}: {error}"
            if note not in self.notes and len(self.notes) < _NOTES:
                self.notes[note] = None
                warnings.warn(f"bitwatt: {note}", RuntimeWarning, stacklevel=3)
        self._clock(frame, context)

    def _record(self, frame: Frame, function: Any, args: Any, kwargs: Any, result: Any, context: Context) -> None:
        estimator = frame.estimator
        known = facts.hyper_parameters(estimator) + facts.fitted(estimator, fresh=frame.method in _FITS)
        known += facts.arguments(function, args, kwargs)
        out = facts.spec_of(result)
        if frame.probes:
            seen = sorted(((*what, times) for what, times in frame.probes.items()), key=repr)
            known += (("probes", tuple(seen)),)
        outputs = (out,) if hasattr(out, "shape") else ()
        op = (op_name(type(estimator), frame.method, function), known, outputs)
        calls = self.calls.setdefault(context, [])
        calls.append((frame.phase, frame.scope, op))
        if frame.scope not in self.layers:
            self.layers[frame.scope] = Layer(type(estimator).__name__)
        if len(calls) > _MANY:
            self._settle(context)

    def _settle(self, context: Context) -> None:
        """Enter calls in the ledger, later and together: hashing them takes longer than noting them down."""
        ledger = self.ledgers.setdefault(context, Ledger())
        for found, scope, op in self.calls.pop(context, ()):
            ledger.add(phase_path(found, context.phases, context.phases), scope, Op(*op))
        self._relieve(context)

    def _relieve(self, context: Context) -> None:
        """Fold calls of too many sizes, as long as there are too many."""
        if len(self.ledgers[context]) > self._room and context.token.folder is not None:
            folder: Folder = context.token.folder(self.layers)
            self.ledgers[context] = folder.ledger(self.ledgers[context], _MANY)
            self._room = max(_MANY, 2 * len(self.ledgers[context]))

    def add(self, context: Context, rows: Iterable[Row], kinds: Mapping[str, str], notes: Iterable[str]) -> None:
        """What a worker process counted. Its phases hold the user's already."""
        ledger = self.ledgers.setdefault(context, Ledger())
        for row in rows:
            ledger.add(row.phase, row.scope, row.op, row.calls)
        self._relieve(context)
        for scope, kind in kinds.items():
            self.layers.setdefault(scope, Layer(kind))
        self.notes |= dict.fromkeys(notes)

    def failed(self, frame: Frame, context: Context) -> None:
        """A call that raised did some work that nobody can tell."""
        name = f"{type(frame.estimator).__name__}.{frame.method}"
        self.notes.setdefault(f"{name} raised: what it had computed until then is not counted", None)
        self._clock(frame, context)

    def _clock(self, frame: Frame, context: Context) -> None:
        began = self._began.pop(frame, None)
        if began is not None and _torch_state() is None:
            key = (context, frame.phase)
            self.seconds[key] = self.seconds.get(key, 0.0) + time.perf_counter() - began

    def collect(self, token: Token) -> Harvest:
        ledger, seconds = Ledger(), dict[str, float]()
        for context in [c for c in self.calls if c.token is token]:
            self._settle(context)
        for context in [c for c in self.ledgers if c.token is token]:
            ledger += self.ledgers.pop(context)
        for context, found in [key for key in self.seconds if key[0].token is token]:
            phase = phase_path(found, context.phases, context.phases)
            seconds[phase] = seconds.get(phase, 0.0) + self.seconds.pop((context, found))
        return Harvest(ledger, seconds, dict(self.layers), tuple(self.notes))
