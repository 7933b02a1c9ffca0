"""What a backend hands to a session that closes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bitwatt.context import Token
from bitwatt.ledger import Ledger
from bitwatt.records import Layer


@dataclass(frozen=True)
class Harvest:
    """Counts, host seconds by phase, layers by scope, and remarks for the reader."""

    ledger: Ledger
    seconds: Mapping[str, float] = field(default_factory=dict)
    layers: Mapping[str, Layer] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Watch(Protocol):
    """A framework being watched, from the first session that opens to the last that closes."""

    notes: dict[str, None]

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def arrive(self) -> None:
        """A session opens on the current thread."""

    def leave(self) -> None:
        """One closes on it."""

    def collect(self, token: Token) -> Harvest: ...
    def forget(self) -> None: ...
