"""A fresh process: `python -m bitwatt.deploy.measuring.worker job.txt`. It does one task, pinned, and ends; at
the latest when the process that started it ends, however that happens."""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from bitwatt.deploy.measuring import children

_PR_SET_PDEATHSIG = 1


def main(path: str) -> None:
    job: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    tied(job["parent"])
    if job["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["cores"])
    children.task(job["task"])(job, children.Tell(job["results"], job["marker"]))


def tied(parent: int) -> None:
    """By the kernel on Linux, which costs nothing while something is timed; elsewhere by a thread that waits for the
    end of the pipe whose other end the parent holds."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent and not _lives(parent):  # it ended before the kernel was told
            os._exit(1)
    else:
        threading.Thread(target=ends_with_its_input, daemon=True, name="bitwatt-tied").start()


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def ends_with_its_input() -> None:
    os.read(0, 1)
    os._exit(1)


def limit_torch(threads: int) -> None:
    """torch does not heed the environment alone once its pool is there."""
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


def leave() -> None:
    """When libraries have cleaned up behind them, at once: to take them apart would cost a process up to a quarter of
    its CPU time, and tell nothing. What they have started ends with the process, see `children`."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
    leave()
