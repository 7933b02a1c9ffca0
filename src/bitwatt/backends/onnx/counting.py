"""count(): an ONNX model as a Run, whose ledger is what one call of it would compute."""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime
from typing import Any

from bitwatt.backends.onnx.binding import Bound, Shapes
from bitwatt.backends.onnx.inferring import Opsets
from bitwatt.backends.onnx.reading import read
from bitwatt.backends.onnx.walk import Walk
from bitwatt.machine import describe
from bitwatt.records import Run


def count(model: Any, shapes: Shapes | None = None, batch: int | None = None, *, once: bool = False) -> Run:
    """What one call of `model` (a path, bytes or a ModelProto) computes, by its graph as it stands.

    `batch` is the first dimension of its inputs where the model leaves it open, 1 unless given. `shapes` has whole
    shapes by the name of an input, `{"input": (8, 3, 224, 224)}`, or lengths by the name of a dimension,
    `{"sequence": 128}`; also shapes of values inside, where only data tell them. With `once` a node
    in a loop counts as one, for questions about the graph itself.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    graph, name, folder = read(model)
    versions = {opset.domain if opset.domain != "ai.onnx" else "": opset.version for opset in graph.opset_import}
    bound = Bound(shapes, batch)
    walk = Walk(Opsets(versions, graph.ir_version, folder), bound, once=once)
    walk.model(graph.graph)
    return Run(
        id=f"{started:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        name=name,
        started=started.isoformat(timespec="milliseconds"),
        seconds=time.perf_counter() - clock,
        ledger=walk.ledger,
        machine=describe(),
        layers=walk.weights.layers,
        command=f"estimate({name})",
        notes=tuple(dict.fromkeys([*bound.notes, *walk.notes])),
    )
