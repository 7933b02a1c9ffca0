"""What one batch computes, whichever way it is deployed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitwatt.deploy import runtimes
from bitwatt.deploy.measuring import counts
from bitwatt.deploy.records import Artefact, Case, Counts

ROWS = np.random.default_rng(0).normal(size=(100, 20))


@pytest.fixture
def case() -> Case:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression().fit(ROWS, np.arange(100) % 3)
    return Case(model, "sklearn", "lr", ROWS, classes=(0, 1, 2))


def built(case: Case, name: str, folder: Path) -> Artefact:
    (folder / name).mkdir()
    return runtimes.runtime(name).build(case, folder / name)


@pytest.mark.parametrize("name", ["sklearn-fp64", "numpy", "onnx-fp32"])
def test_a_linear_model_multiplies_each_row_by_its_weights(case: Case, name: str, tmp_path: Path) -> None:
    artefact = built(case, name, tmp_path)
    for batch in (1, 64):
        found = counts.of(artefact, case, batch)
        assert found.macs == batch * 20 * 3, found
        assert found.flops is not None
        assert found.flops >= 2 * batch * 20 * 3
        assert found.bytes is not None
        assert found.bytes >= batch * 20 * (4 if name == "onnx-fp32" else 8)


def test_narrower_numbers_take_fewer_bit_operations(case: Case, tmp_path: Path) -> None:
    wide, narrow = (counts.of(built(case, name, tmp_path), case, 64) for name in ("sklearn-fp64", "sklearn-fp32"))
    assert wide.bops is not None
    assert narrow.bops is not None
    assert narrow.bops < wide.bops


def test_a_batch_larger_than_the_data_goes_round_it(case: Case, tmp_path: Path) -> None:
    assert counts.of(built(case, "sklearn-fp64", tmp_path), case, 250).macs == 250 * 60


def test_a_module_is_counted_by_its_forward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    module = torch.nn.Sequential(torch.nn.Linear(20, 5), torch.nn.ReLU())
    rows = torch.as_tensor(ROWS, dtype=torch.float32)
    case = Case(module, "torch", "net", rows, method="forward")

    class Loaded:
        def predict(self, rows: Any) -> Any:
            with torch.inference_mode():
                return module(rows).numpy()

    class Eager:
        def load(self, artefact: Artefact, threads: int) -> Loaded:
            return Loaded()

    monkeypatch.setattr(runtimes, "runtime", lambda name: Eager())
    found = counts.of(Artefact("eager", "eager", "", (), "forward"), case, 8)
    assert found.macs == 8 * 20 * 5
    assert "torch" in found.source


def test_what_cannot_be_counted_is_null_and_says_why(case: Case, tmp_path: Path) -> None:
    gone = Artefact("onnx", "onnx-fp32", str(tmp_path), ("model.onnx",), "predict", options={"feeds": [], "tail": None})
    found = counts.of(gone, case, 8)
    assert (found.flops, found.macs, found.bytes) == (None, None, None)
    assert found.source.startswith("not counted: ")


def test_a_runtime_may_count_for_itself(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    class Own:
        def counts(self, artefact: Artefact, rows: Any, batch: int) -> Counts:
            return Counts(flops=len(rows), source="mine")

    monkeypatch.setattr(runtimes, "runtime", lambda name: Own())
    assert counts.of(Artefact("x", "theirs", "", (), ""), case, 7) == Counts(flops=7, source="mine")
