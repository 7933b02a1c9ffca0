"""What watching adds to the folds of a search, where a machine's own pace wanders: searches with and without, in turn.

    python benchmarks/overhead_searches.py [--seconds 30] [--only svc,forest] [--json FILE]

One session is open all the time, and a `GridSearchCV` of five folds is run again and again, three times a round in
random order: once watched, and twice out of bitwatt's sight, the second of them the control. Out of sight every
wrapped method hands the call on at once, which takes 0.3 µs. Time is the process's own, on one thread. Told are the
median of the differences of rounds, for one fold, with the 95 % interval of that median from resampling rounds; and
what a session takes beside that, opened and closed around one such search, run file and meter included, as
`measure()` has it.
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
from pathlib import Path
from typing import Any

from overhead_instructions import guides, searches
from sklearn.model_selection import ParameterGrid
from threadpoolctl import threadpool_limits

import bitwatt
from bitwatt.backends.sklearn import probes
from bitwatt.backends.sklearn.frames import TOP, framed

Call = Callable[[], Any]
#: Rounds of a workload at least, and how often they are resampled.
ROUNDS, DRAWS = 15, 400


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


def in_turn(call: Call, seconds: float) -> tuple[float, list[float], list[float]]:
    """Seconds of the call out of sight; by round what watching adds, and by how much two calls out of sight differ."""
    plain, added, control = list[float](), list[float](), list[float]()
    with bitwatt.measure("searches", keep=False, meter=False):
        calls = {"watched": call, "plain": unseen(call), "control": unseen(call)}
        for one in calls.values():
            one()
        end = time.monotonic() + seconds
        while len(added) < ROUNDS or time.monotonic() < end:
            spent = {name: timed(calls[name]) for name in random.sample([*calls], len(calls))}
            plain.append((spent["plain"] + spent["control"]) / 2)
            added.append(spent["watched"] - plain[-1])
            control.append(spent["plain"] - spent["control"])
    return statistics.median(plain), added, control


def interval(values: list[float]) -> tuple[float, float]:
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(DRAWS))
    return medians[DRAWS // 40], medians[-DRAWS // 40]


def around(call: Call, rounds: int = 15) -> float:
    """Seconds to open and close a session with the call inside."""
    spent = list[float]()
    with tempfile.TemporaryDirectory() as store:
        for _ in range(rounds):
            gc.collect()
            opened = bitwatt.measure("searches", store=store)
            opening = timed(opened.__enter__)
            call()
            spent.append(opening + timed(lambda: opened.__exit__(None, None, None)))  # noqa: B023
    return statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each search")
    parser.add_argument("--only", default="", help="words, with commas between: searches whose names hold one of them")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for name, call in (searches() | guides()).items():
        if not any(word in name.lower() for word in options.only.lower().split(",")):
            continue
        folds = 5 * len(ParameterGrid(call.args[1]))
        with threadpool_limits(1):
            plain, added, control = in_turn(call, options.seconds)
            session = around(call)
        low, high = interval(added)
        median, same = statistics.median(added), statistics.median(control)
        print(
            f"{name:44s} fold {plain / folds * 1e3:7.2f} ms  added {median / folds * 1e6:6.1f} µs"
            f" [{low / folds * 1e6:.1f}, {high / folds * 1e6:.1f}] (control {same / folds * 1e6:+.1f})"
            f" = {100 * median / plain:5.2f} %; a session {session * 1e3:.1f} ms; {len(added)} rounds",
            flush=True,
        )
        found.append(
            {"name": name, "fold_s": plain / folds, "added_s": median / folds, "control_s": same / folds,
             "low_s": low / folds, "high_s": high / folds, "session_s": session, "rounds": len(added)}
        )  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
