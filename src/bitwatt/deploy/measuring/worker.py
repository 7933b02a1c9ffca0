"""A fresh process: `python -m bitwatt.deploy.measuring.worker job.txt`. It does one task, pinned, and ends."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from bitwatt.deploy.measuring import children


def main(path: str) -> None:
    job: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    if job["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["cores"])
    children.task(job["task"])(job, children.Tell(job["results"], job["marker"]))


def limit_torch(threads: int) -> None:
    """torch does not heed the environment alone once its pool is there."""
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)


if __name__ == "__main__":
    main(sys.argv[1])
