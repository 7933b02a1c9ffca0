"""Where a study was made: the machine, what its processor can do with integers, and the libraries."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from bitwatt import __version__
from bitwatt.deploy.records import Scenario

#: Instructions that decide how fast narrow numbers are: where they are missing, wider ones do their work.
FLAGS = (
    "avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16",
    "asimd", "asimddp", "i8mm", "bf16", "sve",
)  # fmt: skip


def machine() -> dict[str, str]:
    from bitwatt import machine
    from bitwatt.deploy.measuring import bandwidth

    return {**machine.describe().facts, **flags(), **bandwidth.machine()}


def flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, str]:
    """Nothing where the system does not tell."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    told = (line.partition(":")[2].split() for line in lines if line.lower().startswith(("flags", "features")))
    there = next(told, [])
    return {"flags": " ".join(flag for flag in FLAGS if flag in there)} if there else {}


def of(rows: Sequence[Scenario]) -> dict[str, str]:
    """As the artefacts were built with."""
    found = {"python": platform.python_version(), "bitwatt": __version__}
    for row in rows:
        found.update(row.artefact.versions if row.artefact is not None else {})
    return found
