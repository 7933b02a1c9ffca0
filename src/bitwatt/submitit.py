"""Jobs of submitit, on Slurm or on this machine: every task keeps a run, and those of one job are ranks of it.

executor.submit(bitwatt.submitit.measured(train), config)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bitwatt import store as files
from bitwatt.ranks import identity
from bitwatt.session import measure


def measured(function: Callable[..., Any], *, name: str | None = None, store: str | Path | None = None) -> Any:
    """`function`, to be submitted: what each task computes is kept in `store` (by default .bitwatt/ here, where it is
    submitted). Tasks see the environment that submitit gives them, so files of one job find each other."""
    folder = files.absolute(files.root(store))
    return functools.partial(
        _run, function, name or str(getattr(function, "__name__", type(function).__name__)), str(folder)
    )


def _run(function: Callable[..., Any], name: str, store: str, *args: Any, **kwargs: Any) -> Any:
    import submitit

    environment = submitit.JobEnvironment()
    if environment.num_tasks > 1:
        identity.given = identity.this_rank(
            environment.global_rank, environment.num_tasks, f"submitit-{environment.job_id}", environment.local_rank
        )
    with measure(name, store=store):
        return function(*args, **kwargs)
