"""Plans that this machine cannot carry out are refused before anything is measured."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.dummy import DummyClassifier

from bitwatt.deploy import affordable, compare
from bitwatt.deploy.given import loading
from bitwatt.deploy.measuring.parts import Parts
from bitwatt.deploy.records import Plan
from bitwatt.errors import BitwattError

X = np.random.default_rng(0).normal(size=(50, 4))
Y = (X[:, 0] > 0).astype(int)


class Slow(DummyClassifier):  # type: ignore[misc, unused-ignore]
    def predict_proba(self, X: Any) -> Any:
        time.sleep(0.02)
        return super().predict_proba(X)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"batches": (10**11,)}, "--batch 100000000000: 8 different batches .* would take .*, and .* are free here"),
        ({"threads": (100_000,)}, "--threads 100000: there are"),
        ({"batches": tuple(range(1, 80))}, "79 settings; up to 64"),
        ({"rates": (1e7,)}, "rate"),
        ({"callers": (100_000,)}, "callers: 100000 is not a number above 0 and up to 1024"),
        ({"slo": "p99<soon"}, "p99<soon"),
    ],
)
def test_what_is_absurd_is_refused(asked: dict[str, Any], said: str, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(BitwattError, match=said):
        compare(DummyClassifier().fit(X, Y), X, Y, folder=tmp_path, **asked)
    assert time.monotonic() - began < 120
    assert not list(tmp_path.iterdir())


def test_what_would_take_days_is_refused() -> None:
    case = loading.case(Slow().fit(X, Y), X, Y)
    with pytest.raises(BitwattError, match="--batch 10000000: at the speed of the first 50 rows"):
        affordable.checked(case, Plan(batches=(10_000_000,)))


def test_what_can_be_done_is_noted_where_it_is_odd() -> None:
    case = loading.case(DummyClassifier().fit(X, Y), X, Y)
    assert affordable.checked(case, Plan(batches=(1, 50))) == ()
    assert affordable.checked(case, Plan(batches=(51,))) == (
        "batches of more than the 50 rows given hold rows several times",
    )


def test_rows_have_sizes_in_every_form() -> None:
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": ["x" * 1000, "y" * 1000]})
    assert affordable.row_bytes(X) == 32
    assert affordable.row_bytes((X, X[:, :1])) == 40
    assert affordable.row_bytes(frame) > 1000
    assert affordable.row_bytes(["x" * 100] * 3) == 150


def test_what_is_left_is_reckoned_from_what_was_slower_than_guessed() -> None:
    now, told = [0.0], list[tuple[float, float]]()
    parts = Parts({"a": 90.0, "b": 100.0}, lambda done, of, _: told.append((done, of)), lambda: now[0])
    parts.begin("a")
    assert told[-1] == (0.0, 190.0)
    now[0] = 100.0
    parts.tell(0.5, 1.0, "half of it")
    assert told[-1] == (100.0, 100.0 + 100.0 + 100.0)
    now[0] = 190.0
    parts.begin("b")
    assert told[-1] == (190.0, 190.0 + 2 * 100.0)  # twice as slow as guessed, with 10 s believed
    parts.tell(1.0, 1.0, "done")
    assert told[-1] == (190.0, 190.0)
