"""torch.compile in the lab: one process compiles, the others find the code; one code for any number of rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bitwatt.deploy import breakdown, runtimes
from bitwatt.deploy.given import loading
from bitwatt.deploy.making import building
from bitwatt.deploy.measuring import batching, together
from bitwatt.deploy.records import Artefact

torch = pytest.importorskip("torch")


def counted(artefact: Artefact, job: dict[str, Any], tell: Any) -> None:
    """In a fresh process: what it compiled, and what it found compiled."""
    from torch._dynamo.utils import counters

    rows, predict = batching.load(job["rows"]), runtimes.load(artefact, job["threads"]).predict
    for size in (48, 1, 32, 7):
        predict(rows[:size])
    tell.result({"graphs": counters["stats"]["unique_graphs"], **counters["inductor"]})


@pytest.mark.slow
def test_a_fresh_process_finds_what_building_compiled(tmp_path: Path) -> None:
    width = 100 + os.getpid() % 9000  # which nobody compiled here before
    model = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 3)).eval()
    case = loading.case(model, torch.randn(64, 8))
    (built,) = building.build_all(case, tmp_path / "built", ("torch-compile",))
    assert built.artefact is not None, built.failure
    assert "when it was built" in built.artefact.notes[0]
    rows = batching.save(case.inputs, tmp_path / "rows")
    found, failures = together.ask(
        "test_deploy_compile:counted", {"torch-compile": built.artefact}, tmp_path / "work", rows=str(rows)
    )
    assert not failures
    (seen,) = found["torch-compile"]
    assert seen["graphs"] == 2, "one for a single row, one for all other numbers"
    assert seen.get("fxgraph_cache_miss", 0) == 0
    assert seen["fxgraph_cache_hit"] == 2
    parts = breakdown.of(built.artefact, case, 4, seconds=0.05, apart=False)
    assert "fused into kernels" in parts.note


@pytest.mark.slow
def test_only_the_number_of_rows_is_left_open(tmp_path: Path) -> None:
    """Heights and widths that are left open take longer to trace, in every process."""
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.Flatten()).eval()
    case = loading.case(model, torch.randn(40, 1, 9, 9))
    (built,) = building.build_all(case, tmp_path / "built", ("torch-compile",))
    assert built.artefact is not None, built.failure
    loaded: Any = runtimes.load(built.artefact)
    seen = []

    def backend(graph: Any, given: Any) -> Any:
        values = [node.meta["example_value"] for node in graph.graph.nodes if node.op == "placeholder"]
        seen.extend(value.shape for value in values if torch.is_tensor(value) and value.shape[1:] == (1, 9, 9))
        return graph.forward

    torch._dynamo.reset()
    loaded.call = torch.compile(loaded.model, backend=backend)
    loaded.predict(case.inputs[:32])
    (shape,) = seen
    assert isinstance(shape[0], torch.SymInt)
    assert all(isinstance(size, int) for size in shape[1:])
