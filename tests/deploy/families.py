"""Models of every family the lab promises, small, with rows in the form each takes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

TRAIN = 400


@functools.cache
def numbers() -> tuple[Any, Any]:
    rows, labels = make_classification(600, 20, n_informative=10, n_classes=3, random_state=0)
    return rows, labels


@functools.cache
def table() -> Any:
    rows, _ = numbers()
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(rows[:, :4], columns=["age", "height in m", "weight", "score"])
    return frame.assign(
        colour=draw.choice(["red", "green", "blue"], len(frame)), visits=draw.integers(0, 40, len(frame))
    )


@functools.cache
def texts() -> list[str]:
    _, labels = numbers()
    draw = np.random.default_rng(0)
    words = ["the", "a", "and", "very", "Table", "chair", "lamp", "window"]
    ends = ["Good great fine", "Bad awful poor", "so la-la"]
    return [f"{' '.join(draw.choice(words, 8))} {ends[label]}" for label in labels]


def _columns() -> Any:
    scaled = ("scaled", StandardScaler(), ["age", "height in m", "weight", "score", "visits"])
    return ColumnTransformer([scaled, ("named", OneHotEncoder(handle_unknown="ignore"), ["colour"])])


def _xgboost() -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1)


def _lightgbm() -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(n_estimators=8, verbose=-1, n_jobs=1)


def _catboost() -> Any:
    import catboost

    return catboost.CatBoostClassifier(iterations=8, verbose=0, thread_count=1, allow_writing_files=False)


FAMILIES = {
    "logistic": lambda: LogisticRegression(max_iter=500),
    "ridge": Ridge,
    "linear svc": LinearSVC,
    "scaled linear svc": lambda: make_pipeline(StandardScaler(), LinearSVC()),
    "svc": SVC,
    "svc with probabilities": lambda: SVC(probability=True),
    "mlp": lambda: MLPClassifier((32, 16), max_iter=40, random_state=0),
    "forest": lambda: RandomForestClassifier(10, random_state=0, n_jobs=2),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=5),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=5),
    "neighbours": KNeighborsClassifier,
    "pca": lambda: make_pipeline(PCA(8), LogisticRegression(max_iter=500)),
    "columns": lambda: make_pipeline(_columns(), LogisticRegression(max_iter=500)),
    "texts": lambda: make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=500)),
    "kmeans": lambda: KMeans(4, n_init=2, random_state=0),
    "scaled sgd": lambda: make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)),
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "catboost": _catboost,
    "xgboost in a pipeline": lambda: make_pipeline(StandardScaler(), _xgboost()),
    "catboost in a pipeline": lambda: make_pipeline(StandardScaler(), _catboost()),
}


def fitted(name: str) -> tuple[Any, Any, Any, Any]:
    """Model, rows to judge, their targets, rows for training."""
    rows: Any = {"columns": table, "texts": texts}.get(name, lambda: numbers()[0])()
    goal = numbers()[1].astype(float) if name == "ridge" else numbers()[1]
    model = FAMILIES[name]().fit(rows[:TRAIN], goal[:TRAIN])
    return model, rows[TRAIN:], None if name == "kmeans" else goal[TRAIN:], rows[:TRAIN]
