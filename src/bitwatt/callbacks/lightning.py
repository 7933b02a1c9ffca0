"""PyTorch Lightning: `Trainer(callbacks=[Bitwatt()])`, of `lightning` or `pytorch_lightning`.

Around each fit, validate, test and predict: phases `sanity check`, `train`, `validation`, `test` and `predict`, the
samples of every batch, epochs, and what the module logs for callbacks to see.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from bitwatt.callbacks.around import Around, size_of

_HOMES = ("lightning.pytorch", "pytorch_lightning")


def _bases() -> tuple[type, ...]:
    """Callback, of the packages that the program has imported, which may be both; else of one that is installed."""
    found = [sys.modules[home].Callback for home in _HOMES if hasattr(sys.modules.get(home), "Callback")]
    for home in _HOMES if not found else ():
        try:
            found = [importlib.import_module(home).Callback]
            break
        except ImportError:
            continue
    if not found:
        raise ImportError("lightning is not installed: pip install 'bitwatt[lightning]'")
    return tuple(dict.fromkeys(found))


class _Hooks(Around):
    _fits = False

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        name, verb = type(pl_module).__name__, getattr(stage, "value", stage)
        self._fits = verb == "fit"
        self.begin(name if self._fits else f"{name} {verb}", parameters=_scalars(getattr(pl_module, "hparams", {})))

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.end(exception)

    def on_sanity_check_start(self, trainer: Any, pl_module: Any) -> None:
        self.enter("sanity check")

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:
        self.enter(None)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Its logger has a run in MLflow by now, which is none of MLflow's active ones."""
        delivery = self.session.delivery if self.session is not None else None
        for sink in delivery.sinks if delivery is not None else ():
            for logger in trainer.loggers:
                if sink.name == "mlflow" and type(logger).__name__ == "MLFlowLogger" and logger.run_id:
                    sink.join(logger.run_id, str(getattr(logger, "_tracking_uri", "") or ""))

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.enter("train")

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._batch(batch)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.count(epochs=1)
        self.metrics(trainer.callback_metrics, trainer.global_step)
        self.enter(None)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self.enter("validation")

    def on_validation_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        self._batch(batch)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if not trainer.sanity_checking:
            self.metrics(trainer.callback_metrics, trainer.global_step)
            self.enter("train" if self._fits else None)

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:
        self.enter("test")

    def on_test_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        self._batch(batch)

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        self.metrics(trainer.callback_metrics, trainer.global_step)
        self.enter(None)

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:
        self.enter("predict")

    def on_predict_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        self._batch(batch)

    def on_predict_end(self, trainer: Any, pl_module: Any) -> None:
        self.enter(None)

    def _batch(self, batch: Any) -> None:
        if size := size_of(batch):
            self.count(samples=size)


def _scalars(parameters: Any) -> dict[str, Any]:
    return {str(name): value for name, value in dict(parameters).items() if isinstance(value, str | int | float | bool)}


Bitwatt = type("Bitwatt", (_Hooks, *_bases()), {"__doc__": __doc__, "__module__": __name__})
