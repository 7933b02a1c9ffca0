"""A process and its children, the dead ones too: what they used since they were first looked at."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from bitwatt.readings import Reading
from bitwatt.sensors.counters import SYSTEM, Clock, Lock

PROC = Path("/proc")
#: Finding new children means looking at every thread: so often, or more seldom where it takes more than this share of a
#: core. Time of children that come and go in between is not lost: their parent inherits it.
RESCAN_S, SHARE = 5.0, 1 / 5000
#: Where a run begins or ends, this share: there may be many runs a second.
SHARE_AT_ENDS = 1 / 50
#: Bytes are read where a run begins or ends, and so often in between.
IO_S = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One process now. `inherited` is the CPU time of dead children that it waited for."""

    parent: int
    start: float  # tells it from a later process of the same number
    cpu_s: float
    inherited_s: float
    memory_bytes: int
    io: tuple[int, ...]  # read and written: by calls, on disk; with those of dead children


class System(Protocol):
    def sample(self, pid: int, io: bool = True) -> Sample | None: ...
    def children(self, pids: Iterable[int]) -> set[int]: ...


class Linux:
    """From /proc, which costs a tenth of what psutil takes."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = str(proc)  # paths are put together as text: this is read each second
        self._tick_s, self._page = 1 / os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")

    def sample(self, pid: int, io: bool = True) -> Sample | None:
        try:
            stat = text(f"{self._proc}/{pid}/stat")
        except OSError:
            return None
        fields = stat[stat.rindex(")") + 2 :].split()  # the name before may hold anything
        user, system, dead_user, dead_system = (int(field) * self._tick_s for field in fields[11:15])
        return Sample(
            int(fields[1]), int(fields[19]), user + system, dead_user + dead_system, int(fields[21]) * self._page,
            self._io(pid) if io else (),
        )  # fmt: skip

    def _io(self, pid: int) -> tuple[int, ...]:
        try:
            lines = text(f"{self._proc}/{pid}/io").splitlines()
        except OSError:
            return ()
        values = {name: int(value) for name, value in (line.split(": ") for line in lines)}
        return values["rchar"], values["wchar"], values["read_bytes"], values["write_bytes"]

    def children(self, pids: Iterable[int]) -> set[int]:
        found: set[int] = set()
        for pid in pids:
            try:
                for task in os.listdir(f"{self._proc}/{pid}/task"):
                    found.update(map(int, text(f"{self._proc}/{pid}/task/{task}/children").split()))
            except OSError:
                if os.path.exists(f"{self._proc}/{pid}") and not self._lists_children():
                    return self._by_parent(set(pids))
        return found

    def _lists_children(self) -> bool:
        return os.path.exists(f"{self._proc}/self/task/{os.getpid()}/children")

    def _by_parent(self, pids: set[int]) -> set[int]:
        found = set()
        for name in os.listdir(self._proc):
            sample = self.sample(int(name)) if name.isdecimal() else None
            if sample is not None and sample.parent in pids:
                found.add(int(name))
        return found


def text(path: str) -> str:
    """A file of the kernel's, with nothing around that costs."""
    with open(path, "rb", buffering=0) as file:
        return file.read().decode(errors="replace")


class Elsewhere:
    """By psutil, where there is no /proc."""

    def __init__(self) -> None:
        import psutil

        self._psutil: Any = psutil

    def sample(self, pid: int, io: bool = True) -> Sample | None:
        try:
            process = self._psutil.Process(pid)
            with process.oneshot():
                times, counters = process.cpu_times(), getattr(process, "io_counters", None)
                bytes = counters() if counters and io else None
                return Sample(
                    process.ppid(), process.create_time(), times.user + times.system,
                    getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0),
                    process.memory_info().rss, (0, 0, bytes.read_bytes, bytes.write_bytes) if bytes else (),
                )  # fmt: skip
        except self._psutil.Error:
            return None

    def children(self, pids: Iterable[int]) -> set[int]:
        found = set()
        for pid in pids:
            try:
                found |= {child.pid for child in self._psutil.Process(pid).children()}
            except self._psutil.Error:
                continue
        return found


def system() -> System | None:
    """What tells of processes here; None where nothing does."""
    if (PROC / "self/stat").exists():
        return Linux()
    return Elsewhere() if find_spec("psutil") else None


def family(*roots: int, found: System | None = None) -> set[int]:
    """Processes and all their living children."""
    found, pids, new = found or system(), set(roots), set(roots)
    while found is not None and (new := found.children(new) - pids):
        pids |= new
    return pids


@dataclass(frozen=True, slots=True)
class Use:
    """What the tree used since it was first looked at, and holds now."""

    cpu_s: float
    children_s: float  # of that, what others than the first process did
    io: tuple[int, ...]
    memory_bytes: int
    pids: frozenset[int]

    @property
    def processes(self) -> int:
        return len(self.pids)


class TreeSensor(ABC):
    """A sensor that reads a process tree: children born just now are looked for where a run begins or ends."""

    _tree: Tree | None = None

    def read(self) -> list[Reading]:
        return [] if self._tree is None else self._read(self._tree.use(thoroughly=True), thoroughly=True)

    def look(self) -> list[Reading]:
        return [] if self._tree is None else self._read(self._tree.use(thoroughly=False), thoroughly=False)

    def close(self) -> None:
        self._tree = None

    @abstractmethod
    def _read(self, use: Use, *, thoroughly: bool) -> list[Reading]: ...


class Tree:
    def __init__(self, pid: int, system: System, clock: Clock = SYSTEM, *, io: bool = True) -> None:
        self._system, self._clock, self._with_io = system, clock, io
        self._lock = Lock()
        self._first, self._cpu_s, self._own_s, self._io = pid, 0.0, 0.0, [0, 0, 0, 0]
        self._last: dict[int, Sample] = {}
        self._pids = {pid}
        self._rescan()
        self._last = self._look(io)
        self._has_io, self._io_due = any(sample.io for sample in self._last.values()), clock.monotonic() + IO_S

    @property
    def pids(self) -> frozenset[int]:
        return frozenset(self._pids)

    def use(self, *, thoroughly: bool = False) -> Use:
        """`thoroughly` where a run begins or ends: children that were born since the last scan are looked for then."""
        with self._lock:
            time = self._clock.monotonic()
            if time >= (self._soonest if thoroughly else self._due):
                self._rescan()
            io = self._with_io and (thoroughly or time >= self._io_due)
            if io:
                self._io_due = time + IO_S
            now = self._look(io)
            self._add(now)
            self._last = now
            self._pids = set(now)
            memory = sum(sample.memory_bytes for sample in now.values())
            return Use(
                self._cpu_s, self._cpu_s - self._own_s, tuple(self._io) if self._has_io else (), memory, frozenset(now)
            )

    def _rescan(self) -> None:
        spent = time.thread_time()
        self._pids = family(*self._pids, found=self._system)
        spent, now = time.thread_time() - spent, self._clock.monotonic()
        self._due, self._soonest = now + max(RESCAN_S, spent / SHARE), now + spent / SHARE_AT_ENDS

    def _look(self, io: bool) -> dict[int, Sample]:
        found = {pid: sample for pid in self._pids if (sample := self._system.sample(pid, io)) is not None}
        if io or not self._with_io:
            return found
        if len(found) < len(self._pids):  # what the dead did is told by their parents now
            return self._look(True)
        return {pid: self._as_before(pid, sample) for pid, sample in found.items()}

    def _as_before(self, pid: int, sample: Sample) -> Sample:
        """With the bytes that were last read."""
        before = self._last.get(pid)
        known = before is not None and before.start == sample.start
        return replace(sample, io=before.io if before is not None and known else (0,) * len(self._io))

    def _add(self, now: dict[int, Sample]) -> None:
        """Growth of the living. What a parent inherits from a child that was seen alive has been counted already."""
        inherited, io = {}, {}
        for pid, sample in now.items():
            before = self._last.get(pid)
            if before is None or before.start != sample.start:
                before = Sample(sample.parent, sample.start, 0.0, 0.0, 0, (0,) * len(sample.io))  # born since
            grown = max(sample.cpu_s - before.cpu_s, 0.0)
            self._cpu_s += grown
            self._own_s += grown if pid == self._first else 0.0
            inherited[pid] = sample.inherited_s - before.inherited_s
            io[pid] = [new - old for new, old in zip(sample.io, before.io, strict=False)]
        for pid, before in self._last.items():
            if pid in now and now[pid].start == before.start:
                continue
            heir = self._heir(before, now)
            if heir is None:
                continue
            seen = before.cpu_s + before.inherited_s
            if inherited[heir] >= seen - 1e-9:  # else nobody waited for it, and nothing was inherited
                inherited[heir] -= seen
            if io[heir] and before.io and all(new >= old for new, old in zip(io[heir], before.io, strict=True)):
                io[heir] = [new - old for new, old in zip(io[heir], before.io, strict=True)]
        self._cpu_s += sum(max(seconds, 0.0) for seconds in inherited.values())
        for growth in io.values():
            for index, amount in enumerate(growth):
                self._io[index] += max(amount, 0)

    def _heir(self, dead: Sample, now: dict[int, Sample]) -> int | None:
        parent: int | None = dead.parent
        while parent is not None and parent not in now:
            above = self._last.get(parent)
            parent = None if above is None or above.parent == parent else above.parent
        return parent
