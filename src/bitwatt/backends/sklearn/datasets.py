"""Data sets of the boosters (DMatrix, Dataset, Pool): trainings see bins alone, so what a set is made of is looked at
when it is made. Of sets that were made before the session the library tells how many bins it has made."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bitwatt.backends.sklearn import specs
from bitwatt.backends.sklearn.frames import TOP
from bitwatt.backends.sklearn.standins import is_at_work, put_back, standing_in
from bitwatt.context import current
from bitwatt.records import TensorSpec

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

#: Library -> its classes of data sets.
CLASSES = {"xgboost": ("DMatrix", "QuantileDMatrix"), "lightgbm": ("Dataset",), "catboost": ("Pool",)}
#: With less than this share of its values a set was sparse, and not one with gaps.
_SPARSE = 0.5
#: By identity, as a set may equal others: itself, weakly, what it was made of, and what the columns are like.
_made: dict[int, tuple[Any, TensorSpec, tuple[Any, ...]]] = {}

#: Facts of a training, and what goes to its probes.
Told = tuple[dict[str, Any], tuple[tuple[Any, ...], ...]]


def install(watch: EstimatorWatch, kind: type) -> Callable[[], None]:
    """Look at the data of sets of this kind as they are made."""
    original = kind.__dict__["__init__"]
    if is_at_work(original):
        return lambda: None

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        above = TOP.get()
        if watch.on and (above is None or not above.silent) and current() is not None:
            try:
                _remember(self, args[0] if args else kwargs.get("data"))
            except Exception as error:  # the program comes first
                watch.lost(f"{kind.__name__}.__init__", error)

    ours = standing_in(original, init, kind, "__init__", watch)
    kind.__init__ = ours  # type: ignore[misc]
    return functools.partial(put_back, kind, "__init__", ours, original)


def _remember(data_set: Any, data: Any) -> None:
    from bitwatt.backends.sklearn.readers.trees import columns

    spec = specs.told(data)
    if type(spec) is TensorSpec and len(spec.shape) == 2:
        number = id(data_set)
        _made[number] = weakref.ref(data_set, lambda _: _made.pop(number, None)), spec, columns(data)


def among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The first data set among arguments, which every library calls differently."""
    for value in (*args, *kwargs.values()):
        if any(hasattr(value, rows) and hasattr(value, columns) for rows, columns in _SIZES):
            return value
    return None


def told(data_set: Any) -> Told:
    """What a training with it needs to know of it."""
    facts: dict[str, Any] = {}
    for rows, columns in _SIZES:
        if hasattr(data_set, rows) and hasattr(data_set, columns):
            facts = {"rows": int(getattr(data_set, rows)()), "columns": int(getattr(data_set, columns)())}
            break
    known = _made.get(id(data_set))
    if known is not None and known[0]() is data_set:
        return facts | {"X": known[1]}, (("columns", *known[2]),) if known[2] else ()
    bins = _bins(data_set, facts.get("columns", 0))
    if bins:
        facts["data_bins"] = bins
    size = facts.get("rows", 0) * facts.get("columns", 0)
    stored = int(data_set.num_nonmissing()) if hasattr(data_set, "num_nonmissing") else size
    if stored < _SPARSE * size:
        facts["X"] = TensorSpec((facts["rows"], facts["columns"]), "float32", stored)
    elif stored < size:  # in which columns nobody tells
        return facts, (("columns", 1000, round(1000 * (1 - stored / size))),)
    return facts, ()


_SIZES = (("num_row", "num_col"), ("num_data", "num_feature"))


def _bins(data_set: Any, columns: int) -> float:
    """Bins of a column in the mean; 0 where the library has made none."""
    if hasattr(data_set, "feature_num_bin"):
        return float(sum(data_set.feature_num_bin(column) for column in range(columns))) / max(columns, 1)
    if hasattr(data_set, "get_quantile_cut"):
        try:
            return len(data_set.get_quantile_cut()[1]) / max(columns, 1)
        except ValueError:  # XGBoostError: no histograms were made of it
            return 0.0
    return 0.0
