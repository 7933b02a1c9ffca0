"""Which device a run's work was done on, and what that device can do at best: what utilisation and bounds divide by.

The ledger does not say where an op ran. In a run that used GPUs, work of phases with a time of a GPU's own clock is
taken as theirs; preparing data, estimators and tokenizers, and phases without such a time, as the processor's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bitwatt.hardware import catalogue
from bitwatt.hardware.probe import measured
from bitwatt.impact.money import ACCELERATORS
from bitwatt.impact.work import Executed, executed
from bitwatt.machine import describe, tf32_families

if TYPE_CHECKING:
    from bitwatt.config import Settings
    from bitwatt.pricing import Entry
    from bitwatt.readings import Energy
    from bitwatt.records import Run

PREPARING = "preprocess"
#: Families of ops whose float32 products run on TF32 tensor cores where the program has switched them on.
_TF32 = ("matmul", "conv", "attention", "rnn")
#: Ops that run on processors, whatever else the program uses.
_ON_HOST = ("sklearn.", "tokenizers.", "transformers.")
#: Facts of a machine by which runs that hold no id of theirs are told apart.
_HARDWARE = ("cpu", "cores", "memory")


@dataclass(frozen=True)
class Devices:
    """Of one run: `gpu` is how its GPUs are called if they are all of one kind, empty without any or with several."""

    run: Run
    settings: Settings

    @cached_property
    def accelerators(self) -> list[Energy]:
        parts = self.run.meter.energy if self.run.meter is not None else ()
        return [part for part in parts if part.device.kind in ACCELERATORS]

    @property
    def count(self) -> int:
        return max(len(self.accelerators), 1)

    @property
    def has_gpu(self) -> bool:
        return bool(self.accelerators or self.run.device_seconds)

    @cached_property
    def gpu(self) -> str:
        names = {part.device.name for part in self.accelerators}
        if not names and self.run.device_seconds:  # not metered
            told = self.run.machine.facts.get("gpu", "").split(", ")
            names = {name.partition(" x ")[2] if name[:1].isdigit() else name for name in told}
        return names.pop() if len(names) == 1 else ""

    @property
    def cpu(self) -> str:
        return self.run.machine.facts.get("cpu", "")

    @property
    def main(self) -> str:
        """What utilisation speaks of."""
        return self.gpu if self.has_gpu else self.cpu

    @property
    def main_chip(self) -> catalogue.Chip | None:
        return self.gpu_chip if self.has_gpu else self.cpu_chip

    @cached_property
    def gpu_chip(self) -> catalogue.Chip | None:
        return catalogue.find(self.gpu, self.settings, self._probed(self.gpu)) if self.gpu else None

    @cached_property
    def cpu_chip(self) -> catalogue.Chip | None:
        if not self.cpu:
            return None
        cores, sockets = self._cores
        return catalogue.find(self.cpu, self.settings, self._probed(self.cpu), cores, sockets)

    def _probed(self, name: str) -> dict[str, float] | None:
        """What was measured on the machine of the run: where the user asks for it, or the catalogue has nothing."""
        if not self.settings.measured_peaks and catalogue.find(name) is not None:
            return None
        machine = self.run.machine.facts.get("machine id", "")
        return measured(name, machine) if machine or self._is_here else None

    @cached_property
    def _is_here(self) -> bool:
        here, there = describe().facts, self.run.machine.facts
        return all(here.get(name) == there.get(name) for name in _HARDWARE)

    @property
    def _cores(self) -> tuple[float | None, int]:
        """Cores that the program might use, and sockets. "4 usable of 64" are threads; "2 x 16 cores" are not."""
        words = self.run.machine.facts.get("cores", "").split()
        there = self.run.machine.facts.get("sockets", "").split()
        if not words or not words[0].isdecimal():
            return None, 1
        usable, threads = int(words[0]), int(words[-1]) if words[-1].isdecimal() else int(words[0])
        if len(there) < 3 or not (there[0].isdecimal() and there[2].isdecimal()):
            return usable, 1
        return usable * min(int(there[0]) * int(there[2]) / threads, 1.0), int(there[0])

    def is_timed(self, phase: str) -> bool:
        """Whether a GPU's own clock knows it, or what it is a part of; phases that no clock knows are part of what
        goes on around them."""
        steps = phase.split("/")
        known = any("/".join(steps[:n]) in self.run.device_seconds for n in range(len(steps), 0, -1))
        told = self.run.observed.phases if self.run.observed is not None else {}
        unseen = phase in told or phase not in self.run.phase_seconds
        return known or (unseen and "other" in self.run.device_seconds)

    def is_on_gpu(self, phase: str) -> bool:
        if not self.has_gpu or phase.rpartition("/")[2] == PREPARING:
            return False
        return not self.run.device_seconds or self.is_timed(phase)

    def work(self, entries: list[Entry], *, gpu: bool) -> list[Executed]:
        """By phase, of the GPUs or of the processor."""
        told = tf32_families(self.run.machine.facts) if self.settings.float32 is None else ()
        tf32 = (_TF32 if self.settings.float32 == "tf32" else told) if gpu else ()
        return executed((one for one in entries if self.ran_on_gpu(one) == gpu), tf32=tf32)

    def ran_on_gpu(self, entry: Entry) -> bool:
        return self.is_on_gpu(entry.row.phase) and not entry.op.name.startswith(_ON_HOST)
