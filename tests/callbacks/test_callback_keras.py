"""Keras with torch as its backend, with one line: in a process of its own, since the backend is chosen once."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("pip install 'bitwatt[keras]'", allow_module_level=True)

CODE = """
import json, keras, numpy as np, bitwatt
from bitwatt.callbacks.keras import BitwattCallback
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(2, name="dense")], name="net")
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
x, y = np.zeros((10, 8), "float32"), np.zeros(10, "int32")
callback = BitwattCallback()
model.fit(x, y, batch_size=4, epochs=2, validation_data=(x[:6], y[:6]), verbose=0, callbacks=[callback])
run = callback.run
model.evaluate(x, y, verbose=0, callbacks=[callback])
alone = callback.run
class Fails(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        raise ValueError("no more")
try:
    model.fit(x, y, verbose=0, callbacks=[callback, Fails()])
except ValueError:
    failed = callback.session
model.fit(x, y, verbose=0, callbacks=[callback])
print(json.dumps({
    "name": run.name, "status": run.status, "processed": {k: dict(v) for k, v in run.observed.processed.items()},
    "macs": bitwatt.totals(run, "macs").by("phase"), "metrics": {k: v["count"] for k, v in run.about.metrics.items()},
    "kept": [header.name for header in bitwatt.runs()], "alone": [alone.name, sorted(alone.about.metrics)],
    "failed": failed.run.status, "last": callback.run.status, "open": callback.is_open,
}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict:
    folder = tmp_path_factory.mktemp("keras")
    environment = {**os.environ, "KERAS_BACKEND": "torch", "KERAS_HOME": str(folder)}
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_fit_is_a_run_with_its_phases_samples_and_metrics(told: dict) -> None:
    assert (told["name"], told["status"]) == ("net", "ok")
    assert told["processed"]["train"]["samples"] == 20
    assert told["processed"]["train"]["epochs"] == 2
    assert told["macs"]["train/forward"] == 20 * 8 * 2
    assert sum(n for phase, n in told["macs"].items() if phase.startswith("validation")) == 12 * 8 * 2
    assert told["metrics"] == {"accuracy": 2, "loss": 2, "val_accuracy": 2, "val_loss": 2}


def test_an_evaluation_by_itself_is_a_run_too(told: dict) -> None:
    assert told["alone"] == ["net evaluate", ["accuracy", "loss"]]
    assert "net evaluate" in told["kept"]


def test_a_fit_that_raised_is_closed_by_the_next(told: dict) -> None:
    assert told["failed"].startswith("failed: ")
    assert told["last"] == "ok"
    assert told["open"] is False


def test_it_says_how_to_install_keras(tmp_path: Path) -> None:
    (tmp_path / "keras.py").write_text("raise ImportError('broken')\n")
    done = subprocess.run(
        [sys.executable, "-c", "import bitwatt.callbacks.keras"], capture_output=True, text=True, cwd=tmp_path
    )
    assert "pip install 'bitwatt[keras]'" in done.stderr
