"""TensorBoard: an event file in a folder of its own below the log folder. Written by TensorBoard's own writer, so torch
and TensorFlow are not imported.

The program's metrics have its own steps; everything else has the second of the run as its step.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bitwatt.harmless import on_terminal
from bitwatt.records import Run
from bitwatt.sinks import Opening, absent, needed
from bitwatt.sinks.series import Sent
from bitwatt.sinks.values import facts, moment, parameters, plain, values


class TensorBoard:
    """`folder` of logs (runs): the run is in one below it, called bitwatt and by its name and id."""

    name = "tensorboard"

    def __init__(self, folder: str = "runs") -> None:
        self._root = Path(folder).absolute()
        self._sent = Sent()
        self._writer: Any = None
        self._opening: Opening | None = None
        self._folder = self._root

    def why_absent(self) -> str | None:
        return absent("tensorboard", "tensorboard")

    def warm(self) -> None:
        needed("tensorboard.summary.writer.event_file_writer", "tensorboard")

    def open(self, run: Opening) -> None:
        self._opening = run
        self._folder = self._root / f"bitwatt-{plain(run.name).replace('/', '_')[:80]}-{run.id}"

    def live(self, run: Run) -> None:
        self._tell(run, live=True)
        self._events().flush()

    def close(self, run: Run) -> str:
        self._tell(run, live=False)
        told = {**facts(run), **{f"parameter.{name}": value for name, value in parameters(run).items()}}
        self._text("bitwatt/run", "\n".join(f"    {name}: {on_terminal(value)}" for name, value in told.items()), run)
        self._events().close()
        self._writer = None
        return str(self._folder)

    def _tell(self, run: Run, *, live: bool) -> None:
        for value in values(run, self._opening.settings if self._opening else None, live=live):
            self._scalar(f"bitwatt/{value.flat}", value.amount, round(run.seconds), moment(run.started, run.seconds))
        points = self._sent.new(run)
        for name, step, at, amount in points:
            self._scalar(plain(name), amount, step, moment(run.started, at))
        self._sent.arrived(points)

    def _events(self) -> Any:
        if self._writer is None:
            file = needed("tensorboard.summary.writer.event_file_writer", "tensorboard")
            self._folder.mkdir(parents=True, exist_ok=True)
            self._writer = file.EventFileWriter(str(self._folder))
        return self._writer

    def _scalar(self, tag: str, amount: float, step: int, at: float) -> None:
        summary = needed("tensorboard.compat.proto.summary_pb2", "tensorboard")
        self._add(summary.Summary(value=[summary.Summary.Value(tag=tag, simple_value=float(amount))]), step, at)

    def _text(self, tag: str, text: str, run: Run) -> None:
        metadata = needed("tensorboard.plugins.text.metadata", "tensorboard")
        tensors = needed("tensorboard.util.tensor_util", "tensorboard")
        summary = needed("tensorboard.compat.proto.summary_pb2", "tensorboard")
        about = metadata.create_summary_metadata(display_name="bitwatt", description="")
        tensor = tensors.make_tensor_proto(text.encode(), dtype=None)
        value = summary.Summary.Value(tag=tag, metadata=about, tensor=tensor)
        self._add(summary.Summary(value=[value]), round(run.seconds), moment(run.started, run.seconds))

    def _add(self, summary: Any, step: int, at: float) -> None:
        event = needed("tensorboard.compat.proto.event_pb2", "tensorboard")
        self._events().add_event(event.Event(wall_time=at, step=step, summary=summary))


SINK = TensorBoard
