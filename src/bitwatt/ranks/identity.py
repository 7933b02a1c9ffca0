"""Which rank of which job this process is, from what launchers leave in the environment."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from bitwatt.records import Rank

#: Rank, number of ranks and local rank, as launchers name them: torchrun and accelerate, Slurm, Open MPI, MPICH.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ("SUBMITIT_LOCAL_GLOBALID", "SUBMITIT_LOCAL_NTASKS", "SUBMITIT_LOCAL_LOCALID"),
)
#: What is the same for all ranks of a job and differs between jobs, where the launcher says it.
_JOBS = (
    "SUBMITIT_LOCAL_JOB_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE",
    "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT",
)  # fmt: skip


#: Where something else than the environment told: a launcher that bitwatt knows.
given: Rank | None = None


def from_environment(environment: Mapping[str, str] = os.environ) -> Rank | None:
    """The rank a launcher gave to this process; None where it is alone."""
    if given is not None:
        return given
    for names in _LAUNCHERS:
        rank, world, local = (_number(environment.get(name)) for name in names)
        if rank is not None and world is not None and world > 1:
            return this_rank(rank, world, _job(environment), local)
    return None


def this_rank(rank: int, world: int, job: str, local_rank: int | None = None) -> Rank:
    """This process as rank `rank` of `job`."""
    if local_rank is None:
        local_rank = _number(os.environ.get("LOCAL_RANK"))
    return Rank(rank, world, job, local_rank or 0, platform.node(), machine_id(), process())


def machine_id() -> str:
    """The same for all processes and containers on one machine: what its kernel drew when it started."""
    for path in ("/proc/sys/kernel/random/boot_id", "/etc/machine-id"):
        with suppress(OSError):
            return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
    return platform.node()


def process(number: int | None = None) -> str:
    """`number` (by default of this process) and when it began: numbers are used again."""
    number = os.getpid() if number is None else number
    return f"{number}@{began(number)}"


def began(number: int) -> str:
    """When a process began, in ticks since the machine started; empty where there is none or the system hides it."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def is_alive(rank: Rank) -> bool | None:
    """Whether the process still runs; None where that cannot be told from here."""
    if rank.machine != machine_id():
        return None
    number, _, since = rank.process.partition("@")
    return bool(since) and began(int(number)) == since if number.isdigit() and began(os.getpid()) else None


def here() -> str:
    """This process, and whose numbers it goes by: those of a container mean nothing outside of it."""
    return f"{process()} {machine_id()} {_numbers()}"


def still_runs(told: str) -> bool | None:
    """Whether the process that `here` told of still runs; None where that cannot be told from here."""
    its, _, where = told.partition(" ")
    number, _, since = its.partition("@")
    if where != f"{machine_id()} {_numbers()}" or not since or not number.isdigit() or not began(os.getpid()):
        return None
    return began(int(number)) == since


def _numbers() -> str:
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return ""


def _job(environment: Mapping[str, str]) -> str:
    """Without a word from the launcher that differs from job to job, ranks on one machine share the process that
    started them, and ranks on several can only share the address where they meet."""
    told = [f"{name}={environment[name]}" for name in _JOBS if name in environment]
    only_address = environment.get("TORCHELASTIC_RUN_ID", "none") == "none" and not {
        "SUBMITIT_LOCAL_JOB_ID", "SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"
    } & set(environment)  # fmt: skip
    if only_address:
        told.append(f"parent={process(os.getppid())}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:12]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
