"""The meter of this process: opens the sensors for the first session, reads them now and then, stops with the last.

Counters are read where a window begins and ends, by whoever opens and closes it. The thread is for what counters do not
tell: power over time, use of devices, memory. It is started without Python's threading module, as the journal's is, so
that nothing that watches threads sees it.
"""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bitwatt.metering.board import ENERGY, GAP, Board, Key, Snapshot
from bitwatt.metering.host import Host, folder
from bitwatt.metering.process import OwnProcess
from bitwatt.metering.pulses import PULSES, Pulses
from bitwatt.metering.sync import synchronise
from bitwatt.metering.window import Window
from bitwatt.readings import MODELLED, TOTALS
from bitwatt.sensors import Opened, Sensor, available

#: Seconds between two looks. The more a look costs, the seldomer it comes: a sensor of energy and one of the rest may
#: take these shares of one core, and the thread that one in all, but they are looked at once in so many seconds.
INTERVAL = 1.0
SHARES, WHOLE, SELDOMEST = {True: 2.5e-4, False: 1.5e-4}, 5e-4, 10.0
#: Between two looks a sensor may be glanced at each second, for this share of one core.
GLANCES = 2e-4
#: CPU seconds that the thread may take at once.
BURST = 10 * WHOLE
#: Counters that are dear to read, and all of a process that only follows the poller, are read this often, for wraps;
#: the dearest so that they take no more than this share of one core, but at least once in so many seconds.
GUARD, GUARD_SHARE, GUARD_SELDOMEST = 10.0, 1e-4, 60.0
#: Seconds to wait for a sensor that hangs.
PATIENCE = 3.0
#: The kernel's accounts of a process move this often: sessions that follow each other closely share a reading of them.
TICK = 0.01

_meters: weakref.WeakSet[Meter] = weakref.WeakSet()


class Meter:
    """Shared by all sessions of a process: nested ones, and those of several threads."""

    def __init__(
        self,
        sensors: Sequence[Sensor] | None = None,
        *,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
        shared: bool | None = None,
        thread: bool = True,
    ) -> None:
        """`sensors` are those of the machine unless given. `shared`: one process of the machine polls for all; unless
        said, where the sensors are the machine's own. Without `thread`, `tick` is for the caller to call."""
        self._given = sensors
        self._interval, self._clock, self._thread = interval, clock, thread
        self._shared = sensors is None if shared is None else shared
        self._options: dict[str, Any] = {}
        self._new()
        _meters.add(self)

    def _new(self) -> None:
        """As if nothing had been opened: at first, and in a forked child."""
        self.lock = threading.RLock()
        self.board = Board()
        self.sensors: list[Opened] = []
        self.notes: list[str] = []
        self.windows: list[Window] = []
        self.overhead = 0.0  # CPU seconds of all of it
        self.reader = 0.0  # of these, the thread's
        self.looks = 0
        self.read_cost = 0.0  # CPU seconds of reading all counters once
        self._own: set[str] = set()  # sensors that tell of this process
        self._draw: set[str] = set()  # sensors that tell energy
        self._due: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._costs: dict[str, float] = {}  # CPU seconds of a look, a running mean
        self._last_costs: dict[Key, float] = {}  # look or glance, sensor
        self._glances: dict[str, float] = {}  # when a sensor may be glanced at again
        self._guards: dict[str, float] = {}  # seconds between two readings of counters
        self._host: Host | None = None
        self._heard = 0.0
        self._told: dict[str, float] = {}  # device -> when another process last told of it
        self._stop: Any = None  # a lock that is held until the thread is to end
        self._process = os.getpid()

    def window(self, options: dict[str, Any] | None = None, *, all_devices: bool = False) -> Window:
        """A stretch of time that is metered from now on, until its `end`. GPUs that the program does not touch are left
        out, unless `all_devices`."""
        synchronise()  # without the lock: a device may never answer, and the journal must not wait for it
        with self.patiently():
            if not self.windows:
                self._start(options or {})
            opened = Window(self, self.read(), all_devices)
            self.windows.append(opened)
        return opened

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """With the lock, unless a sensor that never answers has it: neither the program nor its end waits for long."""
        # Twice: all of the process may stand still for as long as one wait takes.
        if not any(self.lock.acquire(timeout=PATIENCE / 2) for _ in range(2)):
            raise TimeoutError(f"a sensor has not answered for {PATIENCE:g} s")
        try:
            yield
        finally:
            self.lock.release()

    def closed(self, window: Window) -> None:
        with self.lock:
            if window in self.windows:
                self.windows.remove(window)
            if not self.windows:
                self._rest()

    def abandoned(self, window: Window) -> None:
        """A sensor hangs, and with it the lock: nobody looks for this window any more, nor for any after the last."""
        self.windows.remove(window)
        if not self.windows:
            self._rest()

    def read(self, *, energy_alone: bool = False) -> Snapshot:
        """Every counter now, or those of energy, and the totals. The caller has waited for the devices."""
        with self.lock:
            spent = time.thread_time()
            now = self._clock()
            for sensor in self.sensors:
                if energy_alone and sensor.name not in self._draw:
                    continue
                if sensor.name not in self._own or not 0 <= now - self._asked.get(sensor.name, -TICK) < TICK:
                    self._ask(sensor, now, not self._follows(sensor, now))
            self._pulse(now)
            for window in self.windows:
                window.saw(now)
            self.read_cost = time.thread_time() - spent
            self.overhead += self.read_cost
            return self.board.snapshot(now)

    def ends(self) -> dict[Key, float]:
        """What is too dear to be read while a run goes on."""
        with self.lock:
            spent = time.thread_time()
            readings = [reading for sensor in self.sensors for reading in sensor.ends()]
            self.overhead += time.thread_time() - spent
            return {(one.device, one.quantity): one.value for one in readings if one.value is not None}

    def now(self) -> float:
        return self._clock()

    @property
    def remarks(self) -> list[str]:
        """Sensors that are not there though they were asked for, fail, or are looked at seldom since that is dear."""
        dear = [
            f"{sensor.name} is looked at every {wait:.0f} s: that takes {self._costs[sensor.name] * 1e3:.2g} ms"
            for sensor in self.sensors
            if (wait := self._wait(sensor)) >= 2 * self._interval and sensor.name in self._costs
        ]
        return [*self.notes, *(note for sensor in self.sensors for note in sensor.notes), *dear]

    @property
    def has_energy(self) -> bool:
        return any(quantity == ENERGY for _, quantity in self.board.totals)

    @property
    def resolution(self) -> float:
        """Seconds in which the slowest counter of energy moves."""
        devices = [self.board.devices.get(device) for device in self.board.energies()]
        return max([d.resolution_s if d is not None and d.resolution_s else 0.1 for d in devices], default=0.1)

    @property
    def _polls(self) -> bool:
        return self._host is None or self._host.polls

    def tick(self) -> None:
        """One look, as the thread takes it: at what is due."""
        spent = time.thread_time()
        self._tick(self._clock())
        with self.lock:
            self.overhead += time.thread_time() - spent

    def _tick(self, now: float, poor: bool = False) -> None:
        """`poor`: its CPU time is spent, and glances alone may go on."""
        if not self._is_due(now, poor):
            return
        with self.lock:
            if not self.windows:
                return
            followed = not self._polls
            polls = self._host is None or self._host.try_hold()
            if polls and followed:
                self._due.clear()  # it is for this process now
            if not polls and self._host is not None:
                for at, levels in self._host.hear(self._heard):
                    self._heard = at
                    self._told |= dict.fromkeys((device for device, _ in levels), at)
                    self.board.hear(levels)
                    for window in self.windows:
                        window.saw(at, heard=True)
            looked = [sensor for sensor in self.sensors if not poor and now >= self._due.get(sensor.name, 0.0)]
            for sensor in looked:
                self._look(sensor, now)
            glanced = [sensor for sensor in self.sensors if sensor not in looked and self._may_glance(sensor, now)]
            for sensor in glanced:
                self._glance(sensor, now)
            self.looks += 1
            if looked or glanced:
                for window in self.windows:
                    window.saw(now)
            if polls and self._host is not None and any(sensor.name not in self._own for sensor in (*looked, *glanced)):
                self._host.tell(now, self._levels())

    def _is_due(self, now: float, poor: bool) -> bool:
        """Whether there is something to look at; who follows another process listens to it each time."""
        look = not poor and any(now >= self._due.get(one.name, 0.0) for one in self.sensors)
        return look or not self._polls or any(self._may_glance(one, now) for one in self.sensors)

    def _look(self, sensor: Opened, now: float) -> None:
        name, follows, soon = sensor.name, self._follows(sensor, now), self._interval / 10
        counters = now - self._asked.get(name, 0.0) >= self._guards.get(name, GUARD) - soon
        cost = time.thread_time()
        self._ask(sensor, now, not follows, counters or follows)
        cost = time.thread_time() - cost
        if counters:
            self._guards[name] = min(max(GUARD, cost / GUARD_SHARE), GUARD_SELDOMEST)
        before = self._costs.get(name, 0.0)
        self._costs[name] = before + (self._price(("look", name), cost) - before) / 8
        self._due[name] = now + (GUARD if follows else self._wait(sensor)) - soon

    def _may_glance(self, sensor: Opened, now: float) -> bool:
        return sensor.glances and self._polls and now >= self._glances.get(sensor.name, 0.0)

    def _glance(self, sensor: Opened, now: float) -> None:
        cost = time.thread_time()
        self.board.take(now, sensor.glance())
        cost = self._price(("glance", sensor.name), time.thread_time() - cost)
        self._glances[sensor.name] = now + max(0.9 * self._interval, min(cost / GLANCES, GUARD_SELDOMEST))

    def _price(self, what: Key, cost: float) -> float:
        """The less of the last two: one may hold a collection of garbage, or what a crowded host took for others."""
        before, self._last_costs[what] = self._last_costs.get(what, 0.0), cost
        return min(before, cost)

    def _wait(self, sensor: Opened) -> float:
        """Seconds until it may be looked at again."""
        share = SHARES[sensor.name in self._draw]
        return max(self._interval, min(self._costs.get(sensor.name, 0.0) / share, SELDOMEST))

    def _follows(self, sensor: Opened, now: float) -> bool:
        """Whether the poller tells of its devices. It may see other GPUs than this process does, or hang."""
        if self._polls or sensor.name in self._own:
            return False
        levels = {device for device, quantity in sensor.reads if quantity not in TOTALS}
        return all(now - self._told.get(device, -GAP) < GAP for device in levels)

    def _ask(self, sensor: Opened, now: float, levels: bool, counters: bool = True) -> None:
        if counters:
            self._asked[sensor.name] = now
        readings: Iterable[Any] = sensor.read() if counters else sensor.look()
        if not levels:  # they are heard from the poller, in step with each other
            readings = [reading for reading in readings if reading.quantity in TOTALS]
        self.board.take(now, readings)

    def _levels(self) -> dict[Key, float]:
        own = {device.id for sensor in self.sensors if sensor.name in self._own for device in sensor.devices}
        return {key: value for key, value in self.board.levels.items() if key[0] not in own}

    def _start(self, options: dict[str, Any]) -> None:
        if not self.sensors or options != self._options:
            for sensor in self.sensors:
                sensor.close()
            self._options = options
            self._open(options)
        self._due.clear()
        self._glances.clear()
        if self._shared:
            self._host = self._host or Host(folder())
            self._host.try_hold()
            self._heard = self._clock()
            self._told.clear()
        if self._thread:
            self._stop = _thread.allocate_lock()
            self._stop.acquire()
            try:
                _thread.start_new_thread(self._run, (self._stop, os.getpid()))
            except RuntimeError as error:  # there are too many, or Python is about to end
                self._rest()
                self._host = None
                self.notes.append(f"only the ends were read: {error}")

    def _open(self, options: dict[str, Any]) -> None:
        self.board = Board()
        for known in (self._asked, self._costs, self._last_costs, self._guards):
            known.clear()
        if self._given is None:
            self.sensors = available(options)
        else:
            self.sensors = []
            for given in self._given:
                absent = given.why_absent()
                if absent is None:
                    self.sensors.append(Opened(given))
                else:
                    self.notes.append(f"{given.name}: {absent}")
        if not any(device.kind == "process" for sensor in self.sensors for device in sensor.devices):
            self.sensors.append(Opened(OwnProcess()))
        self._own.clear()
        self._draw = {sensor.name for sensor in self.sensors if any(what == ENERGY for _, what in sensor.reads)}
        for sensor in sorted(self.sensors, key=lambda one: one.name not in self._draw):  # who reads energy first
            self.board.know(sensor.devices, sensor.source)
        for sensor in self.sensors:
            if any(device.kind == "process" for device in sensor.devices) or MODELLED in sensor.reads.values():
                self._own.add(sensor.name)

    def _rest(self) -> None:
        """Sensors stay open, since the next session may come at once."""
        if self._stop is not None:
            self._stop.release()
            self._stop = None
        if self._host is not None:
            self._host.release()

    def _run(self, stop: Any, process: int) -> None:
        if hasattr(signal, "pthread_sigmask"):  # signals are to interrupt the main thread
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        last, counted, credit, pulses = self._clock(), 0.0, BURST - self.read_cost, Pulses()
        due, parts, rests = last + self._interval, PULSES, last
        wait = self._interval / parts
        # A lock costs half of what an Event does to wait for, and this is done some times a second.
        while not stop.acquire(timeout=wait) and os.getpid() == process:
            with self.lock:
                now = self._clock()  # in here: whoever had the lock may have looked since
                pulses.beat(now, self._pulse(now))
            if now + self._interval / PULSES / 2 >= due:
                try:
                    self._tick(now, now < rests)
                except Exception as error:  # ours: the ends are read all the same
                    self.notes.append(f"looking failed: {type(error).__name__}: {error}")
                    return
                due, parts = max(due + self._interval, now), pulses.after_look()
            spent = time.thread_time()  # of this thread alone: also what it takes to wake up
            with self.lock:
                self.overhead += spent - counted
                self.reader += spent - counted
            credit = min(max(credit + WHOLE * (now - last) - (spent - counted), -WHOLE * SELDOMEST), BURST)
            last, counted = now, spent
            if credit < 0:
                parts = 1
                if now >= rests:  # no look until it is earned again
                    rests = now + min(-credit / WHOLE, SELDOMEST)
            wait = self._interval / PULSES if parts > 1 else max(due - self._clock(), self._interval / PULSES)

    def _pulse(self, now: float) -> float:
        spent = time.process_time()
        if self._thread:  # else the clock is not that of this process
            for window in self.windows:
                window.pulse(now, spent)
        return spent

    def forget(self) -> None:
        """In a forked child: the windows are the parent's, and so is the thread. Sensors are opened anew when asked."""
        if self._host is not None:
            self._host.forget()
        self._new()


def _forget_all() -> None:
    for meter in list(_meters):
        meter.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)

_the: list[Meter] = []


def the_meter() -> Meter:
    """The one of this process."""
    if not _the:
        _the.append(Meter())
    return _the[0]
