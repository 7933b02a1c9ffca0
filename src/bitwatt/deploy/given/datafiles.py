"""Rows and targets out of files: .npz, .npy, .csv, .parquet, .pt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitwatt.errors import BitwattError

#: What arrays in a file are called by, best first. In lower case.
TEST = ("x_test", "test_x", "x_val", "x", "data", "inputs", "features")
TRAIN = ("x_train", "train_x", "x", "data", "inputs", "features")
TARGETS = ("y_test", "test_y", "y_val", "y", "target", "targets", "labels", "label", "class")


def read(path: Path, target: str | None = None, *, train: bool = False, trusted: bool = False) -> tuple[Any, Any]:
    """Rows and, where the file has them, targets."""
    if not path.is_file():
        raise BitwattError(f"there is no file {path}")
    kind = path.suffix.lower()
    readers = {".npz": _npz, ".npy": _npy, ".csv": _table, ".parquet": _table, ".pt": _tensors, ".pth": _tensors}
    if kind not in readers:
        raise BitwattError(
            f"{path.name}: rows are read from {', '.join(readers)}, not from {kind or 'a file without an ending'}"
        )
    try:
        rows, targets = readers[kind](path, target, train, trusted)
    except BitwattError:
        raise
    except Exception as error:  # whatever the readers of the formats raise on bytes that are not theirs
        raise BitwattError(f"{path.name} cannot be read: {_first(error)}") from error
    return rows, targets


def chosen(held: Mapping[str, Any], target: str | None, where: str, train: bool = False) -> tuple[Any, Any]:
    """Which of several arrays are rows and which targets, by their names."""
    lower = {name.lower(): name for name in held}
    if target is not None and target not in held:
        raise BitwattError(f"{where} has no {target!r}; it has {', '.join(held)}")
    rows = next((lower[name] for name in (TRAIN if train else TEST) if name in lower), None)
    if train and rows is None:
        rows = next((lower[name] for name in TEST if name in lower), None)
    marks = [name.replace("_test", "_train").replace("test_", "train_") for name in TARGETS] if train else TARGETS
    goal = target or next((lower[name] for name in marks if name in lower), None)
    if rows is None:
        others = [name for name in held if name != goal]
        if len(others) != 1:
            raise BitwattError(
                f"{where} has {', '.join(held)}: call the rows X and the targets y, so that they can be told apart"
            )
        rows = others[0]
    return held[rows], None if goal is None or goal == rows else held[goal]


def training(path: Path) -> Any | None:
    """Rows for training that lie in the same file as the others."""
    if path.suffix.lower() != ".npz":
        return None
    import numpy as np

    with np.load(path, allow_pickle=False) as held:
        name = next((name for name in held.files if name.lower() in ("x_train", "train_x")), None)
        try:
            return None if name is None else held[name]
        except ValueError:  # Python objects, which need trust: nobody asked for these rows
            return None


def _npz(path: Path, target: str | None, train: bool, trusted: bool) -> tuple[Any, Any]:
    import numpy as np

    with np.load(path, allow_pickle=trusted) as held:
        names = _Lazy(held, path.name)
        return chosen(names, target, path.name, train)


class _Lazy(Mapping[str, Any]):
    """Arrays that are read when they are asked for."""

    def __init__(self, held: Any, where: str) -> None:
        self.held, self.where = held, where

    def __getitem__(self, name: str) -> Any:
        try:
            return self.held[name]
        except ValueError as error:
            raise _objects(f"{name} in {self.where}") from error

    def __iter__(self) -> Any:
        return iter(self.held.files)

    def __len__(self) -> int:
        return len(self.held.files)


def _objects(what: str) -> BitwattError:
    said = f"{what} holds Python objects, and loading them runs code"
    return BitwattError(f"{said}: save numbers or texts, use .csv or .parquet, or --trust")


def _npy(path: Path, target: str | None, train: bool, trusted: bool) -> tuple[Any, Any]:
    import numpy as np

    try:
        return np.load(path, allow_pickle=trusted), None
    except ValueError as error:
        raise (_objects(path.name) if "allow_pickle" in str(error) else error) from error


def _table(path: Path, target: str | None, train: bool, trusted: bool) -> tuple[Any, Any]:
    import pandas

    frame = pandas.read_parquet(path) if path.suffix.lower() == ".parquet" else pandas.read_csv(path)
    if target is None or (train and target not in frame.columns):
        return frame, None
    if target not in frame.columns:
        raise BitwattError(f"{path.name} has no column {target!r}; it has {', '.join(map(str, frame.columns))}")
    return frame.drop(columns=target), frame[target].to_numpy()


def _tensors(path: Path, target: str | None, train: bool, trusted: bool) -> tuple[Any, Any]:
    import torch

    held = torch.load(path, weights_only=not trusted)
    if isinstance(held, dict):
        return chosen({str(name): value for name, value in held.items()}, target, path.name, train)
    if isinstance(held, list | tuple):
        if len(held) == 2 and torch.is_tensor(held[1]) and held[1].ndim == 1:
            return held[0], held[1]
        return tuple(held), None
    return held, None


def _first(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}".rstrip(": ")
