"""What a session needs where it begins and ends: whose part it is, how it ended, what its file's header carries."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from bitwatt import context
from bitwatt.about import About
from bitwatt.config import Settings
from bitwatt.fingerprint import summary
from bitwatt.folding import Folder
from bitwatt.ledger import Ledger
from bitwatt.ranks.shares import shares
from bitwatt.readings import CHILDREN_S, Metered, metered_json
from bitwatt.records import Run
from bitwatt.units import format_duration

#: No vowels, so no words.
_LETTERS = "0123456789bcdfghjklmnpqrstvwxz"
#: Children's CPU time is told of from this share of the run.
_CHILDREN = 0.01


def new_id(moment: datetime) -> str:
    """When it began, and a word that 10,000 processes of the same second do not share: once in 13,000 such seconds."""
    return f"{moment:%Y%m%d-%H%M%S}-{''.join(secrets.choice(_LETTERS) for _ in range(8))}"


def inside(about: About, outer: context.Token | None) -> About:
    """A session inside another is part of it, unless the user says otherwise."""
    if about.parent or outer is None or outer.about is None:
        return about
    return replace(about, parent=outer.about.run, parent_kind=about.parent_kind or "session")


def summary_of(run: Run, settings: Settings | None) -> dict[str, Any]:
    if run.rank is None:
        return summary(run, settings)
    metered = {} if run.meter is None else {"meter": metered_json(replace(run.meter, series={}))}
    return summary(run, settings) | {"ranks": shares(run)} | metered


def give(outer: context.Token, run: Run, phases: tuple[str, ...]) -> None:
    """A session inside another has ended. There may be very many."""
    total = sum(outer.inner[1:], outer.inner[0]) if outer.inner else Ledger()  # tasks of joblib append theirs
    for row in run.ledger.within("/".join(phases)) if phases else run.ledger:
        total.add(row.phase, row.scope, row.op, row.calls)
    outer.inner[:] = [Folder(run.layers).ledger(total)]
    for known, found in ((outer.inner_seconds, run.phase_seconds), (outer.inner_device_seconds, run.device_seconds)):
        add(known, {"/".join(filter(None, (*phases, phase))): seconds for phase, seconds in found.items()})


def add(known: dict[str, float], more: Mapping[str, float]) -> None:
    """Seconds of phases, to those that are known."""
    for phase, seconds in more.items():
        known[phase] = known.get(phase, 0.0) + seconds


def by_children(metered: Metered | None, *, counted: bool) -> str:
    """A remark on work that children did without a word; `counted` where they may have sent what they counted."""
    spent = 0.0 if metered is None else metered.usage.get("children_cpu_seconds", 0.0)
    if metered is None or counted or spent < max(CHILDREN_S, _CHILDREN * metered.seconds):
        return ""
    return f"child processes used {format_duration(float(f'{spent:.2g}'))} of CPU time, in which nothing was counted"


def have_workers(watches: Mapping[str, Any]) -> bool:
    """Whether processes were started that send back what they count (of DataLoaders, of joblib, ranks), or that only
    compile."""
    spool = getattr(watches.get("torch"), "spool", None)
    told = getattr(spool, "folder", None) is not None or any(one.has_workers for one in watches.values())
    return told or "torch._inductor.async_compile" in sys.modules


def status_of(error: BaseException | None) -> str:
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return "ok"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, SystemExit):
        return f"exited: {error.code}"
    return f"failed: {type(error).__name__}: {error}"
