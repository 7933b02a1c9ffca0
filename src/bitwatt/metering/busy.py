"""How long devices did nothing during a window."""

from __future__ import annotations

from bitwatt.metering.board import GAP, Board

#: The kernel counts a process's time in steps of a hundredth; a reading is off by up to two.
TICK = 0.02
#: For how long some thread of the tree has run or waited for a processor, as far as it was looked at.
WANTED = "wanted_seconds"


class Busy:
    """A GPU says itself which part of the time a kernel ran. A processor is idle for this run while the process tree
    neither has CPU time nor waits for it; with several threads at work that is never."""

    def __init__(self, began: float) -> None:
        self._began = self._looked = began
        self._idle: dict[str, float] = {}
        self._held: dict[str, list[float]] = {}  # seconds and joules of intervals in which a GPU did nothing
        self._still: set[str] = set()
        self._cpu: tuple[float, float, float] | None = None
        self._process_idle: float | None = None
        self._waited = self._recent = 0.0  # for a processor; idle in the last stretch
        self._pulse: tuple[float, float] | None = None
        self._own = [0.0, 0.0, 0.0]  # since the tree was last read: seconds looked at, of them idle, and CPU time
        self._first: float | None = None

    def saw(self, now: float, board: Board) -> None:
        dt = now - self._looked
        if dt > 0:
            self._looked = now
        for (device, quantity), value in board.levels.items():
            if quantity == "utilisation" and board.devices.get(device) is not None:
                if board.devices[device].kind != "gpu":
                    continue
                busy = min(max(value, 0.0), 1.0)
                (self._still.add if busy < 0.02 else self._still.discard)(device)
                if 0 < dt <= GAP:
                    self._idle[device] = self._idle.get(device, 0.0) + dt * (1 - busy)
                    if busy > 0.05 and self._first is None:
                        self._first = now - self._began
        key = ("process", "cpu_seconds")
        at = board.when(key)
        if at is not None:
            wanted = board.totals.get(("process", WANTED), 0.0)
            before, self._cpu = self._cpu, (at, board.totals[key], wanted)
            if before is None:
                self._process_idle = 0.0
            elif 0 < (span := at - before[0]) <= GAP and self._process_idle is not None:
                idle = self._idle_in(span, board.totals[key] - before[1])
                self._process_idle += idle
                self._wait(span, idle, wanted - before[2])

    def _wait(self, span: float, idle: float, wanted: float) -> None:
        """A thread that waits for a processor is not idle. The kernel tells of a wait when it is over: what is more
        than fits belongs to the stretch before."""
        here = max(0.0, idle - max(0.0, span - wanted))
        before = min(max(0.0, wanted - span), self._recent)
        self._process_idle = (self._process_idle or 0.0) - here - before
        self._waited += here + before
        self._recent = idle - here

    def pulse(self, now: float, spent: float) -> None:
        """CPU time of this process alone, which is cheap to ask for: several threads that work and rest in turn would
        else seem to be at work all the time."""
        before, self._pulse = self._pulse, (now, spent)
        if before is not None and 0 < (span := now - before[0]) <= GAP:
            busy = spent - before[1]
            self._own[0] += span
            self._own[1] += max(0.0, span - busy)
            self._own[2] += busy

    def _idle_in(self, span: float, tree: float) -> float:
        """Of a stretch in which the tree had so much CPU time: what this process did not use, less its children's."""
        looked, rest, own = self._own
        self._own = [0.0, 0.0, 0.0]
        if looked < 0.8 * span:
            return max(0.0, span - tree)
        children = max(0.0, tree - own - TICK)
        return max(0.0, min(rest, span) - children)

    def power(self, device: str, dt: float, watts: float) -> None:
        if device in self._still:
            cell = self._held.setdefault(device, [0.0, 0.0])
            cell[0] += dt
            cell[1] += watts * dt

    def held_w(self, device: str) -> float | None:
        seconds, joules = self._held.get(device, (0.0, 0.0))
        return joules / seconds if seconds >= 2.0 else None

    def idle_seconds(self, kind: str, device: str) -> float | None:
        return self._idle.get(device) if kind == "gpu" else self._process_idle

    def told(self) -> dict[str, float]:
        found = {} if self._process_idle is None else {"idle_seconds": self._process_idle}
        if self._process_idle is not None and self._waited:
            found["cpu_wait_seconds"] = self._waited
        return found if self._first is None else found | {"first_busy_seconds": self._first}
