"""Tensors that come from a worker process or a file are laid over memory that is there: that is no op."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.data import DataLoader, Dataset

import bitwatt


class Uneven(Dataset[Tensor]):
    """Samples that one of two workers takes long to make: batches come in another order than they are asked for."""

    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: int) -> Tensor:
        if index // 4 % 2:
            (torch.randn(64, 64) @ torch.randn(64, 64)).sum()
        return torch.full((4,), float(index))


def laid(run: Any) -> dict[str, int]:
    """What is called to lay a tensor over memory, in the program's own process."""
    return {row.phase: row.calls for row in run.ledger if row.op.name == "aten.set_" and "offset" in row.op.overload}


def test_batches_of_workers_are_received_without_an_op() -> None:
    model = nn.Linear(4, 2)
    with bitwatt.measure("received", keep=False, meter=False) as session, torch.no_grad():
        for batch in DataLoader(Uneven(), batch_size=4, num_workers=2):
            model(batch)
    run = session.run
    assert laid(run) == {}
    assert bitwatt.totals(run, "macs").by("phase")["inference"] == 48 * 4 * 2
    assert run.replay is not None
    assert run.replay.deviated == 0
    assert run.replay.disagreed == {}


def test_what_a_file_holds_is_loaded_without_an_op_and_what_follows_is_counted() -> None:
    file = io.BytesIO()
    torch.save({"weight": torch.ones(3, 4)}, file)
    with bitwatt.measure("loaded", keep=False, meter=False) as session:
        file.seek(0)
        weight = torch.load(file)["weight"]
        again = pickle.loads(pickle.dumps(weight))
        weight @ again.T
    assert laid(session.run) == {}
    assert bitwatt.totals(session.run, "macs").total == 3 * 4 * 3


def test_what_is_loaded_under_fakes_is_fake_as_without_bitwatt(tmp_path: Path) -> None:
    torch.save(torch.ones(3, 4), tmp_path / "weight.pt")
    with bitwatt.measure("loaded", keep=False, meter=False), FakeTensorMode():
        assert "Fake" in type(torch.load(tmp_path / "weight.pt")).__name__


def test_torchs_function_is_put_back() -> None:
    before = torch._utils._rebuild_tensor
    with bitwatt.measure("loaded", keep=False, meter=False):
        assert torch._utils._rebuild_tensor is not before
    assert torch._utils._rebuild_tensor is before
