"""The notebook, cell by cell, in a kernel of its own. Outputs are not stored: they would be of another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

TOUR = Path(__file__).parents[2] / "examples" / "tour.ipynb"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Outputs of each cell that has code."""
    notebook = nbformat.read(TOUR, as_version=4)
    folder = str(tmp_path_factory.mktemp("tour"))
    resources = {"metadata": {"path": folder}}
    nbclient.NotebookClient(notebook, timeout=900, startup_timeout=300, resources=resources).execute()
    return [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]


def text(outputs: Any) -> str:
    return "".join(output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in outputs)


def test_it_is_stored_without_outputs() -> None:
    for cell in nbformat.read(TOUR, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_reports_are_rendered(executed: list[Any]) -> None:
    setup, report, _, comparison, sweep, what_if, estimators, picture = executed
    assert setup == []
    for outputs in (report, comparison, sweep, what_if):
        assert "text/html" in outputs[0].data
    assert "<svg" in sweep[0].data["text/html"]
    assert "image/png" in picture[-1].data
    assert "0 missing" in text(report)
    assert estimators


def test_its_numbers_are_right(executed: list[Any]) -> None:
    _, _, phases, comparison, _, what_if, estimators, _ = executed
    patches = 64 * 16 * 4 * 64
    forward = patches + 64 * 16 * 2 * 64 * 256 + 64 * 64 * 10
    assert eval(text(phases)) == {"forward": f"{forward:,}", "backward": f"{2 * forward - patches:,}"}
    assert "FLOPs equal, BOPs -50 %" in text(comparison)
    (bits,) = [line.split()[-1] for line in text(what_if).splitlines() if line.startswith("bops:product ")]
    assert bits == "0.125", "four bits of 32 in every product"
    rows = dict(line.split(maxsplit=1) for line in text(estimators).splitlines() if line)
    assert len(rows) == 5
    # Scores of ten classes: 64 products and sums each, then the largest is looked for.
    assert 1_280 <= int(rows["LogisticRegression"].split()[-4].replace(",", "")) <= 1_500
