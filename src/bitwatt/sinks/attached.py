"""The sinks as a session holds them: whatever is wrong with them is a remark, never the user's problem."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from bitwatt.config import Settings
from bitwatt.errors import BitwattError
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.records import Run
from bitwatt.sinks import Opening, Sink, make
from bitwatt.sinks.delivery import Delivery
from bitwatt.sinks.job import of_job


def attached(session: Any, wanted: Any, started: str, settings: Settings | None) -> Delivery | None:
    """Those that are there; `measure(to=...)` has complained about its own by now."""
    sinks: list[Sink] = []
    for one in [wanted] if isinstance(wanted, str) or hasattr(wanted, "close") else wanted:
        try:
            sinks += make(one)
        except BitwattError as error:
            session.remark(f"not sent: {error}")
            warnings.warn(f"bitwatt: {error}", stacklevel=6)
    opening = Opening(session.id, session.name, started, session.command, settings or Settings())

    def job(run: Run) -> Run:
        return of_job(run, session.root) if session.path is not None else run

    return Delivery(sinks, opening, partial(session.so_far, UNDER_WAY), job) if sinks else None
