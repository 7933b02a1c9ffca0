"""Watch the boosters in a program that has not imported scikit-learn: they train and predict without it."""

from __future__ import annotations

from typing import ClassVar

from bitwatt.backends.sklearn import boosters, readers
from bitwatt.backends.sklearn.watch import EstimatorWatch


class BoosterWatch(EstimatorWatch):
    """Where scikit-learn is watched, that watch sees to the boosters; where it comes later, it finds them wrapped."""

    library: ClassVar[str]

    def start(self) -> None:
        type(self).now = self
        if EstimatorWatch.now is None:
            readers.load()
            self._undo += boosters.install(self, (self.library,))


class XGBoostWatch(BoosterWatch):
    library, now = "xgboost", None


class LightGBMWatch(BoosterWatch):
    library, now = "lightgbm", None


class CatBoostWatch(BoosterWatch):
    library, now = "catboost", None
