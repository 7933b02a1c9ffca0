"""The inputs of the measured fits, by the names that their `data` fields use."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn
from scipy.sparse import csr_matrix
from sklearn.datasets import make_blobs, make_classification, make_regression
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.gaussian_process import kernels


def classification(
    n: int, f: int, classes: int = 2, dtype: str = "float64", seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(
        n, f, n_informative=max(4, f // 2), n_redundant=0, n_classes=classes, class_sep=0.7, flip_y=0.05,
        random_state=seed,
    )  # fmt: skip
    return X.astype(dtype), y


def regression(n: int, f: int, dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_regression(n, f, n_informative=max(4, f // 2), noise=10.0, random_state=seed)
    return X.astype(dtype), y.astype(dtype)


def blobs(n: int, f: int, centers: int, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(n, f, centers=centers, cluster_std=4.0, random_state=0)
    return X.astype(dtype), y


def nonnegative(n: int, f: int) -> tuple[np.ndarray, None]:
    return np.abs(np.random.RandomState(0).randn(n, 8)) @ np.abs(np.random.RandomState(1).randn(8, f)), None


def text(n: int, f: int) -> tuple[list[str], np.ndarray]:
    random = np.random.RandomState(0)
    words = [f"w{i}" for i in range(f * 20)]
    return [" ".join(random.choice(words, size=40)) for _ in range(n)], random.randint(0, 2, n)


def sparse(n: int, f: int, density: float = 0.1, dtype: str = "float64", seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows of few positive values, as compressed sparse rows, and two classes."""
    from scipy.sparse import random

    X = random(n, f, density, format="csr", random_state=np.random.RandomState(seed), dtype=np.float64)
    return X.astype(dtype), np.random.RandomState(seed + 1).randint(0, 2, n)


def holes(n: int, f: int, share: float = 0.1, dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of which a share is missing."""
    X, y = regression(n, f, dtype, seed)
    X[np.random.RandomState(seed + 1).rand(n, f) < share] = np.nan
    return X, y


def categories(n: int, f: int, kinds: int = 5, classes: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns of small whole numbers."""
    random = np.random.RandomState(seed)
    return random.randint(0, kinds, (n, f)), random.randint(0, classes, n)


def counts(n: int, f: int, classes: int = 3, dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """How often each of f words occurs in n documents."""
    random = np.random.RandomState(seed)
    return random.poisson(1.0, (n, f)).astype(dtype), random.randint(0, classes, n)


def stored(
    n: int, f: int, density: float = 0.2, classes: int = 2, dtype: str = "float64", seed: int = 0
) -> tuple[Any, np.ndarray]:
    """A sparse matrix (CSR) whose rows of different classes have different columns, and the classes."""
    X, y = classification(n, f, classes, seed=seed)
    X[np.random.RandomState(seed).rand(n, f) >= density] = 0.0
    return csr_matrix(X.astype(dtype)), y


def unlabelled(
    n: int, f: int, classes: int = 2, dtype: str = "float64", seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Classification where 7 of 10 labels are not known (-1)."""
    X, y = classification(n, f, classes, dtype, seed)
    return X, np.where(np.random.RandomState(seed).rand(n) < 0.7, -1, y)


def stored_regression(
    n: int, f: int, density: float = 0.2, dtype: str = "float64", seed: int = 0, targets: int = 1
) -> tuple[Any, np.ndarray]:
    """A sparse matrix (CSR) and numbers that depend on it, in one or more columns."""
    random = np.random.RandomState(seed)
    X = random.randn(n, f) * (random.rand(n, f) < density)
    y = X @ random.randn(f, targets) + random.randn(n, targets)
    return csr_matrix(X.astype(dtype)), (y[:, 0] if targets == 1 else y).astype(dtype)


def outputs(n: int, f: int, targets: int = 2, dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Regression with several numbers to predict."""
    X, y = make_regression(n, f, n_informative=max(4, f // 2), n_targets=targets, noise=10.0, random_state=seed)
    return X.astype(dtype), y.astype(dtype)


def rates(n: int, f: int, dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Positive targets: the exponential of something linear, with noise."""
    X, y = regression(n, f, "float64", seed)
    noise = np.random.RandomState(seed).rand(n)
    return X.astype(dtype), np.exp(y / 200 + 0.2 * noise).astype(dtype)


def curve(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """One column, and what grows with it on the whole."""
    random = np.random.RandomState(seed)
    x = random.rand(n)
    return x, 3 * x + random.randn(n)


def sparse_classification(
    n: int, f: int, density: float = 0.1, classes: int = 2, format: str = "csr", seed: int = 0
) -> tuple[Any, np.ndarray]:
    from scipy.sparse import random as random_sparse

    X = random_sparse(n, f, density=density, format=format, random_state=seed)
    return X, np.random.RandomState(seed).randint(0, classes, n)


def rounded(n: int, f: int, classes: int = 2, decimals: int = 0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Few distinct values in every column."""
    X, y = classification(n, f, classes, seed=seed)
    return np.round(X, decimals), y


def with_gaps(n: int, f: int, share: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Missing values in half of the columns."""
    X, y = classification(n, f, seed=seed)
    holes = np.random.RandomState(seed).rand(n, f) < share
    holes[:, ::2] = False
    X[holes] = np.nan
    return X, y


def tied(n: int, f: int, classes: int = 0, dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns of yes and no, of small whole numbers, of halves and of one value; classes, or a number to predict."""
    random = np.random.RandomState(seed)
    kinds = (
        lambda: random.randint(0, 2, n), lambda: random.poisson(2.0, n), lambda: np.round(random.randn(n) * 4) / 2,
        lambda: np.full(n, 3.0), lambda: random.randn(n) * (random.rand(n) < 0.3),
    )  # fmt: skip
    X = np.column_stack([kinds[j % len(kinds)]() for j in range(f)]).astype(dtype)
    y = X @ random.randn(f) + random.randn(n)
    return X, (np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)) if classes else y.astype(dtype))


def real(name: str, dtype: str = "float64", scale: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """A data set that comes with scikit-learn: iris, wine, digits, breast_cancer, diabetes; or its columns scaled."""
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    if scale:
        X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)
    return X.astype(dtype), y


def measures(n: int, f: int, classes: int = 0, dtype: str = "float64", seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns as tables hold them: of very different scales, long tails, a few copies of each other."""
    random = np.random.RandomState(seed)
    X = np.exp(0.7 * random.randn(n, f)) * 10.0 ** random.randint(-2, 4, f)
    X[:, ::5] = X[:, :1] * random.rand(len(X[0, ::5])) + 0.1 * X[:, ::5]
    y = np.log(X) @ random.randn(f) + random.randn(n)
    return X.astype(dtype), (np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)) if classes else y)


def doubled(data: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Targets in double precision, whatever the data are."""
    return data[0], data[1].astype("float64")


def frame(data: tuple[np.ndarray, np.ndarray]) -> tuple[Any, np.ndarray]:
    import pandas as pd

    return pd.DataFrame(data[0], columns=[f"c{j}" for j in range(data[0].shape[1])]), data[1]


def whole(n: int, f: int, classes: int = 0, high: int = 9, dtype: str = "int64", seed: int = 0) -> tuple[Any, Any]:
    """Whole numbers below `high`, or truth values, and what depends on them: classes, or a number."""
    random = np.random.RandomState(seed)
    X = random.randint(0, 2 if dtype == "bool" else high, (n, f))
    y = X @ random.randn(f) + random.randn(n)
    return X.astype(dtype), (np.digitize(y, np.quantile(y, np.arange(1, classes) / classes)) if classes else y)


def table(n: int, f: int, classes: int = 0, seed: int = 0) -> tuple[Any, Any]:
    """A frame whose columns differ in type: double, single, whole, small whole."""
    import pandas as pd

    X, y = whole(n, f, classes, seed=seed)
    noise = np.random.RandomState(seed).rand(n, f)
    kinds = ("float64", "float32", "int64", "uint8")
    columns = {f"c{j}": (X[:, j] + noise[:, j] * (j % 4 < 2)).astype(kinds[j % 4]) for j in range(f)}
    return pd.DataFrame(columns), y


def by_columns(data: tuple[Any, Any]) -> tuple[Any, Any]:
    """The same numbers stored column by column: a Fortran array, or compressed sparse columns."""
    X = data[0]
    return X.tocsc() if hasattr(X, "tocsc") else np.asfortranarray(X), data[1]


def named(data: tuple[Any, Any]) -> tuple[Any, Any]:
    """Classes that have names."""
    return data[0], np.array([f"kind {label}" for label in data[1]])


def marks(data: tuple[Any, Any]) -> tuple[Any, Any]:
    """Two yes-or-no labels for each row."""
    return data[0], np.c_[data[1] > 0, data[1] % 2 == 0].astype(int)


NAMESPACE: dict[str, Any] = {
    "whole": whole, "table": table, "by_columns": by_columns, "named": named, "marks": marks,
    "tied": tied, "real": real, "measures": measures, "doubled": doubled, "frame": frame,
    "sparse_classification": sparse_classification, "rounded": rounded, "with_gaps": with_gaps,
    "stored_regression": stored_regression, "outputs": outputs, "rates": rates, "curve": curve,
    "classification": classification, "regression": regression, "blobs": blobs, "nonnegative": nonnegative,
    "text": text, "sparse": sparse, "holes": holes, "categories": categories, "counts": counts,
    "np": np, "sklearn": sklearn, "kernels": kernels, "RBF": kernels.RBF,
    "stored": stored, "unlabelled": unlabelled, "csr_matrix": csr_matrix,
}  # fmt: skip

#: Rows whose data was changed, by what their note says: from the row and the names above to X and y.
NOTED: dict[str, Any] = {
    "y = |y| / 100 + 0.1": lambda row, space: (
        lambda X, y: (X, np.abs(y) / 100 + 0.1))(*eval(row["data"], space)),
    "y = X[:, 0] > mean of X[:, 0]": lambda row, space: (
        lambda X, _: (X, (X[:, 0] > X[:, 0].mean()).astype(int)))(*eval(row["data"], space)),
    "floor of nonnegative(600, 16), first 60 rows": lambda row, space: (np.floor(nonnegative(600, 16)[0])[:60], None),
    "first column of regression(n, f) as one-dimensional X": lambda row, space: (
        lambda X, y: (X[:, 0], y))(*regression(row["n"], 16)),
}  # fmt: skip
