"""What is said about deploying models, measured on this machine by bitwatt's own deployment lab.

    python benchmarks/deploy_claims.py [--families forest-100,svc-rbf] [--batches 1,32,256]
    python benchmarks/deploy_claims.py --render      # the page anew from what was measured last

Writes docs/tables/deployment-claims.json and docs/deployment-claims.md. Takes about a minute and a half for a family.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import deploy_claims_page
from deploy_families import FAMILIES

from bitwatt.deploy import plans, statistics, study
from bitwatt.deploy.given import loading
from bitwatt.deploy.records import Breakdown, Call, Scenario, Study

DOCS = Path(__file__).parents[1] / "docs"
RESULTS, PAGE = DOCS / "tables" / "deployment-claims.json", DOCS / "deployment-claims.md"
#: What the claims are about; other ways to deploy are not timed here.
SCENARIOS = ("sklearn-fp64", "onnx-fp32", "onnx-int8")
PAIRS = (("onnx-fp32", "sklearn-fp64"), ("onnx-int8", "sklearn-fp64"), ("onnx-int8", "onnx-fp32"))
FACTS = ("cpu", "cores", "memory", "system", "os", "platform", "flags")
PACKAGES = ("python", "bitwatt", "scikit-learn", "numpy", "onnx", "onnxruntime", "skl2onnx")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--batches", default="1,32,256")
    parser.add_argument("--render", action="store_true")
    asked = parser.parse_args()
    if not asked.render:
        batches = tuple(int(batch) for batch in asked.batches.split(","))
        found = measured(asked.families.split(","), batches)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(deploy_claims_page.page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")


def measured(families: Sequence[str], batches: tuple[int, ...]) -> dict[str, Any]:
    rows, last = [], None
    plan = plans.plan(quick=True, batches=batches, threads=(1,), scenarios=SCENARIOS, loaded=False)
    for name in families:
        model, inputs, labels = FAMILIES[name]()
        with tempfile.TemporaryDirectory() as scratch:
            case = loading.case(model, inputs, labels, name=name)
            last, calls = study.measure(case, plan=plan, folder=scratch)
        rows.append(family(name, (FAMILIES[name].__doc__ or "").rstrip("."), last, calls))
        print(f"{name}: {last.seconds:.0f} s", file=sys.stderr, flush=True)
    assert last is not None, "no family was asked for"
    return {
        "date": last.started[:10],
        "machine": {name: last.machine[name] for name in last.machine if name in FACTS or "copy_" in name},
        "versions": {name: last.versions[name] for name in PACKAGES if name in last.versions},
        "plan": {"processes": plan.processes, "blocks": plan.blocks, "threads": 1, "batches": list(batches)},
        "families": rows,
    }


def family(name: str, about: str, found: Study, calls: Sequence[Call]) -> dict[str, Any]:
    table = statistics.Table(calls)
    scenarios = {one.name: one for one in found.scenarios}
    control = statistics.control(calls)
    return {
        "name": name,
        "about": about,
        "seconds": round(found.seconds),
        "load": {key: round(value, 3) for key, value in found.surroundings.items()},
        "control": getattr(control, "told", str(control)),
        "scenarios": {one.name: _scenario(one) for one in found.scenarios},
        "speed": [
            _speed(table, scenario, against, batch)
            for scenario, against in (
                ("onnx-fp32", SCENARIOS[0]),
                ("onnx-int8", SCENARIOS[0]),
                ("onnx-int8", "onnx-fp32"),
            )
            for batch in found.plan.batches
            if _there(scenarios, scenario, against)
        ],
        "shares": [
            _share(one.name, parts) for one in found.scenarios for parts in one.breakdown.values() if parts.stages
        ],
    }


def _there(scenarios: Mapping[str, Scenario], *names: str) -> bool:
    return all(name in scenarios and not scenarios[name].failure for name in names)


def _scenario(one: Scenario) -> dict[str, Any]:
    if one.failure or one.artefact is None:
        return {"failure": one.failure}
    precision, quality = one.artefact.precision, one.quality
    return {
        "mode": precision.mode,
        "integer_share": precision.integer_share,
        "note": precision.note,
        "bytes": one.artefact.bytes,
        "accuracy": None if quality is None else quality.value,
        "flips": None if quality is None else quality.flips,
        "peak_uss_mb": {batch: print_.peak_uss_mb for batch, print_ in one.footprint.items()},
        "model_mb": {batch: print_.model_mb for batch, print_ in one.footprint.items()},
        "energy_uj": {at: joules.measured_uj for at, joules in one.joules.items()},
        "cpu_seconds": {at: joules.cpu_seconds for at, joules in one.joules.items()},
        "energy_source": next((joules.source for joules in one.joules.values()), ""),
    }


def _speed(table: statistics.Table, scenario: str, against: str, batch: int) -> dict[str, Any]:
    found = statistics.compare(table, scenario, against, batch, 1)
    told = {"scenario": scenario, "against": against, "batch": batch}
    if found is None:
        return told | {"ratio": None, "low": None, "high": None, "verdict": "not timed"}
    interval = {name: round(getattr(found, name), 3) for name in ("ratio", "low", "high")}
    return told | interval | {"verdict": found.verdict}


def _share(scenario: str, parts: Breakdown) -> dict[str, Any]:
    """Of a plain call; where the parts add up to more, of their sum."""
    known = sum(stage.ms for stage in parts.stages)
    whole = max(known, parts.plain_ms or 0.0)
    told = {group: round((parts.ms(group) or 0.0) / whole, 4) for group in ("preprocess", "linear", "postprocess")}
    told["rest"] = round(1 - known / whole, 4)
    overhead = None if parts.overhead is None else round(parts.overhead, 3)
    floor = "upper bounds" in parts.note
    return {"scenario": scenario, "batch": parts.batch, **told, "overhead": overhead, "bounds": floor}


if __name__ == "__main__":
    main()
