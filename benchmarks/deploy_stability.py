"""Does `bitwatt deploy --quick` say the same again? Its timing is repeated on real models, its verdicts are counted.

    python benchmarks/deploy_stability.py [--minutes 10] [--repeats 100] [--models logistic,mlp] [--calls folder]

Every scenario is timed twice, as itself and once more under another name, so that each has an A/A pair. Told are:
the share of repeats in which a pair that differs by more than 10 % gets the verdict it gets most often, pairs that were
called faster once and slower once, and the share of A/A pairs that were told apart. The processes of all repeats are
then mixed and drawn from anew, which gives more repeats than there was time for, though not independent ones.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bitwatt.deploy import plans
from bitwatt.deploy.given import loading
from bitwatt.deploy.making import building
from bitwatt.deploy.measuring import batching, timing
from bitwatt.deploy.records import Artefact, Call, Case
from bitwatt.deploy.statistics.ratios import log_ratios
from bitwatt.deploy.statistics.table import Key, Table
from bitwatt.deploy.statistics.verdicts import judged
from bitwatt.deploy.telling import raw

SCENARIOS = ("sklearn-fp64", "onnx-fp32", "onnx-int8", "numpy")
AGAIN = " again"
DIFFERS = 1.10
DRAWN = 40

Pair = tuple[str, int, str, str]  # model, batch, and the two


def logistic() -> Case:
    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegression

    X, y = make_classification(3000, 20, n_informative=15, n_classes=3, random_state=0)
    X = X.astype(np.float32)
    return loading.case(LogisticRegression(max_iter=500).fit(X, y), X, y, train=X)


def mlp() -> Case:
    from sklearn.datasets import make_classification
    from sklearn.neural_network import MLPClassifier

    X, y = make_classification(2000, 784, n_informative=40, n_classes=10, random_state=0)
    X = X.astype(np.float32)
    return loading.case(MLPClassifier((256, 128), max_iter=5, random_state=0).fit(X, y), X, y, train=X)


MODELS = {"logistic": logistic, "mlp": mlp}


def doubled(case: Case, folder: Path) -> dict[str, Artefact]:
    found: dict[str, Artefact] = {}
    for row in building.build_all(case, folder):
        if row.artefact is not None and row.name in SCENARIOS:
            found[row.name] = found[row.name + AGAIN] = row.artefact
    return found


def pairs(model: str, table: Table) -> Iterable[tuple[Pair, Any]]:
    """Each pair, and the log-ratios of its blocks by process."""
    for batch, threads in table.settings:
        for one, other in itertools.combinations(sorted(table.scenarios(batch, threads)), 2):
            baseline, scenario = (table.cells[Key(name, batch, threads)] for name in (one, other))
            yield (model, batch, one, other), log_ratios(baseline, scenario)


def same(pair: Pair) -> bool:
    return pair[2].removesuffix(AGAIN) == pair[3].removesuffix(AGAIN)


def told(verdicts: Mapping[Pair, Counter[str]], ratios: Mapping[Pair, float], what: str) -> None:
    alike = [pair for pair in verdicts if same(pair)]
    apart = [pair for pair in verdicts if not same(pair) and abs(np.log(ratios[pair])) > np.log(DIFFERS)]
    alarms = sum(verdicts[pair][word] for pair in alike for word in ("faster", "slower"))
    tried = sum(verdicts[pair].total() for pair in alike)
    shares = {pair: max(verdicts[pair].values()) / verdicts[pair].total() for pair in apart}
    flipped = [pair for pair in verdicts if verdicts[pair]["faster"] and verdicts[pair]["slower"]]
    steady = sum(share >= 0.95 for share in shares.values())
    print(f"\n{what}")
    print(f"  A/A pairs told apart: {alarms} of {tried} ({100 * alarms / max(tried, 1):.1f} %)")
    print(
        f"  pairs that differ by more than 10 %: {len(apart)}; same verdict in {_percent(shares.values())} of repeats,"
    )
    print(f"    in 95 % of repeats or more for {steady} of them")
    print(f"  pairs called faster once and slower once: {len(flipped)} {flipped or ''}")
    for pair in sorted(shares, key=lambda pair: shares[pair])[:8]:
        if shares[pair] < 1:
            print(f"    {' '.join(map(str, pair))}: {ratios[pair]:.3f}x, {dict(verdicts[pair])}")


def _percent(shares: Iterable[float]) -> str:
    return f"{100 * float(np.mean(list(shares) or [1.0])):.1f} %"


def analysed(repeats: Mapping[str, Sequence[Sequence[Call]]], processes: int) -> None:
    verdicts: dict[Pair, Counter[str]] = defaultdict(Counter)
    logs: dict[Pair, list[Any]] = defaultdict(list)
    for model, runs in repeats.items():
        for calls in runs:
            for pair, found in pairs(model, Table(calls)):
                verdicts[pair][judged(found, Key(pair[3], pair[1], 1), pair[2]).verdict] += 1
                logs[pair].append(found)
    ratios = {pair: float(np.exp(np.median([np.nanmedian(one) for one in found]))) for pair, found in logs.items()}
    count = " and ".join(f"{len(runs)} of {model}" for model, runs in repeats.items())
    told(verdicts, ratios, f"Repeats as they were: {count}")
    chance, drawn = np.random.default_rng(0), defaultdict[Pair, Counter[str]](Counter)
    for pair, found in logs.items():
        width = max(one.shape[1] for one in found)
        pool = np.vstack([np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=np.nan) for one in found])
        if len(found) > 1:
            for _ in range(DRAWN):
                chosen = pool[chance.permutation(len(pool))[:processes]]
                drawn[pair][judged(chosen, Key(pair[3], pair[1], 1), pair[2]).verdict] += 1
    if drawn:
        told(drawn, ratios, f"Processes of all repeats, drawn anew {DRAWN} times")


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--calls", type=Path, help="keep the raw times here; those that are there count as well")
    chosen = parser.parse_args()
    began, plan = time.monotonic(), plans.plan(quick=True)
    repeats: dict[str, list[list[Call]]] = {model: [] for model in chosen.models.split(",")}
    with tempfile.TemporaryDirectory() as scratch:
        ready = {}
        for model in repeats:
            case, place = MODELS[model](), Path(scratch) / model
            artefacts = doubled(case, place)
            ready[model] = artefacts, batching.save(case.inputs, place / "rows")
            for path in sorted(chosen.calls.glob(f"{model}-*.csv")) if chosen.calls else ():
                repeats[model].append(raw.read(path))
        for turn in range(chosen.repeats):
            for model, (artefacts, rows) in ready.items():
                if time.monotonic() - began > 60 * chosen.minutes:
                    break
                now = replace(plan, seed=int(time.time()))
                found = timing.timed(artefacts, rows, now, Path(scratch) / "work")
                repeats[model].append(found.calls)
                if chosen.calls:
                    chosen.calls.mkdir(parents=True, exist_ok=True)
                    raw.write(found.calls, chosen.calls / f"{model}-{now.seed}.csv")
                load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
                spent = time.monotonic() - began
                print(f"{spent:5.0f} s: repeat {turn + 1} of {model}, load {load:.1f}", *found.notes, file=sys.stderr)
    analysed({model: runs for model, runs in repeats.items() if runs}, plan.processes)


if __name__ == "__main__":
    main()
