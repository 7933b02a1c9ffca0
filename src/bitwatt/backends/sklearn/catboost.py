"""Watch CatBoost in a program that has not imported scikit-learn: its classes stand on their own."""

from __future__ import annotations

from typing import ClassVar

from bitwatt.backends.sklearn import boosters, readers
from bitwatt.backends.sklearn.watch import EstimatorWatch


class CatBoostWatch(EstimatorWatch):
    """Beside scikit-learn's watch, whichever of them came first wraps the classes."""

    now: ClassVar[EstimatorWatch | None] = None

    def start(self) -> None:
        type(self).now = self
        readers.load()
        self._undo += boosters.install(self, ("catboost",))
