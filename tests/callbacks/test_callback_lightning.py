"""Lightning's Trainer with one line: phases, samples, epochs, metrics, and the run afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import bitwatt

lightning = pytest.importorskip("lightning.pytorch", reason="pip install 'bitwatt[lightning]'")

from bitwatt.callbacks.lightning import Bitwatt  # noqa: E402


class Net(lightning.LightningModule):
    def __init__(self, lr: float = 0.1, fails: bool = False) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(8, 2)

    def training_step(self, batch: Any, _: int) -> Any:
        if self.hparams.fails:
            raise ValueError("no more")
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.layer(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, _: int) -> None:
        x, y = batch
        self.log("val_acc", (self.layer(x).argmax(1) == y).float().mean())

    def test_step(self, batch: Any, i: int) -> None:
        self.log("test_loss", self.layer(batch[0]).square().mean())

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)


def loader(n: int, batch: int = 4) -> Any:
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.randn(n, 8), torch.zeros(n, dtype=torch.long)), batch
    )


def trainer(callback: Any, **options: Any) -> Any:
    return lightning.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[callback], **options,
    )  # fmt: skip


def test_a_fit_is_a_run_with_its_phases_samples_and_metrics() -> None:
    callback = Bitwatt()
    trainer(callback).fit(Net(lr=0.25), loader(10), loader(6))
    run = callback.run
    assert (run.name, run.status) == ("Net", "ok")
    assert run.about.parameters["lr"] == 0.25
    # 2 epochs of 10; validation of 6 after each; the sanity check looks at 2 batches, 6 samples
    processed = run.observed.processed
    assert processed["train"]["samples"] == 20
    assert processed["train"]["epochs"] == 2
    assert processed["validation"]["samples"] == 12
    assert processed["sanity check"]["samples"] == 6
    macs = bitwatt.totals(run, "macs").by("phase")
    assert macs["train/forward"] == 20 * 8 * 2
    assert macs["validation/inference"] == 12 * 8 * 2
    assert run.observed.phases["validation"][0] == 2
    # 3 steps an epoch
    assert [step for step, _, _ in run.about.series["val_acc"]] == [3, 6]
    assert [step for step, _, _ in run.about.series["train_loss"]] == [3, 6]
    assert bitwatt.load(run.id).about.metrics["val_acc"]["count"] == 2


def test_an_exception_ends_the_run_and_stays_the_users() -> None:
    callback = Bitwatt(keep=False)
    with pytest.raises(ValueError, match="no more"):
        trainer(callback).fit(Net(fails=True), loader(4))
    assert callback.run.status == "failed: ValueError: no more"
    assert bitwatt.context.current() is None


def test_the_same_callback_measures_the_next_fit_and_a_test() -> None:
    callback = Bitwatt(keep=False)
    fitted = trainer(callback)
    fitted.fit(Net(), loader(4))
    first = callback.run
    fitted.test(Net(), loader(4), verbose=False)
    assert (callback.run.name, first.name) == ("Net test", "Net")
    assert callback.run.observed.processed["test"]["samples"] == 4
    assert list(callback.run.about.metrics) == ["test_loss"]


def test_inside_another_session_the_outer_one_is_kept_and_hears_of_the_metrics() -> None:
    callback = Bitwatt()
    with bitwatt.measure("outer") as outer:
        trainer(callback).fit(Net(), loader(4), loader(4))
    assert [header.name for header in bitwatt.runs()] == ["outer"]
    assert "val_acc" in outer.run.about.metrics
    assert (
        bitwatt.totals(outer.run).by("phase")["train/forward"]
        == bitwatt.totals(callback.run).by("phase")["train/forward"]
    )


def test_it_is_a_callback_of_pytorch_lightning_too(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = """
import pytorch_lightning, torch
from bitwatt.callbacks.lightning import Bitwatt
class Net(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 2)
    def training_step(self, batch, _):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
callback = Bitwatt(keep=False)
pytorch_lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False, callbacks=[callback]).fit(
    Net(), torch.utils.data.DataLoader(torch.randn(6, 8), 3))
assert isinstance(callback, pytorch_lightning.Callback)
print(callback.run.observed.processed["train"]["samples"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["6"], done.stderr
