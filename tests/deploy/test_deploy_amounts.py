"""One of a thing is not several."""

from __future__ import annotations

import pytest

from bitwatt.deploy.amounts import amount
from bitwatt.deploy.records import Call
from bitwatt.deploy.statistics import steady


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 processes"), (1, "1 process"), (2, "2 processes"), (1000, "1,000 processes")]
)
def test_a_number_goes_with_its_noun(count: int, told: str) -> None:
    assert amount(count, "process", "processes") == told


@pytest.mark.parametrize(("threads", "told"), [(1, "with 1 thread was"), (2, "with 2 threads was")])
def test_threads_are_told_by_their_number(threads: int, told: str) -> None:
    """A time that halves with every block is never steady."""
    calls = [Call(0, block, 0, "slow", 8, threads, 0, 2 ** (40 - block), 1) for block in range(16)]
    (note,) = steady.marked(calls)[1]
    assert told in note
    assert note.endswith("in 1 of 1 process")
