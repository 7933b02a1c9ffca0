"""Watch CatBoost in a program that has not imported scikit-learn: its classes stand on their own."""

from __future__ import annotations

from bitwatt.backends.sklearn import boosters, readers
from bitwatt.backends.sklearn.watch import EstimatorWatch


class CatBoostWatch(EstimatorWatch):
    """Beside scikit-learn's watch, whichever of them came first wraps the classes."""

    def start(self) -> None:
        readers.load()
        self._undo += boosters.install(self, ("catboost",))
