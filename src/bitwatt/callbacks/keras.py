"""Keras 3: `model.fit(..., callbacks=[BitwattCallback()])`. Ops are counted with torch as its backend; with others the
run holds time, energy and metrics.

Around each fit, and each evaluate and predict outside one: phases `train`, `validation`, `predict`, epochs, and the
logs of an epoch. Keras does not tell of exceptions: a run that one ended is closed with the next, or with the process.
"""

from __future__ import annotations

import importlib
from typing import Any

from bitwatt.callbacks.around import Around

try:
    _Callback: Any = importlib.import_module("keras").callbacks.Callback
except ImportError as error:
    raise ImportError(f"keras cannot be imported ({error}): pip install 'bitwatt[keras]'") from error


class BitwattCallback(Around, _Callback):  # type: ignore[misc]
    def __init__(self, name: str | None = None, **options: Any) -> None:
        _Callback.__init__(self)
        Around.__init__(self, name, **options)
        self._fits = False
        self._epoch = 0

    def on_train_begin(self, logs: Any = None) -> None:
        self._fits = True
        self.begin(self._title())

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch
        self.enter("train")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.enter("train")
        self.count_loaded()
        self.count(epochs=1)
        self.metrics(logs or {}, epoch)

    def on_train_end(self, logs: Any = None) -> None:
        self._fits = False
        self.end()

    def on_test_begin(self, logs: Any = None) -> None:
        self._alone("evaluate")
        self.enter("validation")

    def on_test_end(self, logs: Any = None) -> None:
        if self._fits:
            self.enter("train")
        else:
            self.metrics(logs or {}, self._epoch)
            self.end()

    def on_predict_begin(self, logs: Any = None) -> None:
        self._alone("predict")
        self.enter("predict")

    def on_predict_end(self, logs: Any = None) -> None:
        self.end()

    def _alone(self, verb: str) -> None:
        if not self._fits:
            self.begin(f"{self._title()} {verb}")

    def _title(self) -> str:
        return str(getattr(self.model, "name", "") or "keras")
