"""Inside a session of ONNX Runtime: its own profile of nodes, in a second session over the same file.

The profiler writes whole microseconds and takes some itself for each node, so that a node under a few µs reads a floor,
not its time; the note says how many do. In a loop it takes them for each node of each turn, many times what the loop
itself takes: a loop's time is what the other nodes leave of the plain session's. What is outside the graph, from the
caller's rows to tensors and back, is timed around the session's call.
"""

from __future__ import annotations

import gc
import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bitwatt.deploy.breakdown.graph import Node, groups
from bitwatt.deploy.breakdown.timeline import LINEAR, POSTPROCESS, PREPROCESS, slower
from bitwatt.deploy.records import Artefact, Breakdown, Stage, UnfitError
from bitwatt.uncollected import uncollected

#: Runs of the profiled session that are dropped: allocation and first use of the caches. The fewest and most after.
DROPPED, LEAST, MOST = 20, 30, 1000
#: What the profiler takes for a node is found from the two sessions; more than so many µs is noise of long calls.
MOST_US = 10.0
#: Parts that add up to more than so many plain calls are not believed without a word.
MUCH = 1.2
#: Operators that run graphs of their own.
LOOPS = frozenset({"Scan", "Loop", "If"})


class Between:
    """A session that remembers when its last call began and ended; all else is the session's."""

    def __init__(self, session: Any) -> None:
        self._session, self.began, self.ended = session, 0, 0

    def run(self, *args: Any, **kwargs: Any) -> Any:
        self.began = time.perf_counter_ns()
        found = self._session.run(*args, **kwargs)
        self.ended = time.perf_counter_ns()
        return found

    def run_with_iobinding(self, *args: Any, **kwargs: Any) -> None:
        self.began = time.perf_counter_ns()
        self._session.run_with_iobinding(*args, **kwargs)
        self.ended = time.perf_counter_ns()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


def split(artefact: Artefact, loaded: Any, batches: Iterator[Any], batch: int, seconds: float) -> Breakdown:
    plain = loaded.session
    with tempfile.TemporaryDirectory() as scratch:
        profiled = _profiled(plain, _file(artefact), Path(scratch))
        try:
            plainly, walls, profiled_walls, runs = _alternate(loaded, plain, profiled, batches, seconds)
        finally:
            loaded.session = plain
        profile = json.loads(Path(profiled.end_profiling()).read_text(encoding="utf-8"))
        nodes, constants = _optimised(Path(scratch) / "optimised.onnx")
    overhead, plain_ms = slower(walls, profiled_walls), median(walls) / 1e6
    feeding, running, reading = (median(part) / 1e6 for part in zip(*plainly, strict=True))
    timed, told = without_turns(medians(profile, drop=DROPPED), running * 1e3)
    stages, note = _stages(timed, nodes, constants, overhead * plain_ms * 1e3 / events(profile))
    stages = (
        Stage("rows to tensors, outside the graph", PREPROCESS, feeding), *stages,
        Stage("tensors to results, outside the graph", POSTPROCESS, reading),
    )  # fmt: skip
    times = sum(stage.ms for stage in stages) / plain_ms
    much = f"the parts add up to {times:.2g} times a plain call: the profiler's time is in them" if times > MUCH else ""
    note = "; ".join(one for one in (told, note, much) if one)
    import onnxruntime

    source = (
        f"node profile of onnxruntime {onnxruntime.__version__}, medians of {runs} runs of a session of its own, "
        f"grouped by their place in the optimised graph"
    )
    return Breakdown(batch, stages, overhead, plain_ms, source, note)


def _file(artefact: Artefact) -> Path:
    for name in artefact.files:
        if name.endswith((".onnx", ".ort")):
            return Path(artefact.folder) / name
    raise UnfitError(f"{artefact.scenario} has a session, and no .onnx file among its {len(artefact.files)} files")


def _profiled(session: Any, file: Path, scratch: Path) -> Any:
    """As the session is set up, but that it profiles, and writes the graph which it runs."""
    import onnxruntime

    options = session.get_session_options()
    options.enable_profiling = True
    options.profile_file_prefix = str(scratch / "profile")
    options.optimized_model_filepath = str(scratch / "optimised.onnx")
    options.log_severity_level = 3  # it warns that the written graph suits this machine alone: so it should
    return onnxruntime.InferenceSession(
        str(file),
        options,
        providers=session.get_providers(),
        provider_options=[*session.get_provider_options().values()],
    )


def _alternate(
    loaded: Any, plain: Any, profiled: Any, batches: Iterator[Any], seconds: float
) -> tuple[list[tuple[int, int, int]], list[int], list[int], int]:
    """Plain and profiled calls by turns, so that what a neighbour takes is taken from both. Of plain ones, in ns, what
    comes before the session's run, the run, what comes after, and the whole; of profiled ones the whole."""
    between = Between(plain)
    parts: list[tuple[int, int, int]] = []
    walls: list[int] = []
    profiled_walls: list[int] = []
    gc.collect()
    with uncollected():
        until = time.perf_counter() + seconds
        late = until + 4 * seconds
        while (now := time.perf_counter()) < until or (len(walls) < DROPPED + LEAST and now < late):
            rows = next(batches)
            for session in (between, profiled) if len(walls) % 2 else (profiled, between):
                loaded.session = session
                began = time.perf_counter_ns()
                loaded.predict(rows)
                ended = time.perf_counter_ns()
                if session is profiled:
                    profiled_walls.append(ended - began)
                else:
                    walls.append(ended - began)
                    parts.append((between.began - began, between.ended - between.began, ended - between.ended))
            if len(walls) >= DROPPED + MOST:
                break
    drop = _dropped(len(walls), DROPPED)
    return parts[drop:], walls[drop:], profiled_walls[drop:], len(walls) - drop


def _dropped(runs: int, wanted: int) -> int:
    """Of few runs fewer are dropped."""
    return min(wanted, runs // 2)


def medians(profile: Sequence[Mapping[str, Any]], drop: int = DROPPED) -> list[tuple[str, str, float]]:
    """(node's name, operator, median µs) of the nodes of the main graph, in the order in which they run. What runs
    inside a loop's node is in the loop's time, and is left out."""
    events = [
        event for event in profile if event.get("cat") == "Node" and str(event.get("name", "")).endswith("_kernel_time")
    ]
    seen: dict[tuple[str, str, str], list[float]] = {}
    loop_ends = -1
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        if event["ts"] < loop_ends:
            continue
        args = event["args"]
        if args["op_name"] in LOOPS:
            loop_ends = event["ts"] + event["dur"]
        key = (event["name"].removesuffix("_kernel_time"), args["op_name"], str(args.get("node_index", "")))
        seen.setdefault(key, []).append(float(event["dur"]))
    return [(name, op, median(times[_dropped(len(times), drop) :])) for (name, op, _), times in seen.items()]


def events(profile: Sequence[Mapping[str, Any]]) -> float:
    """Nodes that the profiler wrote down for a run, with those of every turn of a loop."""
    nodes = sum(event.get("cat") == "Node" for event in profile)
    return nodes / max(sum(event.get("name") == "model_run" for event in profile), 1) or 1.0


def without_turns(timed: Sequence[tuple[str, str, float]], run_us: float) -> tuple[list[tuple[str, str, float]], str]:
    """Loops share what a plain run has left beside the other nodes, if that is less than what they read."""
    loops = sum(us for _, op, us in timed if op in LOOPS)
    left = max(run_us - sum(us for _, op, us in timed if op not in LOOPS), 0.0)
    if loops <= left:
        return list(timed), ""
    names = ", ".join(dict.fromkeys(op for _, op, _ in timed if op in LOOPS))
    told = f"the profiler takes time in every turn of {names}: its time is what the other nodes leave of a plain run"
    return [(name, op, us * left / loops if op in LOOPS else us) for name, op, us in timed], told


def _optimised(file: Path) -> tuple[list[Node], set[str]]:
    import onnx

    graph = onnx.load(str(file), load_external_data=False).graph
    nodes = [Node(node.op_type, node.name, tuple(node.input), tuple(node.output)) for node in graph.node]
    return nodes, {tensor.name for tensor in graph.initializer}


def _stages(
    timed: Sequence[tuple[str, str, float]], nodes: Sequence[Node], constants: set[str], added_us: float
) -> tuple[tuple[Stage, ...], str]:
    """`added_us` is what the profiler takes for a node."""
    placed = groups(nodes, constants)
    notes = []
    if not placed:
        notes.append("no product, tree or attention in the graph: all of it is taken as the operator")
    stages = []
    for (name, op, us), i in zip(timed, _found(timed, nodes), strict=True):
        if i is None:
            notes.append(f"{op} {name} is not in the optimised graph: taken as part of the operator")
        stages.append(Stage(f"{op} {name}", placed[i] if placed and i is not None else LINEAR, us / 1e3))
    floor = min(added_us, MOST_US)
    if low := sum(us <= floor for _, _, us in timed):
        notes.append(
            f"{low} of {len(timed)} nodes read no more than what the profiler takes for a node here, {floor:.1f} µs: "
            "their times are upper bounds"
        )
    return tuple(stages), "; ".join(notes)


def _found(timed: Sequence[tuple[str, str, float]], nodes: Sequence[Node]) -> list[int | None]:
    """Which node each of those that ran is. Nodes without a name of their own run under their operator's, and are
    taken in the order in which they stand."""
    left: dict[tuple[str, str], list[int]] = {}
    for i, node in enumerate(nodes):
        left.setdefault((node.name, node.op), []).append(i)
    found: list[int | None] = []
    for name, op, _ in timed:
        here = left.get((name, op)) or left.get(("", op))
        found.append(here.pop(0) if here else None)
    return found
