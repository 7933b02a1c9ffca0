"""MLPerf's LoadGen, where `mlcommons-loadgen` is installed: SingleStream, MultiStream, Server and Offline.

Its sample is one row. A query of several samples is answered in batches, as a server would. Runs are seconds long and
not the ten minutes that MLPerf's rules want, so no result of this is one of MLPerf's, whatever LoadGen calls it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import queue
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bitwatt.deploy import documents
from bitwatt.deploy.given import rows as forms
from bitwatt.deploy.load import summaries
from bitwatt.deploy.load.points import per_second
from bitwatt.deploy.load.serving import inputs
from bitwatt.deploy.load.settings import Settings
from bitwatt.deploy.load.slo import Condition, parse
from bitwatt.deploy.measuring import children
from bitwatt.deploy.records import Load, LoadPoint

SCENARIOS = {"SingleStream": "single-stream", "MultiStream": "multi-stream", "Server": "server", "Offline": "offline"}
#: LoadGen's own bound for Server, where there is no SLO of a percentile.
_DEFAULT = Condition("p99", 99.0, 10.0)
#: A model that is quicker can be faster than LoadGen can ask it through Python: then Server is offered no more than
#: this share of what it got through in SingleStream.
_QUICK_MS, _SHARE = 0.5, 0.7
_SAMPLES = 1024  # rows that it draws from
_BATCH = 256  # rows of one call, of a query that has many
_MOST = 400_000  # samples of the one query of Offline
_OWN_S = 4e-6  # what LoadGen takes for a sample that Python answers
_QUERY_S = 2e-5  # and at least for a query


def why_absent() -> str:
    if importlib.util.find_spec("mlperf_loadgen") is None:
        return "MLPerf's LoadGen did not run: mlcommons-loadgen is not installed"
    return ""


def source() -> str:
    return f"mlcommons-loadgen {importlib.metadata.version('mlcommons-loadgen')}"


def _loadgen() -> Any:
    return importlib.import_module("mlperf_loadgen")


def measure(job: dict[str, Any], tell: children.Tell, settings: Settings, predict: Any, load: Load) -> None:
    """In the serving process: the four scenarios, one after another."""
    rows = inputs(job)
    rate = server_rate(load)
    for done, name in enumerate(SCENARIOS):
        tell.at(job["artefact"]["scenario"], f"in LoadGen's {name}", 0.6 + 0.4 * done / len(SCENARIOS))
        found = scenario(name, predict, rows, settings, rate=rate, workers=max(settings.callers))
        if name == "SingleStream" and found.achieved_rate and (found.p50_ms or _QUICK_MS) < _QUICK_MS:
            rate = min(rate, _SHARE * found.achieved_rate)
        tell.result({"point": documents.as_json(found)})
    tell.result({"note": "LoadGen's results are not MLPerf's: its rules want runs of 600 s"})


def server_rate(load: Load) -> float:
    """What its Server scenario is offered: the rate that held the SLO, else half of the capacity."""
    return load.highest_rate or 0.5 * (load.capacity or 1.0)


class _System:
    """What LoadGen calls the system under test: a queue, and workers that answer from it."""

    def __init__(self, predict: Any, rows: Any, workers: int) -> None:
        self.loadgen, self.predict, self.rows = _loadgen(), predict, rows
        self.queries = self.samples = self.failed = 0
        self.began = self.ended = 0.0  # first query, last answer
        self.error = ""
        self._waiting: queue.SimpleQueue[list[tuple[int, int]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def issue(self, samples: Sequence[Any]) -> None:
        self.began = self.began or time.perf_counter()
        self.queries += 1
        self.samples += len(samples)
        asked = [(sample.id, sample.index) for sample in samples]
        for start in range(0, len(asked), _BATCH):
            self._waiting.put(asked[start : start + _BATCH])

    def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        response = self.loadgen.QuerySampleResponse
        while (asked := self._waiting.get()) is not None:
            try:
                self.predict(take(self.rows, [index for _, index in asked]))
            except Exception as error:  # it must be told that the query is over, or it waits for ever
                with self._lock:
                    self.failed += len(asked)
                    self.error = f"{type(error).__name__}: {error}"[:200]
            self.ended = time.perf_counter()
            self.loadgen.QuerySamplesComplete([response(name, 0, 0) for name, _ in asked])


def take(rows: Any, indices: list[int]) -> Any:
    return forms.take(rows, slice(indices[0], indices[0] + 1) if len(indices) == 1 else indices)


def scenario(name: str, predict: Any, rows: Any, settings: Settings, *, rate: float, workers: int) -> LoadPoint:
    """`rate` is what Server is offered."""
    loadgen = _loadgen()
    bound = next((one for one in parse(settings.slo) if one.percent is not None and one.percent < 100), _DEFAULT)
    there = min(_SAMPLES, forms.count(rows))
    wanted = loadgen.TestSettings()
    wanted.scenario, wanted.mode = getattr(loadgen.TestScenario, name), loadgen.TestMode.PerformanceOnly
    wanted.min_duration_ms = round(1000 * settings.seconds)
    wanted.max_duration_ms = 2 * wanted.min_duration_ms
    wanted.min_query_count = 1
    wanted.server_target_qps = rate
    wanted.server_target_latency_ns = round(1e6 * bound.limit_ms)
    wanted.server_target_latency_percentile = (bound.percent or 99.0) / 100
    wanted.qsl_rng_seed, wanted.sample_index_rng_seed = settings.seed + 1, settings.seed + 2
    wanted.schedule_rng_seed = settings.seed + 3
    # From these it works out how many queries fill the time. All are made beforehand: too many take memory.
    wanted.single_stream_expected_latency_ns = round(1e9 * max(_QUERY_S, _seconds(predict, rows, there, 1) / 2))
    wanted.multi_stream_expected_latency_ns = round(1e9 * max(_QUERY_S, _seconds(predict, rows, there, 8) / 2))
    if name == "Offline":
        whole = _seconds(predict, rows, there, _BATCH) + _BATCH * _OWN_S
        wanted.offline_expected_qps = min(_BATCH / whole, _MOST / settings.seconds)
    system = _System(predict, rows, workers)
    with tempfile.TemporaryDirectory(prefix="bitwatt-loadgen-") as folder:
        logs = loadgen.LogSettings()
        logs.log_output.outdir, logs.log_output.copy_summary_to_stdout = folder, False
        logs.enable_trace = False
        tested = loadgen.ConstructSUT(system.issue, lambda: None)
        library = loadgen.ConstructQSL(there, there, lambda _: None, lambda _: None)
        loadgen.StartTestWithLogSettings(tested, library, wanted, logs, "")
        loadgen.DestroyQSL(library)
        loadgen.DestroySUT(tested)
        system.close()
        summary = (Path(folder) / "mlperf_log_summary.txt").read_text(encoding="utf-8", errors="replace")
    return summaries.point(
        SCENARIOS[name], summary, seconds=system.ended - system.began, callers=workers, queries=system.queries,
        samples=system.samples, failed=system.failed, error=system.error,
        asked=f"{per_second(rate)}, {bound.name} below {bound.limit_ms:g} ms" if name == "Server" else "",
        rate=rate if name == "Server" else None,
    )  # fmt: skip


def _seconds(predict: Any, rows: Any, there: int, size: int) -> float:
    """Of one call."""
    batch = take(rows, [at % there for at in range(size)])
    times = []
    for _ in range(4):
        began = time.perf_counter()
        with contextlib.suppress(Exception):  # what fails is told when LoadGen asks for it
            predict(batch)
        times.append(time.perf_counter() - began)
    return max(1e-6, median(times[1:]))
