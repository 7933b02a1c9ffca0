"""What a backend hands to a session that closes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bitwatt.context import Token
from bitwatt.ledger import Ledger
from bitwatt.records import Layer, Op, Rank, Replay


@dataclass(frozen=True)
class Harvest:
    """Counts, host seconds by phase, layers by scope, and remarks for the reader."""

    ledger: Ledger
    seconds: Mapping[str, float] = field(default_factory=dict)
    layers: Mapping[str, Layer] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rank: Rank | None = None  # which rank of a job the framework says this process is
    contents: Mapping[Op, int] = field(default_factory=dict)  # what an op read when first called, as a number
    replay: Replay | None = None
    #: Of steps that were known and counted again: what was expected, and what was found.
    deviations: tuple[tuple[Ledger, Ledger], ...] = ()
    #: Of stretches that vary: the variance of what was credited, in variances of a sample, and samples.
    samples: tuple[tuple[int, tuple[Ledger, ...]], ...] = ()
    device_seconds: Mapping[str, float] = field(default_factory=dict)  # by phase, as a GPU's own clock tells
    device_memory: Mapping[str, int] = field(default_factory=dict)  # by phase: bytes allocated at most, where seen
    device_peak: int | None = None  # of all the session


class Folder(Protocol):
    """How a session wants too many distinct calls put together (`Token.folder`, given the layers known by then)."""

    def fold(self, phase: str, scope: str, calls: Iterable[tuple[Op, int]]) -> list[Op]:
        """One op, or a few, for all calls of one name in one place."""

    def ledger(self, ledger: Ledger, limit: int | None = None) -> Ledger:
        """The ledger with ops of many sizes folded if it is longer than `limit`."""


class Watch(Protocol):
    """A framework being watched, from the first session that opens to the last that closes."""

    notes: dict[str, None]
    has_workers: bool  # processes were started that send back what they count, or count for themselves

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def arrive(self) -> None:
        """A session opens on the current thread."""

    def begin(self) -> None:
        """It is open: what that took is none of it."""

    def leave(self) -> None:
        """One closes on it."""

    def collect(self, token: Token) -> Harvest: ...
    def forget(self) -> None: ...
