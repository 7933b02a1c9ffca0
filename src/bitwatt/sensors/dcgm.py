"""What NVIDIA's data-centre manager knows more: how busy tensor cores and memory are. Not yet run on hardware."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence

from bitwatt.readings import Device, Reading
from bitwatt.sensors.counters import SYSTEM, Clock, Counter
from bitwatt.sensors.nvml import CEILING_W, RESOLUTION_S
from bitwatt.sensors.stream import Stream

#: Field -> (its number, what it is here). Energy comes in millijoules, activity as a share of time.
FIELDS = {
    "DCGM_FI_PROF_SM_ACTIVE": (1002, "sm_active"),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": (1004, "tensor_active"),
    "DCGM_FI_PROF_DRAM_ACTIVE": (1005, "dram_active"),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (156, "energy_j"),
}
QUANTITIES = [quantity for _, quantity in FIELDS.values()]
SAMPLE = re.compile(r"^(DCGM_\w+)\{([^}]*)\}\s+(\S+)", re.M)
LABEL = re.compile(r'(\w+)="([^"]*)"')
ROW = re.compile(r"^\s*GPU\s+(\d+)\s+(.+)$")
#: An exporter collects each half minute unless told otherwise; asking more often than this tells nothing new.
ASK_S = 5.0
STALE_S = 60.0
#: Seconds in which an exporter must have answered, and dcgmi must have found the GPUs.
ANSWER_S, DISCOVERY_S = 2.0, 10.0
#: What Nsight Compute and Nsight Systems leave in the environment of a program that they profile.
PROFILERS = ("NV_COMPUTE_PROFILER", "NV_NSIGHT", "NSYS_", "CUDA_INJECTION64_PATH")


class Dcgm:
    """`dcgmi` where it is installed and its engine runs; an exporter only if you name its address."""

    name = "dcgm"
    source = "DCGM"
    order = 1  # nvml speaks first of energy

    def __init__(
        self,
        dcgmi: Sequence[str] = ("dcgmi",),
        *,
        url: str | None = None,
        visible: str | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self._dcgmi, self._url, self._clock = list(dcgmi), url, clock
        self._visible = os.environ.get("CUDA_VISIBLE_DEVICES") if visible is None else visible
        self._stream: Stream | None = None
        self._uuids: dict[str, str] = {}  # dcgmi's number of a GPU -> UUID
        self._counters: dict[str, Counter] = {}
        self._values: dict[tuple[str, str], float] = {}
        self._fresh = self._asked = float("-inf")
        self._note = ""

    def why_absent(self) -> str | None:
        if self._url is not None:
            try:
                return None if self._scrape() else f"{self._url} tells of no GPU"
            except (OSError, ValueError) as error:
                return f"{self._url} does not answer: {error}"
        if profiler := next((name for name in os.environ if name.startswith(PROFILERS)), None):
            return f"a profiler is attached ({profiler}), and needs the counters that dcgmi would take"
        if shutil.which(self._dcgmi[0]) is None:
            return (
                "dcgmi is not installed; install datacenter-gpu-manager, or set dcgm.url to a dcgm-exporter's address"
            )
        try:
            return None if self._discover() else "dcgmi finds no GPU"
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stdout", None) or str(error)).strip().splitlines()
            return (
                f"dcgmi fails ({said[0] if said else error}): is its engine running? sudo systemctl start nvidia-dcgm"
            )

    def open(self) -> list[Device]:
        self.close()
        if self._url is not None:
            uuids = sorted({uuid for uuid, _ in self._scrape()})
        else:
            self._uuids = self._discover()
            uuids = list(self._uuids.values())
            numbers = ",".join(str(number) for number, _ in FIELDS.values())
            self._stream = Stream([*self._dcgmi, "dmon", "-e", numbers, "-d", "1000"])
        self._counters = {
            uuid: Counter(
                unit_j=1e-3, ceiling_w=CEILING_W, resolution_s=STALE_S if self._url else 1.0, clock=self._clock
            )
            for uuid in uuids
        }
        self._values, self._fresh, self._asked, self._note = {}, self._clock.monotonic(), float("-inf"), ""
        return [Device(f"gpu:{uuid}", "gpu", "", CEILING_W, RESOLUTION_S) for uuid in uuids]

    def read(self) -> list[Reading]:
        self._refresh()
        stale = self._clock.monotonic() - self._fresh
        note = self._note or (f"DCGM has said nothing for {stale:.0f} s" if stale > STALE_S else "")
        readings = []
        for uuid, counter in self._counters.items():
            for quantity in QUANTITIES:
                value, why = None if note else self._values.get((uuid, quantity)), note
                if quantity == "energy_j" and value is not None:
                    value, why = counter.count(int(value))
                elif value is None and not why:
                    why = "DCGM does not tell it (yet)"
                readings.append(Reading(f"gpu:{uuid}", quantity, value, note=why))
        return readings

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream, self._counters = None, {}

    def _refresh(self) -> None:
        now = self._clock.monotonic()
        try:
            if self._stream is not None:
                lines = [line.decode(errors="replace") for line in self._stream.pieces()]
                got = {key: value for line in lines for key, value in self._row(line).items()}
            elif self._counters and now - self._asked >= ASK_S:
                self._asked = now
                got = self._scrape()
            else:
                return
        except (OSError, ValueError) as error:
            self._note = f"DCGM no longer answers: {error}"
            return
        self._note = ""
        # Shares above one are how it writes "blank".
        got = {key: value for key, value in got.items() if key[1] == "energy_j" or value <= 1}
        if got:
            self._values.update(got)
            self._fresh = now

    def _row(self, line: str) -> dict[tuple[str, str], float]:
        """`GPU 0   0.981   0.412   0.233   123456789`, in the order asked for; N/A where it does not know."""
        match = ROW.match(line)
        if match is None or match[1] not in self._uuids:
            return {}
        cells = zip(QUANTITIES, match[2].split(), strict=False)
        return {
            (self._uuids[match[1]], quantity): value for quantity, cell in cells if (value := _number(cell)) is not None
        }

    def _scrape(self) -> dict[tuple[str, str], float]:
        """An exporter's page. Rows of MIG instances are parts of their GPU, and left out."""
        from urllib.request import urlopen  # takes 20 ms to import, and few need it

        assert self._url is not None
        with urlopen(self._url, timeout=ANSWER_S) as answer:
            page = answer.read().decode()
        found = {}
        for name, labels, number in SAMPLE.findall(page):
            told, value = dict(LABEL.findall(labels)), _number(number)
            is_whole = "UUID" in told and not told.get("GPU_I_ID")
            if (
                name in FIELDS
                and is_whole
                and value is not None
                and self._is_visible(told.get("gpu", ""), told["UUID"])
            ):
                found[told["UUID"], FIELDS[name][1]] = value
        return found

    def _discover(self) -> dict[str, str]:
        command = [*self._dcgmi, "discovery", "-l"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=DISCOVERY_S, check=True).stdout
        uuids, number = {}, ""
        for line in said.splitlines():
            if match := re.match(r"\|\s*(\d+)\s*\|", line):
                number = match[1]
            if match := re.search(r"Device UUID:\s*(\S+)", line):
                uuids[number] = match[1]
        return {number: uuid for number, uuid in uuids.items() if self._is_visible(number, uuid)}

    def _is_visible(self, number: str, uuid: str) -> bool:
        """As CUDA_VISIBLE_DEVICES says. Which GPU a MIG instance is part of is not known here: then all are."""
        if self._visible is None or "MIG-" in self._visible:
            return True
        names = [name.strip() for name in self._visible.split(",")]
        return any(name == number or (name[:3] == "GPU" and uuid.startswith(name)) for name in names)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e14 else None  # larger ones, too, are blank


SENSOR = Dcgm
