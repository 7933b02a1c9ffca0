"""One metered stretch of time: what every device drew in it, how much of it they did nothing, and what was used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bitwatt.metering import idle
from bitwatt.metering.apportioning import Spans, apportion
from bitwatt.metering.board import ENERGY, GAP, POWER, Board, Snapshot
from bitwatt.metering.busy import WANTED, Busy
from bitwatt.metering.regions import Regions
from bitwatt.metering.series import Series
from bitwatt.metering.sync import synchronise, used_gpus
from bitwatt.readings import CHILD_PEAK, MEASURED, MODELLED, OWN_PEAK, TOTALS, Device, Energy, Metered

if TYPE_CHECKING:
    from bitwatt.metering.meter import Meter

#: A window or a phase is measured where the counter moves at least so often in it.
STEPS = 10
#: Seconds that a window lasts at least for what is dear to be read at its end: some 4 ms, so less than a thousandth.
DEAR = 5.0
#: Levels whose mean tells more than their peak; of the others both are kept.
_MEANS = (
    "utilisation",
    "clock_hz",
    "memory_clock_hz",
    "throttled",
    "load",
    "sm_active",
    "dram_active",
    "tensor_active",
)
#: A counter that was last read so many seconds before a window begins was not read when it began.
LATE = 0.5
#: Power by a counter is told where its reading came no later than this share of the time since the one before.
LATELY = 0.05
#: Seconds by which the clock must step back to have jumped: less, and a thread waited for its turn.
JUMP = 5.0
#: Different remarks of sensors that one run keeps.
REMARKS = 20


class Window:
    """Opened by Meter.window. The meter calls `saw` after each look."""

    def __init__(self, meter: Meter, began: Snapshot, all_devices: bool = False) -> None:
        self._meter, self._board, self.began, self.all_devices = meter, meter.board, began, all_devices
        self.ended: Snapshot | None = None
        self.regions = Regions(meter)
        self._overhead, self._looks = meter.overhead, meter.looks
        self._series: dict[str, Series] = {}
        self._last_energy: dict[str, tuple[float, float]] = {}
        self._busy = Busy(began.time)
        self._levels: dict[tuple[str, str], list[float]] = {}  # seconds, sum over them, least, most
        self._said: dict[str, None] = {}
        self._looked, self._jumped = began.time, False
        self._peaks = {name: self._board.levels.get(("process", name), 0.0) for name in (OWN_PEAK, CHILD_PEAK)}
        self._totals, self._lost = dict(began.totals), dict(began.lost)
        readings = [(device, self._board.when((device, ENERGY))) for device in self._board.energies()]
        self._late = {device for device, at in readings if at is not None and at < began.time - LATE}
        self.saw(began.time)

    def saw(self, now: float, *, heard: bool = False) -> None:
        """The board has new values as of `now`; those `heard` from another process may come late."""
        if self.ended is not None:
            return
        self._jumped |= not heard and now < self._looked - JUMP
        if now < self.began.time:
            return
        board, dt = self._board, now - self._looked
        for device in list(self._late):
            self._begin_late(board, device)
        self._busy.saw(now, board)
        if 0 < dt <= GAP:
            for key, value in board.levels.items():
                self._level(key, value, dt)
                if value and key in board.said and len(self._said) < REMARKS:
                    self._said.setdefault(f"{key[0]} {key[1]}: {board.said[key]}")
            self._power(now, dt)
        self._looked = max(now, self._looked)

    def _begin_late(self, board: Board, device: str) -> None:
        """A counter that could not be read at the beginning tells of what came before, too: it counts from where it is
        back, and the time until then is lost."""
        key = (device, ENERGY)
        at = board.when(key)
        if at is not None and at >= self.began.time:
            self._late.remove(device)
            self._totals[key] = board.totals[key]
            self._lost[device] = board.lost.get(device, 0.0) - (at - self.began.time)

    def pulse(self, now: float, spent: float) -> None:
        self._busy.pulse(now, spent)

    def end(self) -> None:
        """Wait for the devices, then the time, then the counters."""
        if self.ended is None:
            synchronise()
            self.regions.close()
            try:
                with self._meter.patiently():
                    ended = self._meter.read()
            except TimeoutError:
                self._meter.abandoned(self)
                raise
            self._latest = dict(self._board.levels)
            if ended.time - self.began.time >= DEAR:
                self._latest |= self._meter.ends()
            self.ended = ended
            self._overhead = self._meter.overhead - self._overhead
            self._looks = self._meter.looks - self._looks
            self._meter.closed(self)

    def metered(
        self,
        phase_seconds: Mapping[str, float],
        device_seconds: Mapping[str, float] | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Metered:
        """All that is known: until the end, or of a window that is open, until the last look."""
        with self._meter.patiently():
            board = self._board
            until = self.ended or board.snapshot(max(self._looked, self.began.time))
            seconds = until.time - self.began.time
            used = {key: total - self._totals.get(key, 0.0) for key, total in until.totals.items()}
            parts = [
                self._energy(board, until, device, joules, seconds)
                for (device, quantity), joules in used.items()
                if quantity == ENERGY
            ]
            parts += self._unread(board, {part.device.id for part in parts})
            others = [part for part in parts if self._is_other(part.device)]
            parts = [part for part in parts if part not in others]
            spans = Spans(seconds, phase_seconds, device_seconds or {}, self.regions.measured(seconds))
            phases, rest, notes = apportion(parts, spans)
            notes += [
                f"{part.device.id} was not used and is left out: {part.energy_j:.3g} J"
                for part in others
                if part.energy_j
            ]
            notes = [*self._meter.remarks, *self._trouble(board), *self._said, *notes]
            overhead = self._overhead if self.ended else self._meter.overhead - self._overhead
            looks = self._looks if self.ended else self._meter.looks - self._looks
            return Metered(
                seconds=seconds,
                energy=tuple(parts),
                phases=phases,
                remainder_j=rest,
                usage=self._usage(board, used),
                series={device: series.told() for device, series in self._series.items() if series.points},
                overhead_s=overhead,
                interval_s=seconds / looks if looks else None,
                settings=dict(settings or {}),
                notes=tuple(dict.fromkeys(notes)),
            )

    def _energy(self, board: Board, until: Snapshot, device: str, joules: float, seconds: float) -> Energy:
        about = board.devices[device]
        lost = until.lost.get(device, 0.0) - self._lost.get(device, 0.0)
        if self.ended is None and (read := board.when((device, ENERGY))) is not None:
            lost += max(until.time - read, 0.0)  # its counter will be read again, unless the program is killed
        covered, notes = max(seconds - lost, 0.0), list[str]()
        source, how = board.sources.get(device, ""), board.how.get(device, MEASURED)
        known: float | None = joules
        steps = seconds / (about.resolution_s or 0.1)
        if joules <= 0:
            known = None
            short = f"{seconds:.2g} s are too short for this counter"
            still = "the counter did not move" if how == MEASURED else "the model gives nothing: no CPU time was used"
            if covered > 0 or seconds <= 0:
                notes.append(short if steps < STEPS else still)
        elif steps < STEPS and how == MEASURED and not self._jumped:
            notes.append(f"only about {max(steps, 1):.0f} steps of the counter: good to {100 / max(steps, 1):.0f} %")
        if lost > max(1.0, 0.01 * seconds):
            notes.append(f"known for {covered:.1f} of {seconds:.1f} s")
        if trouble := board.wrong(device, self.began.time):
            notes.append(trouble)
        series = self._series.get(device)
        mean = known / covered if known is not None and covered > 0 else None
        if known is not None and self._jumped:
            mean = None
            notes.append("the clock went back: its mean power is not known, and some of its energy may be missing")
        elif mean is not None and about.ceiling_w is not None and mean > about.ceiling_w:
            notes.append(f"a mean of {mean:.0f} W is more than it can draw, and left out")
            mean = None
        idle_s = self._busy.idle_seconds(about.kind, device)
        if idle_s is not None:
            idle_s = min(idle_s, max(seconds, 0.0))
            if about.kind != "gpu" and seconds > 0:  # GPUs tell their idle time with their energy
                idle_s *= covered / seconds
        base = idle.baseline().get(device)
        if (held := self._busy.held_w(device)) is not None and about.kind == "gpu":
            notes.append(f"{held:.0f} W in its idle intervals")
        return Energy(
            device=about,
            energy_j=known,
            how=how,
            source=f"{source}: {board.formulas[device]}" if device in board.formulas else source,
            seconds=covered,
            mean_w=mean,
            peak_w=None
            if series is None or series.peak is None
            else max(series.peak, mean or 0.0),  # looks skip the end
            idle_w=base,
            idle_seconds=idle_s,
            idle_j=None if idle_s is None or base is None or known is None else min(base * idle_s, known),
            note="; ".join(notes),
        )

    def _unread(self, board: Board, there: set[str]) -> list[Energy]:
        """Devices that draw power, but of which nothing was read: null, not left out."""
        return [
            Energy(device, None, MEASURED, board.sources.get(name, ""), note=why)
            for name, device in board.devices.items()
            if name not in there
            and device.kind in ("cpu", "gpu", "dram")
            and (why := board.wrong(name, self.began.time))
        ]

    def _trouble(self, board: Board) -> list[str]:
        """Of devices that have no line of their own."""
        others = [name for name, device in board.devices.items() if device.kind not in ("cpu", "gpu", "dram")]
        return [f"{name}: {why}" for name in others if (why := board.wrong(name, self.began.time))]

    def _is_other(self, device: Device) -> bool:
        """A GPU that this program never touched: of several in a machine, those that idle or work for others."""
        if device.kind != "gpu" or self.all_devices:
            return False
        used = used_gpus()
        if used is not None:
            return device.id not in used and any(one in self._board.devices for one in used)
        seen = self._levels.get((device.id, "utilisation"))
        busy = seen[3] if seen is not None else self._board.levels.get((device.id, "utilisation"))
        return busy is not None and busy <= 0.02

    def _power(self, now: float, dt: float) -> None:
        board, late = self._board, max(self._meter.now() - now, 0.0)
        for device, total in board.energies().items():
            watts = board.levels.get((device, POWER))
            step = self._from_counter(board, device, total, late) if watts is None else (now, dt, watts)
            if step is not None:
                at, seconds, mean = step
                self._series.setdefault(device, Series()).add(at - self.began.time, seconds, mean)
                self._busy.power(device, seconds, mean)

    def _from_counter(self, board: Board, device: str, total: float, late: float) -> tuple[float, float, float] | None:
        """When its counter was read, the seconds since it was before, and the mean watts in them. A process that
        follows another reads counters seldom; one that waited for its turn read it later than it says."""
        about, at = board.devices[device], board.when((device, ENERGY))
        then, before = self._last_energy.get(device, (self.began.time, self._totals.get((device, ENERGY), 0.0)))
        if at is None or at - then < STEPS * (about.resolution_s or 0.1) or late > LATELY * (at - then):
            return None
        self._last_energy[device] = (at, total)
        watts = (total - before) / (at - then)
        if about.ceiling_w is not None and board.how.get(device) == MODELLED:
            watts = min(watts, about.ceiling_w)  # CPU time of a child found only now was used before this step
        return (at, at - then, watts) if 0 < watts <= (about.ceiling_w or watts) else None

    def _level(self, key: tuple[str, str], value: float, dt: float) -> None:
        cell = self._levels.setdefault(key, [0.0, 0.0, value, value])
        cell[0] += dt
        cell[1] += value * dt
        cell[2], cell[3] = min(cell[2], value), max(cell[3], value)

    def _usage(self, board: Board, used: Mapping[tuple[str, str], float]) -> dict[str, float]:
        """Totals as they are; of levels the mean and the most; of what is read at the end alone, that."""
        found: dict[str, float] = {}
        for (device, quantity), total in used.items():
            if quantity not in (ENERGY, WANTED):
                found[_named(board, device, quantity)] = total
        levels: Mapping[tuple[str, str], Any] = self._latest if self.ended else board.levels
        for (device, quantity), value in levels.items():
            if quantity in TOTALS or quantity in (POWER, OWN_PEAK, CHILD_PEAK):
                continue
            name, cell = _named(board, device, quantity), self._levels.get((device, quantity))
            if cell is None or not cell[0]:
                found[name] = value
            else:
                if quantity in _MEANS:
                    found[f"{name}_mean"] = cell[1] / cell[0]
                found[f"{name}_peak"] = max(cell[3], value)
        return found | self._memory(levels, found) | self._busy.told()

    def _memory(self, levels: Mapping[tuple[str, str], Any], found: Mapping[str, float]) -> dict[str, float]:
        """What the kernel saw between two looks: a peak that it raised since the window began was in the window."""
        ended = {name: levels.get(("process", name), 0.0) for name in self._peaks}
        raised = [peak for name, peak in ended.items() if peak > self._peaks[name]]
        seen = max(found.get("memory_bytes_peak", 0.0), found.get("memory_bytes", 0.0))
        return {"memory_bytes_peak": max(seen, *raised)} if raised else {}


def _named(board: Board, device: str, quantity: str) -> str:
    about = board.devices.get(device)
    return quantity if about is not None and about.kind == "process" else f"{device}.{quantity}"
