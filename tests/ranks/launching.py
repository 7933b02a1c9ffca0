"""Starts real ranks."""

import os
import subprocess
import sys


def environment(**more: str) -> dict[str, str]:
    """For a process that finds what this one finds."""
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | more


def torchrun(*arguments: object, ranks: int = 2, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks, *arguments]
    return run(*command, check=check)


def run(*command: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, env=environment(), timeout=600, check=False
    )
    assert done.returncode == 0 or not check, done.stderr[-4000:]
    return done
