"""MLflow: parameters, metrics by step, tags, and the report as an artifact.

The run that the program itself has in MLflow is joined, if it is one; else one is made. A joined run is neither ended
nor renamed, and what the program has logged there is not logged again.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bitwatt.errors import BitwattError
from bitwatt.records import Run
from bitwatt.sinks import Opening, absent, needed
from bitwatt.sinks.mlflow_program import ProgramRuns
from bitwatt.sinks.series import Sent
from bitwatt.sinks.values import facts, moment, parameters, plain, values

#: Seconds after which a run is made where the program has none; before, it may still be on the way to its own.
WAIT = 30.0
#: What one request may hold, and one text.
METRICS, OTHERS, TEXT = 1000, 100, 5000
_STATUS = {"ok": "FINISHED", "interrupted": "KILLED"}


class MLflow:
    """`uri` of the tracking server (else as MLflow is set), `experiment` by name, `run` to join by its id, `report=no`
    for no artifact."""

    name = "mlflow"

    def __init__(self, uri: str = "", experiment: str = "", run: str = "", report: str = "yes") -> None:
        self._uri, self._experiment, self._given = uri, experiment, run
        self._report = report.lower() not in ("no", "false", "0")
        self._program = ProgramRuns()
        self._own = ""
        self._client: Any = None
        self._logged: tuple[frozenset[str], frozenset[str]] | None = None  # by the program, in its own run
        self._sent = Sent()
        self._opening: Opening | None = None
        self._began = time.monotonic()

    def join(self, run: str, uri: str = "") -> None:
        """A run of the program's that MLflow's own calls do not know of, such as that of a logger."""
        self._given, self._uri = self._given or run, self._uri or uri

    def why_absent(self) -> str | None:
        return absent("mlflow", "mlflow")

    def look(self, *, ended: bool) -> None:
        if ended:
            self._program.end()
        else:
            self._program.begin()

    def warm(self) -> None:
        needed("mlflow", "mlflow")

    def open(self, run: Opening) -> None:
        self._opening = run

    def live(self, run: Run) -> None:
        if not (self._given or self._program.one or self._own) and time.monotonic() - self._began < WAIT:
            return
        self._log(self._run(), run, live=True)

    def close(self, run: Run) -> str:
        mine = self._run()
        self._log(mine, run, live=False)
        if self._report:
            from bitwatt.reports import report

            page = report(run, format="html", settings=self._opening.settings if self._opening else None)
            self._client.log_text(mine, page, "bitwatt/report.html")
        if mine == self._own:
            ended = round(1000 * moment(run.started, run.seconds))
            with _quietly():
                self._client.set_terminated(mine, _STATUS.get(run.status, "FAILED"), ended)
        return self._page(mine)

    def _run(self) -> str:
        """The id of the run to write to."""
        mlflow = needed("mlflow", "mlflow")
        if self._client is None:
            try:
                self._client = mlflow.MlflowClient(tracking_uri=self._uri or None)
            except mlflow.MlflowException as error:
                if "unsupported URI" not in str(error):
                    raise
                where = self._uri or mlflow.get_tracking_uri()
                hint = "name a server (mlflow=http://...), or pip install mlflow"
                raise BitwattError(f"the light MLflow that is installed cannot write to {where}: {hint}") from error
        if self._given:
            return self._given
        theirs = self._program.one if self._uri in ("", mlflow.get_tracking_uri()) else None  # else it is elsewhere
        if not self._own and theirs is not None:
            return theirs
        if not self._own:
            opened = self._opening
            began, name = (opened.started, opened.name) if opened else ("", "run")
            made = self._client.create_run(
                self._experiment_id(mlflow), start_time=round(1000 * moment(began)), run_name=name[:250],
                tags={"bitwatt.run": opened.id if opened else ""},
            )  # fmt: skip
            self._own = made.info.run_id
        return self._own

    def _experiment_id(self, mlflow: Any) -> str:
        if self._experiment:
            known = self._client.get_experiment_by_name(self._experiment)
            return str(known.experiment_id if known else self._client.create_experiment(self._experiment))
        current = getattr(mlflow.tracking.fluent, "_get_experiment_id", None)  # as set by the program or environment
        return str((current() if current is not None else None) or "0")

    def _log(self, mine: str, run: Run, *, live: bool) -> None:
        entities = needed("mlflow.entities", "mlflow")
        if not live and mine != self._own and self._logged is None:
            data = self._client.get_run(mine).data
            self._logged = frozenset(data.metrics), frozenset(data.params)
        metrics_there, parameters_there = self._logged or (frozenset(), frozenset())
        found = values(run, self._opening.settings if self._opening else None, live=live)
        ended, second = round(1000 * moment(run.started, run.seconds)), round(run.seconds)
        metrics = [entities.Metric(one.flat, float(one.amount), ended, second) for one in found]
        # The program logs its metrics into its own run, too: what it has not logged is known when it has finished.
        points = [] if live and mine != self._own else self._sent.new(run)
        metrics += [
            entities.Metric(plain(name), amount, round(1000 * moment(run.started, at)), step)
            for name, step, at, amount in points
            if plain(name) not in metrics_there
        ]
        for some in _parts(metrics, METRICS):
            self._client.log_batch(mine, metrics=some)
        self._sent.arrived(points)
        if live:
            return
        told = [entities.Param(plain(name), text[:TEXT]) for name, text in parameters(run).items()]
        for some in _parts([one for one in told if one.key not in parameters_there], OTHERS):
            self._client.log_batch(mine, params=some)
        for some in _parts([entities.RunTag(name, text[:TEXT]) for name, text in _tags(run, found)], OTHERS):
            self._client.log_batch(mine, tags=some)

    def _page(self, mine: str) -> str:
        """Where a browser finds it; no password in it."""
        uri = re.sub(r"//[^/@]*@", "//", str(self._client.tracking_uri))
        if not uri.startswith("http"):
            return f"run {mine} in {uri}"
        return f"{uri.rstrip('/')}/#/experiments/{self._client.get_run(mine).info.experiment_id}/runs/{mine}"


@contextmanager
def _quietly() -> Iterator[None]:
    """MLflow prints where a run is when it ends, to the program's own output."""
    name = "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"
    before = os.environ.get(name)
    os.environ[name] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _tags(run: Run, found: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for name, text in facts(run).items():
        yield f"bitwatt.{plain(name)}", text
    for value in found:
        if value.name in ("energy_j", "co2e_g"):
            yield f"bitwatt.{value.name}.how", value.about.get("how", "")
        if value.name == "cost":
            yield "bitwatt.cost.currency", value.about["currency"]
    for name, text in run.about.tags.items():
        own = plain(name).startswith(("mlflow.", "bitwatt."))  # those mean something there
        yield f"tag.{plain(name)}" if own else plain(name), text
    for i, note in enumerate(run.notes[:10]):
        yield f"bitwatt.note.{i + 1}", note


def _parts(items: list[Any], size: int) -> Iterator[list[Any]]:
    for i in range(0, len(items), size):
        yield items[i : i + size]


SINK = MLflow
