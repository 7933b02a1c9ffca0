"""Hugging Face's Trainer with one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import bitwatt

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate", reason="Trainer needs it")

from bitwatt.callbacks.transformers import BitwattCallback  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.layer, self.fails = torch.nn.Linear(8, 2), fails

    def forward(self, x: Any, labels: Any) -> Any:
        if self.fails and self.training:
            raise ValueError("no more")
        scores = self.layer(x)
        return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}


def data(n: int) -> list[dict[str, Any]]:
    return [{"x": torch.randn(8), "labels": torch.tensor(i % 2)} for i in range(n)]


def trainer(callback: Any, folder: Path, **options: Any) -> Any:
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=4,
        eval_strategy="epoch", logging_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True,
        disable_tqdm=True, learning_rate=0.125, **options,
    )  # fmt: skip
    return transformers.Trainer(
        model=Net(), args=arguments, train_dataset=data(10), eval_dataset=data(6), callbacks=[callback],
        compute_metrics=lambda given: {"accuracy": float((given.predictions.argmax(1) == given.label_ids).mean())},
    )  # fmt: skip


def test_training_is_a_run_with_its_phases_samples_and_metrics(tmp_path: Path) -> None:
    callback = BitwattCallback()
    trainer(callback, tmp_path).train()
    run = callback.run
    assert (run.name, run.status) == ("Net", "ok")
    assert run.about.parameters["learning_rate"] == 0.125
    assert run.about.batch_size == 4
    processed = run.observed.processed
    assert processed["train"]["samples"] == 20
    assert processed["train"]["epochs"] == 2
    macs = bitwatt.totals(run, "macs").by("phase")
    assert macs["train/forward"] == 20 * 8 * 2
    assert sum(n for phase, n in macs.items() if phase.startswith("validation")) == 12 * 8 * 2
    assert [step for step, _, _ in run.about.series["eval_accuracy"]] == [3, 6]
    assert [step for step, _, _ in run.about.series["loss"]] == [3, 6]
    assert "eval_runtime" not in run.about.metrics
    assert bitwatt.load(run.id).name == "Net"


def test_a_training_that_raised_is_closed_by_the_next(tmp_path: Path) -> None:
    callback = BitwattCallback(keep=False)
    failing = trainer(callback, tmp_path)
    failing.model.fails = True
    with pytest.raises(ValueError, match="no more"):
        failing.train()
    failed = callback.session
    failing.model.fails = False
    failing.train()
    assert failed.run.status.startswith("failed: ")
    assert callback.run.status == "ok"
    assert bitwatt.context.current() is None
