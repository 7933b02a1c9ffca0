"""How right bitwatt and other counters are: each tool on each training program of workloads.py, into docs/accuracy.md.

    python benchmarks/accuracy/peers.py [--tools bitwatt,fvcore] [--programs mlp,lstm] [--fresh] [--out FILE]

The other tools are no dependencies of bitwatt: the first run installs them into .venv/peers, each without its own
requirements, so that torch stays the one bitwatt is tested with. Each tool meets each program in a process of its own,
on one thread and under a time limit. Results are kept in the system's temporary folder under a name that holds a digest
of the code they came from, so a run that was stopped goes on where it was, and one after a change starts anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from pathlib import Path
from threading import Lock
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PEERS = ROOT / ".venv" / "peers"
sys.path.insert(0, str(HERE))

#: Tool -> what is installed for it: itself and what its import needs beyond this environment.
PACKAGES = {
    "fvcore": ["fvcore==0.1.5.post20221221", "iopath", "yacs", "portalocker", "termcolor", "tabulate"],
    "thop": ["thop==0.1.1.post2209072238"],
    "ptflops": ["ptflops==0.7.5"],
    "calflops": ["calflops==0.3.2", "accelerate"],
    "deepspeed": ["deepspeed==0.19.8", "hjson", "py-cpuinfo", "msgpack", "einops"],
    "floppy-tracker": [
        "floppy-tracker==0.2.2", "scikit-learn", "scipy", "joblib", "threadpoolctl", "narwhals", "cloudpickle"
    ],
}  # fmt: skip
#: floppy-tracker imports wandb for its uploads, which nothing here uses: an empty module stands in for it.
STAND_INS = {"wandb.py": '"""Stands in for an uploader that is imported and not used."""\n'}


def install() -> dict[str, str]:
    """Make the environment once. Returns package -> why it could not be installed."""
    done = PEERS / "installed.json"
    wanted = hashlib.sha256(json.dumps([PACKAGES, STAND_INS, sys.version]).encode()).hexdigest()
    if done.exists() and (state := json.loads(done.read_text()))["wanted"] == wanted:
        return state["failed"]
    PEERS.mkdir(parents=True, exist_ok=True)
    failed = {}
    for name, packages in PACKAGES.items():
        print(f"installing {name}", flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pip += ["--upgrade", "--no-build-isolation", "--target", str(PEERS), *packages]
        result = subprocess.run(pip, env=os.environ | {"DS_BUILD_OPS": "0"}, capture_output=True, text=True)
        if result.returncode:
            errors = [line for line in result.stderr.splitlines() if line.startswith("ERROR")]
            failed[name] = plain(errors[-1] if errors else result.stderr)
    for file, text in STAND_INS.items():
        (PEERS / file).write_text(text)
    done.write_text(json.dumps({"wanted": wanted, "failed": failed}))
    return failed


def plain(message: str) -> str:
    """An error in one short line that says the same on every machine."""
    message = re.sub(r"\w+://\S+", "...", message).replace(f"{ROOT}/", "")
    message = re.sub(r"0x[0-9a-f]{6,}", "0x...", message).replace(tempfile.gettempdir(), "")
    message = " ".join(message.split())
    return message if len(message) <= 220 else message[:217] + "..."


def ask(tool: str, program: str, limit: float) -> dict[str, Any]:
    """What the tool says of the program, or the error it raised, and the truth."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "DS_BUILD_OPS": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    if tool not in {"bitwatt", "FlopCounterMode", "torch.profiler"}:
        environment["PYTHONPATH"] = str(PEERS)
    command = [sys.executable, str(HERE / "peer_tools.py"), tool, program]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=limit, cwd=tempfile.gettempdir()
        )
        return json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {limit:.0f} s"}
    except (IndexError, json.JSONDecodeError):
        ending = done.stderr.strip().splitlines()[-1:] or [""]
        return {"error": f"the process ended with code {done.returncode}: {ending[0]}"}


def versions() -> dict[str, str]:
    """Distribution -> version, of this environment and of the tools' own."""
    found = {d.metadata["Name"].lower(): d.version for d in distributions()}
    found |= {d.metadata["Name"].lower(): d.version for d in distributions(path=[str(PEERS)])}
    return found


def digest(tool: str, installed: dict[str, str], distribution: str) -> str:
    """Names the code an answer depends on: the programs, the callers, torch, the tool."""
    files = [HERE / "workloads.py", HERE / "peer_tools.py"]
    if tool == "bitwatt":
        files += sorted((ROOT / "src" / "bitwatt").rglob("*.py"))
    seen = hashlib.sha256()
    for file in files:
        seen.update(file.read_bytes())
    for name in ("torch", "transformers", distribution):
        seen.update(installed.get(name, "").encode())
    return seen.hexdigest()[:16]


def gather(tools: list[str], programs: list[str], *, limit: float, jobs: int, fresh: bool) -> dict[str, dict[str, Any]]:
    """program -> tool -> result, from the kept results where the code is still the same."""
    from peer_tools import TOOLS

    failed, installed = install(), versions()
    kept = Path(tempfile.gettempdir()) / f"bitwatt-accuracy-{os.getuid()}.json"
    store: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() and not fresh else {}
    items = [(program, tool) for program in programs for tool in tools]
    digests = {tool: digest(tool, installed, TOOLS[tool].distribution) for tool in tools}
    done, lock = Counter[str](), Lock()

    def result_of(item: tuple[str, str]) -> dict[str, Any]:
        program, tool = item
        key, began, how = f"{program} {tool} {digests[tool]}", time.perf_counter(), "kept"
        if why := failed.get(TOOLS[tool].distribution):
            return {"error": f"not installed: {why}"}
        if key not in store:
            answer = ask(tool, program, limit)
            how = f"{time.perf_counter() - began:.1f} s"
            with lock:
                store[key] = answer
                kept.write_text(json.dumps(store))
        result = store[key]
        if "error" in result:
            result = result | {"error": plain(result["error"])}
        with lock:
            done["items"] += 1
            place = f"[{done['items']}/{len(items)}]"
            print(f"{place:9s} {program:21s} {tool:16s} {how:>7s}  {result.get('error', '')[:60]}", flush=True)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        answers = dict(zip(items, pool.map(result_of, items), strict=True))
    return {program: {tool: answers[program, tool] for tool in tools} for program in programs}


def main() -> None:
    from accuracy_page import page
    from marked import part, replaced
    from peer_tools import TOOLS
    from workloads import WORKLOADS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--programs", default=",".join(WORKLOADS))
    parser.add_argument("--limit", type=float, default=180, help="seconds for one tool on one program")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="how many at a time, 1 thread each"
    )
    parser.add_argument("--fresh", action="store_true", help="ask again instead of using kept results")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "accuracy.md")
    options = parser.parse_args()
    chosen = options.tools.split(","), options.programs.split(",")
    results = gather(*chosen, limit=options.limit, jobs=options.jobs, fresh=options.fresh)
    made = page(results, versions())
    if options.out.exists():  # what truth_page.py wrote stays
        made = replaced(made, "estimators", part(options.out.read_text(), "estimators"))
    options.out.write_text(made)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
