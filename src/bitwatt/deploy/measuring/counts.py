"""What one batch computes, by bitwatt's rules: FLOPs, bit-operations, bytes, multiply-accumulates.

An ONNX graph is counted as the runtime rewrote it, with the shapes of the rows; anything else by watching one
prediction. A runtime that has a method `counts(artefact, rows, batch)` answers for itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bitwatt.config import Settings
from bitwatt.deploy.judging import restoring
from bitwatt.deploy.measuring import batching
from bitwatt.deploy.records import Artefact, Case, Counts, Loaded
from bitwatt.pricing import COUNTED, totals
from bitwatt.records import Run
from bitwatt.session import measure

Load = Callable[[], Loaded]


def of(artefact: Artefact, case: Case, batch: int) -> Counts:
    """In this process. Nothing here stops the lab: what cannot be counted is null, and why is told."""
    rows = batching.batch(case.inputs, 0, batch)
    with restoring.threads():
        return told(artefact, rows, batch, case.framework, _loader(artefact), lambda: _native(case, rows))


def told(
    artefact: Artefact, rows: Any, batch: int, framework: str, load: Load, native: Callable[[], Any] | None
) -> Counts:
    """`native` is what to watch where the artefact itself calls nothing that rules are written for."""
    try:
        return _counted(artefact, rows, batch, framework, load, native)
    except Exception as error:  # a graph or an estimator that no rule was written for
        return Counts(source=f"not counted: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")


def each(artefact: Artefact, inputs: Any, batches: Sequence[int], framework: str, native: Artefact | None) -> list[Any]:
    """All batch sizes, as plain data: in a child."""
    from bitwatt.deploy import documents

    load, baseline = _loader(artefact), None if native is None else _loader(native)

    def watch(rows: Any) -> Callable[[], Any] | None:
        return None if baseline is None else lambda: baseline().predict(rows)

    given = {batch: batching.batch(inputs, 0, batch) for batch in batches}
    return [
        documents.as_json(told(artefact, rows, batch, framework, load, watch(rows))) for batch, rows in given.items()
    ]


def _loader(artefact: Artefact) -> Load:
    """Loads it when it is first asked for, and no second time."""
    from bitwatt.deploy import runtimes

    return functools.cache(lambda: runtimes.load(artefact))


def _counted(
    artefact: Artefact, rows: Any, batch: int, framework: str, load: Load, native: Callable[[], Any] | None
) -> Counts:
    from bitwatt.deploy import runtimes

    runtime = runtimes.runtime(artefact.runtime)
    if (own := getattr(runtime, "counts", None)) is not None:
        found: Counts = own(artefact, rows, batch)
        return found
    loaded = load()
    graph = next((name for name in artefact.files if name.endswith(".onnx")), "")
    if graph and hasattr(loaded, "session"):
        return priced(
            _graph(Path(artefact.folder) / graph, loaded, rows, batch), "the ONNX graph as onnxruntime runs it"
        )
    watched = priced(_watched(lambda: loaded.predict(rows)), f"rules of {framework}, one prediction watched")
    if watched.flops is not None or native is None:
        return watched
    return priced(_watched(native), f"rules of {framework}, the native model's, whose arithmetic this repeats")


def _graph(path: Path, loaded: Any, rows: Any, batch: int) -> Run:
    """Shapes come from what the runtime feeds, so that free dimensions beside the first are known too."""
    from bitwatt.backends.onnx import count

    feed: Callable[[Any], dict[str, Any]] | None = getattr(loaded, "feed", None)
    shapes = {name: tuple(array.shape) for name, array in feed(rows).items()} if feed else None
    device = "cuda" if "CUDAExecutionProvider" in loaded.session.get_providers() else "cpu"
    run: Run = count(_executed(path, path.stat().st_mtime_ns, device), shapes=shapes, batch=batch)
    return run


@functools.lru_cache(maxsize=1)
def _executed(path: Path, written_ns: int, device: str) -> Any:
    """For all batch sizes: it takes a process of its own to find out."""
    from bitwatt.deploy.making import integers

    return integers.optimised(path, device)


def _watched(call: Callable[[], Any]) -> Run:
    with measure("deploy", keep=False, meter=False, settings=Settings()) as session:
        call()
    run: Run = session.run
    return run


def _native(case: Case, rows: Any) -> Any:
    if case.framework != "torch":
        return getattr(case.model, case.method)(rows)
    import torch

    with torch.inference_mode():
        return case.model(*rows) if isinstance(rows, tuple) else case.model(rows)


def priced(run: Run, source: str) -> Counts:
    """Null where nothing could be counted: 0 would look like a very good model."""
    flops = totals(run, "flops")
    missing = tuple(sorted(flops.missing))
    if not any(flops.model.status(entry) == COUNTED for entry in flops.entries):
        names = f" for {', '.join(missing)}" if missing else ""
        return Counts(missing=missing, source=f"not counted: no rule{names}")
    bops, moved, macs = (totals(run, name).total for name in ("bops", "bytes", "macs"))
    return Counts(flops.total, bops, moved, macs, missing, source)
