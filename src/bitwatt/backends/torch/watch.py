"""Watch PyTorch: start, stop, and hand a session what was counted for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode, _push_mode

from bitwatt.backends.harvest import Harvest
from bitwatt.backends.torch import (
    batches,
    collectives,
    compact,
    compiling,
    dataloader,
    device_memory,
    graphs,
    higher_order,
    hooks,
    keys,
    layers,
    modules,
    packages,
    received,
    samplers,
    spawned,
    threads,
    triton,
)
from bitwatt.backends.torch.contents import Contents
from bitwatt.backends.torch.encode import decode, name_of
from bitwatt.backends.torch.mode import CountingMode, Plan, mode_here
from bitwatt.backends.torch.replay import announced
from bitwatt.backends.torch.replay.checks import Tally
from bitwatt.backends.torch.replay.events import Events
from bitwatt.backends.torch.replay.families import Rows
from bitwatt.backends.torch.replay.learner import Learner
from bitwatt.backends.torch.replay.lessons import expanded
from bitwatt.backends.torch.scopes import Scopes
from bitwatt.backends.torch.snapshot import counted, snapshot, spent
from bitwatt.backends.torch.state import Launch, States, ThreadState, graph_task
from bitwatt.context import Token, current, phase_path
from bitwatt.ledger import Ledger
from bitwatt.records import Op, Rank

#: What torch's own functions come to for modes like ours; they are called some times in each step that is looked at.
_modes, _mode_at = torch._C._len_torch_dispatch_stack, torch._C._get_dispatch_stack_at
_push, _pop = torch._C._push_on_torch_dispatch_stack, torch._C._pop_torch_dispatch_stack

#: The watch of this process while a session is open.
active: TorchWatch | None = None

#: A ledger longer than this gives up its deepest scopes (records.Ledger.folded).
ROWS = 200_000
#: Of threads that could not be joined where they were started.
_OLDER = (
    "a thread that ran before the session was opened is counted in its calls of modules, backward and steps of "
    "optimizers alone: what it computes between them is not seen"
)
#: Remarks that are kept: their texts may hold what differs each time.
NOTES = 100


class TorchWatch:
    """One per process while any session is open."""

    def __init__(self) -> None:
        self.on = True
        self.everyone: list[ThreadState] = []
        self.states = States(self.everyone)
        self.scopes = Scopes()
        self.launches: list[Launch] = []
        self.notes: dict[str, None] = {}
        self.ops: dict[Any, Op] = {}
        self.spool, self.has_workers = dataloader.Spool(), False
        self.events = Events(self.failed)
        self.optimizer_hooks = hooks.OptimizerHooks(self)
        self.collectives = collectives.Collectives(self)
        self.contents: Contents | None = None  # where there are several ranks
        self._undo: list[Callable[[], None]] = []

    def start(self) -> None:
        global active
        active = self
        layers.prepare()
        self._undo += announced.install(self.events.structures, self.states)
        self._undo += modules.install(self)
        self._undo += hooks.install(self)
        self._undo += threads.install(self)
        self._undo += dataloader.install(self)
        self._undo += samplers.install(self)
        self._undo += received.install(self)
        self._undo += batches.install(self)
        self._undo += triton.install(self)
        self._undo += higher_order.install(CountingMode)
        self._undo += compiling.install(self)
        self._undo += keys.install()
        self._undo += graphs.install(self)
        self._undo += packages.install(self)
        self._undo += self.collectives.install()
        self._undo += spawned.install(self)

    def stop(self) -> None:
        global active
        active = None
        self.on = False
        while self._undo:
            self._undo.pop()()

    def forget(self) -> None:
        """In a forked child: the parent reports, this process only must not disturb."""
        self.on = False
        if (mode := mode_here(self)) is not None:
            _leave(mode)

    # -- threads: a dispatch mode is entered on each

    def arrive(self) -> None:
        state = self.states.here
        state.sessions += 1
        self.join(state, self)
        if state.resting is not None and state.learner is not None:  # the session around it replays
            state.learner.skip()
        if state.sessions > 1:
            state.clock()  # what ran until now is of the session around it
        else:
            state.begin_clock()

    def begin(self) -> None:
        self.states.here.begin_clock()

    def leave(self) -> None:
        state = self.states.here
        state.sessions = max(0, state.sessions - 1)
        if not state.sessions:
            self.part(state, self)

    def join(self, state: ThreadState, owner: Any = None) -> None:
        """Count on this thread, unless it is counted on already, until `part` is called with the same owner."""
        if state.mode is not None or state.resting is not None or mode_here(self) is not None:
            return
        if owner is None and current() is not None:  # nobody has told of this thread
            self.notes[_OLDER] = None
        state.mode = CountingMode(self)
        state.mode.owner = owner
        _push_mode(state.mode)
        if state.learner is None:
            state.learner = Learner(state, self.switch, lambda state: compact.relieve(self, state), self.failed)
        if owner is not None:
            state.learner.attach()

    def part(self, state: ThreadState, owner: Any = None) -> None:
        if state.resting is not None and state.resting.owner is owner:
            state.resting = None
        if state.mode is not None and state.mode.owner is owner:
            mode, state.mode = state.mode, None
            _leave(mode)

    def switch(self, state: ThreadState, on: bool) -> None:
        """Let the mode of a thread rest while what runs is known, or wake it."""
        if on and state.resting is not None:
            _ensure(state.resting)
            state.mode, state.resting = state.resting, None
        elif not on and state.mode is not None:
            _leave(state.mode)
            state.mode, state.resting = None, state.mode

    @staticmethod
    def wake(state: ThreadState) -> None:
        """After a backward that ran with the mode off: if it was woken there, the engine has taken it off again."""
        if state.mode is not None:
            _ensure(state.mode)

    def replays_backward(self) -> bool:
        """Whether the running backward is one that is replayed: only counted ones are known here."""
        task = graph_task()
        return task >= 0 and not any(launch.task in (task, -1) for launch in self.launches)

    # -- autograd

    def launch_of(self, state: ThreadState, task: int) -> Launch | None:
        """The call of the engine that runs graph task `task`, perhaps on one of torch's own threads."""
        if state.launches:
            return state.launches[-1]
        for launch in self.launches:
            if launch.task == task:
                return launch
        for launch in reversed(self.launches):
            if launch.task < 0:
                launch.task = task
                return launch
        return self.launches[-1] if self.launches else None

    def scope_at(self, seq: int, state: ThreadState) -> str:
        """The scope that made node `seq`: in the thread that called backward, else in the last that ran a forward."""
        scope = state.trail.find(seq)
        if scope is not None:
            return scope
        for other in reversed(self.everyone):
            if other is not state and (scope := other.trail.find(seq)) is not None:
                return scope
        return ""

    # -- results

    def failed(self, func: Any, error: BaseException) -> None:
        name = func if isinstance(func, str) else name_of(func)
        reason = (str(error).splitlines() or [""])[0][:200]
        note = f"{name} could not be recorded: {type(error).__name__}: {reason}"
        if note not in self.notes and len(self.notes) < NOTES:
            self.notes[note] = None
            warnings.warn(f"bitwatt: {note}", RuntimeWarning, stacklevel=2)

    def collect(self, token: Token) -> Harvest:
        """What was counted for a session that is closing; its counts leave this watch."""
        tally, here = Tally(), self.states.here
        part = [state for state in list(self.everyone) if state is here or state.took_part(token)]
        #: Threads that have not left: they go on, and what is theirs is read and left alone.
        others = {state for state in part if state.mode is not None or state.resting is not None} - {here}
        for state in part:
            if state.learner is not None:
                tally += state.learner.read(token) if state in others else state.learner.closes(token)
                if state is here and state.resting is not None:  # a session around it may count
                    self.switch(state, True)
            if state not in others:
                state.clock(until=token.ended)
                state.settle(closing=token)
        self.scopes.settle()
        ledger, seconds = compact.Gathering(token, self.scopes), dict[str, float]()
        device_seconds = self._on_device(token)
        for state in list(self.everyone):
            if state in others:
                for phase, scope, call, calls in counted(self, state, token):
                    ledger.add(phase, scope, self.op(call), calls)
                for phase, span in spent(state, token).items():
                    seconds[phase] = seconds.get(phase, 0.0) + span
                if state.learner is not None:
                    state.learner.tallies.pop(token, None)
                    state.learner.stale = True
            for place in [p for p in list(state.counts) if p[0].token is token]:
                context, base, found, scope = place
                phase, scope = phase_path(found, base, context.phases), self.scopes.final(scope)
                for call, (calls,) in expanded(state.counts.pop(place)) if state not in others else ():
                    ledger.add(phase, scope, self.op(call), calls)
            for place in [p for p in list(state.pending) if p[0].token is token]:
                state.pending.pop(place, None)
            for key in [k for k in list(state.frames) if k[0][0].token is token]:
                state.frames.pop(key, None)
            for where in [s for s in list(state.seconds) if s[0].token is token]:
                context, base, found = where
                phase, taken = phase_path(found, base, context.phases), state.seconds.pop(where, 0.0)
                seconds[phase] = seconds.get(phase, 0.0) + (taken if state not in others else 0.0)
        for phase, scope, op, calls in self.spool.read(token):
            ledger.add(phase, scope, op, calls)
        replay, deviations, samples = self._replay(token, tally)
        return Harvest(
            ledger.folded(ROWS),
            seconds,
            self.scopes.layers(),
            (*self.notes, *tally.told),
            self.collectives.facts(),
            self.op_contents(),
            replay,
            deviations,
            samples,
            device_seconds,
            **device_memory.collected([state.memory for state in self.everyone], token),
        )

    def _on_device(self, token: Token) -> dict[str, float]:
        """Seconds of GPUs by phase, over threads that used one."""
        seconds = dict[str, float]()
        for timeline in [state.timeline for state in list(self.everyone) if state.timeline is not None]:
            for (context, base, found), span in timeline.collect(token).items():
                if found[0] != "?":
                    phase = phase_path(found, base, context.phases)
                    seconds[phase] = seconds.get(phase, 0.0) + span
            if timeline.broken:
                self.notes[f"the GPU's time is known until it failed: {timeline.broken}"] = None
            if timeline.lost:
                self.notes["the host ran so far ahead of the GPU that not all of its time is known by phase"] = None
        return seconds

    def _replay(self, token: Token, tally: Tally) -> tuple[Any, ...]:
        """What was credited instead of counted, if anything may have been."""
        if token.exactness == "always":
            return None, (), ()
        deviations = tuple([(self._ledger(expected), self._ledger(found)) for expected, found in tally.deviations])
        samples = tuple([(times, tuple(map(self._ledger, rows))) for times, rows in tally.samples])
        return tally.replay(token.exactness), deviations, samples

    def _ledger(self, rows: Rows) -> Ledger:
        ledger = Ledger()
        for (context, base, found, scope), known in rows.items():
            for key, calls in known.items():
                ledger.add(phase_path(found, base, context.phases), self.scopes.final(scope), self.op(key), calls)
        return ledger

    @property
    def rank(self) -> Rank | None:
        """Which rank of a job this process is."""
        return self.collectives.rank

    def snapshot(self, token: Token) -> Harvest:
        """What was counted so far, read while other threads count on."""
        return snapshot(self, token)

    def op_contents(self) -> dict[Op, int]:
        known = self.contents.known if self.contents is not None else {}
        return {self.op(call): number for call, number in list(known.items())}

    def op(self, call: Any) -> Op:
        op = self.ops.get(call)
        if op is None:
            if isinstance(call, Op):
                op = call
            elif isinstance(call, Plan):
                op = Op(name_of(call.func))
            else:
                plan, *rest = call
                op = decode(plan.func, *rest)
            if len(self.ops) >= compact.OPS:
                self.ops.clear()
            self.ops[call] = op
        return op


def _ensure(mode: CountingMode) -> None:
    if not _modes() or mode not in _get_current_dispatch_mode_stack():  # Ctrl-C may have come after it was entered
        _enter(mode)


def _enter(mode: CountingMode) -> None:
    """Put `mode` under those that the program has entered: it leaves them in its own order."""
    above = [_pop_mode() for _ in range(_modes())]
    _push(mode)
    for other in reversed(above):
        _push_mode(other)


def _leave(mode: CountingMode) -> None:
    """Take `mode` off this thread's stack even where the program left other modes above it."""
    above = []
    while (left := _modes()) and _mode_at(left - 1) is not mode:
        above.append(_pop_mode())
    if left:
        _pop(None)
    for other in reversed(above):
        _push_mode(other)
