"""What watching adds to calls and searches of estimators, with and without in turn: a shared machine's pace wanders.

    python benchmarks/overhead_turns.py [--seconds 20] [--only svc,partial_fit] [--json FILE]

One session is open all the time, and a call, or a `GridSearchCV` of five folds, is made again and again, three times a
round in random order: once watched, and twice out of bitwatt's sight, the second of them the control. Out of sight
every wrapped method hands the call on at once, which takes 0.3 µs. Time is the process's own, on one thread. Told are
the median of the differences of rounds, for one call or fold and for each method in it that is recorded, with the 95 %
interval of that median from resampling rounds; and of searches what a session takes beside that, opened and closed
around one of them, run file and meter included, as `measure()` has it.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from overhead_instructions import calls, guides, searches
from sklearn.model_selection import ParameterGrid
from threadpoolctl import threadpool_limits

import bitwatt
from bitwatt.backends.sklearn import probes
from bitwatt.backends.sklearn.frames import TOP, framed

Call = Callable[[], Any]
#: Rounds of a workload at least and at most, how often they are resampled, and sessions that are opened and closed.
ROUNDS, MOST, DRAWS, SESSIONS = 15, 4_000, 400, 9


@dataclass(frozen=True)
class Result:
    """Seconds of one call or fold out of sight, what watching adds to it with its interval, and by how much two out of
    sight differ; the methods that are recorded in it, and the seconds of a session around a search."""

    name: str
    plain: float
    added: float
    low: float
    high: float
    control: float
    methods: float
    rounds: int
    session: float | None = None

    def __str__(self) -> str:
        low, high = self.low * 1e6, self.high * 1e6
        ends = "" if self.session is None else f"; a session {self.session * 1e3:.1f} ms"
        return (
            f"{self.name:46s} {self.plain * 1e3:8.3f} ms  added {self.added * 1e6:6.1f} µs [{low:.1f}, {high:.1f}]"
            f" (control {self.control * 1e6:+.1f}) = {100 * self.added / self.plain:5.2f} %,"
            f" {self.methods:.1f} methods, {self.added / self.methods * 1e6:.1f} µs each{ends}; {self.rounds} rounds"
        )


def timed(call: Call) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def unseen(call: Call) -> Call:
    """The call as a part of a whole whose rule speaks for it and uses no probe: nothing of it is looked at."""
    whole = framed(None, "", "", "", silent=True, unheard=frozenset(one.name for one in probes.PROBES))

    def hidden() -> None:
        reset = TOP.set(whole)
        call()
        TOP.reset(reset)

    return hidden


def in_turn(name: str, call: Call, parts: int, seconds: float) -> Result:
    """`parts` are the folds in a call."""
    with bitwatt.measure("turns", keep=False, meter=False) as session:
        call()
    methods = sum(row.calls for row in session.run.ledger) / parts
    plain, added, control = list[float](), list[float](), list[float]()
    with bitwatt.measure("turns", keep=False, meter=False):
        made = {"watched": call, "plain": unseen(call), "control": unseen(call)}
        for one in made.values():
            one()
        end = time.monotonic() + seconds
        while len(added) < ROUNDS or (time.monotonic() < end and len(added) < MOST):
            spent = {which: timed(made[which]) / parts for which in random.sample([*made], len(made))}
            plain.append((spent["plain"] + spent["control"]) / 2)
            added.append(spent["watched"] - plain[-1])
            control.append(spent["plain"] - spent["control"])
    middle = statistics.median
    medians = sorted(middle(random.choices(added, k=len(added))) for _ in range(DRAWS))
    low, high = medians[DRAWS // 40], medians[-DRAWS // 40]
    return Result(name, middle(plain), middle(added), low, high, middle(control), methods, len(added))


def around(call: Call) -> float:
    """Seconds to open and close a session with the call inside."""
    spent = list[float]()
    with tempfile.TemporaryDirectory() as store:
        for _ in range(SESSIONS):
            gc.collect()
            opened = bitwatt.measure("turns", store=store)
            opening = timed(opened.__enter__)
            call()
            spent.append(opening + timed(lambda: opened.__exit__(None, None, None)))  # noqa: B023
    return statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each call or search")
    parser.add_argument("--only", default="", help="words, with commas between: those whose names hold one of them")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    single = {name: (one.args[0], 1) for name, one in calls().items()}
    folded = {name: (one, 5 * len(ParameterGrid(one.args[1]))) for name, one in (searches() | guides()).items()}
    found = []
    for name, (call, parts) in (single | folded).items():
        if not any(word in name.lower() for word in options.only.lower().split(",")):
            continue
        with threadpool_limits(1):
            result = in_turn(name, call, parts, options.seconds)
            if name in folded:
                result = Result(**{**asdict(result), "session": around(call)})
        print(result, flush=True)
        found.append(asdict(result))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
