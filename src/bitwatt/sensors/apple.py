"""Apple silicon by powermetrics, which root may run. Not yet run on hardware."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from bitwatt.readings import Device, Reading
from bitwatt.sensors.counters import SYSTEM, Clock
from bitwatt.sensors.stream import Stream

PARTS = {"cpu": "cpu:0", "gpu": "gpu:apple", "ane": "npu:0"}
CEILING_W = 500.0
END = b"</plist>"
INTERVAL_S = 1.0
COMMAND = ("powermetrics", "--samplers", "cpu_power,gpu_power", "--format", "plist", "--buffer-size", "0")
FIX = (
    'echo "$USER ALL=(root) NOPASSWD: /usr/bin/powermetrics" | sudo tee /etc/sudoers.d/powermetrics. It lets you, and '
    "programs that you start, run powermetrics as root without a password; it shows what all processes do"
)


class Apple:
    name = "apple"
    source = "powermetrics, whose figures Apple calls estimates"

    def __init__(self, command: Sequence[str] | None = None, clock: Clock = SYSTEM) -> None:
        self._given, self._clock = command, clock
        self._stream: Stream | None = None
        self._joules: dict[str, float] = {}
        self._watts: dict[str, float] = {}
        self._fresh = 0.0

    def why_absent(self) -> str | None:
        if self._given is not None:
            return None
        if sys.platform != "darwin":
            return "powermetrics is a tool of macOS, and this is another system"
        if shutil.which("powermetrics") is None:
            return "powermetrics is not on the PATH; it comes with macOS, in /usr/bin"
        try:
            one = [*self._command(), "-i", "100", "-n", "1"]
            tried = subprocess.run(one, stdin=subprocess.DEVNULL, capture_output=True, timeout=10)
        except (OSError, subprocess.SubprocessError) as error:
            return f"powermetrics fails: {error}"
        if tried.returncode:
            return f"powermetrics needs root; to allow it: {FIX}"
        return None

    def open(self) -> list[Device]:
        self.close()
        every = ["-i", str(round(INTERVAL_S * 1e3))]
        self._stream = Stream(self._given or [*self._command(), *every], END)
        self._joules, self._watts, self._fresh = dict.fromkeys(PARTS, 0.0), {}, self._clock.monotonic()
        return [
            Device(id, id.partition(":")[0], f"Apple {part.upper()}", CEILING_W, INTERVAL_S)
            for part, id in PARTS.items()
        ]

    def read(self) -> list[Reading]:
        if self._stream is None:
            return []
        note = ""
        try:
            for piece in self._stream.pieces():
                self._take(piece)
        except OSError as error:
            note = f"power is no longer told: {error}"
        silent = self._clock.monotonic() - self._fresh
        if not note and silent > 5 * INTERVAL_S:
            note = f"powermetrics has said nothing for {silent:.0f} s"
        readings = []
        for part, id in PARTS.items():
            known = part in self._watts and not note
            why = "" if known else note or "powermetrics has not spoken yet"
            # The first sample comes after a second: until then nothing was counted, which is not nothing.
            readings.append(Reading(id, "energy_j", self._joules[part] if known else None, note=why))
            readings.append(Reading(id, "power_w", self._watts[part] if known else None, note=why))
        return readings

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _command(self) -> list[str]:
        return [*COMMAND] if os.geteuid() == 0 else ["sudo", "-n", *COMMAND]

    def _take(self, piece: bytes) -> None:
        """One sample: how long it was, and for each part the millijoules in it, or the milliwatts."""
        import plistlib
        from xml.parsers.expat import ExpatError

        try:
            sample: dict[str, Any] = plistlib.loads(piece.strip(b"\0\n ") + END)
        except (plistlib.InvalidFileException, ExpatError, ValueError):
            return  # cut off
        elapsed_s = sample.get("elapsed_ns", 0) / 1e9
        told = sample.get("processor", {})
        if not 0 < elapsed_s < 60:
            return
        for part in PARTS:
            watts = told.get(f"{part}_power")
            joules = told.get(f"{part}_energy", None if watts is None else watts * elapsed_s)
            if joules is not None and 0 <= joules / 1e3 <= CEILING_W * elapsed_s:
                self._joules[part] += joules / 1e3
                self._watts[part] = joules / 1e3 / elapsed_s
                self._fresh = self._clock.monotonic()


SENSOR = Apple
