"""What a job of several processes sends where one run is wanted: the work and the energy of all of its ranks."""

from __future__ import annotations

import time
from dataclasses import replace

from bitwatt.errors import BitwattError
from bitwatt.jobs import join, whole
from bitwatt.ranks.join import UNDER_WAY, Joined
from bitwatt.records import Run
from bitwatt.store.places import Where

#: Seconds that the first process waits for others to close their runs; and for those that have written nothing yet,
#: which may be on a machine whose disk is not seen from here.
CLOSING, COMING = 10.0, 3.0


def of_job(run: Run, store: Where) -> Run:
    """The job that `run`, which is kept there, is the first rank of. A rank that goes on is in it as far as its file
    tells; where the ranks cannot be joined, the run itself, which says so."""
    began = time.monotonic()
    try:
        job = join(run.id, store)
        while _is_awaited(job, time.monotonic() - began):
            time.sleep(0.1)
            job = join(run.id, store)
        found = whole(job)
    except (BitwattError, OSError, ValueError) as error:
        return replace(run, notes=(*run.notes, f"rank {_number(run)} alone: the ranks could not be joined ({error})"))
    if found.status != UNDER_WAY:
        return found
    late = ", ".join(str(part.number) for part in job.parts if part.kept.status == UNDER_WAY)
    return replace(found, status=run.status, notes=(*found.notes, f"so far of ranks that had not ended: {late}"))


def _is_awaited(job: Joined, waited: float) -> bool:
    going_on = any(part.kept.status == UNDER_WAY and not part.is_lost for part in job.parts)
    return (going_on and waited < CLOSING) or (bool(job.absent) and waited < COMING)


def _number(run: Run) -> int:
    return 0 if run.rank is None else run.rank.rank
