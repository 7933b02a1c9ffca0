"""Which packages a graph was made with: when one of them changes, results may no longer hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from families import fitted

from bitwatt.deploy.given import loading
from bitwatt.deploy.making import building
from bitwatt.deploy.runtimes import runtime


@pytest.mark.parametrize(("family", "made"), [("xgboost in a pipeline", True), ("logistic", False)])
def test_the_converter_of_a_booster_is_among_the_versions(family: str, made: bool, tmp_path: Path) -> None:
    model, rows, y, _ = fitted(family)
    built = building.build(loading.case(model, rows, y), runtime("onnx-fp32"), tmp_path)
    assert built.artefact is not None, built.failure
    assert "skl2onnx" in built.artefact.versions
    assert ("onnxmltools" in built.artefact.versions) is made
