"""The sides of a comparison: one run, or several that repeat each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from bitwatt.fingerprint import fingerprint
from bitwatt.records import Run


@dataclass(frozen=True, eq=False)
class Side:
    """What stands in one column. Counts are those of its first run, times and joules of all of them."""

    label: str  # A, B, C, ...
    runs: tuple[Run, ...]

    @property
    def run(self) -> Run:
        return self.runs[0]

    @property
    def name(self) -> str:
        return self.run.name or self.run.id

    @property
    def told(self) -> str:
        """In a line: name, id, how many."""
        many = f" and {len(self.runs) - 1} more like it" if len(self.runs) > 1 else ""
        ended = "" if self.run.status == "ok" else f" ({self.run.status})"
        return f"{self.name}{ended} · {self.run.id}{many}"


def sides(groups: Iterable[Sequence[Run]]) -> tuple[Side, ...]:
    return tuple(Side(_label(i), tuple(group)) for i, group in enumerate(groups))


def _label(i: int) -> str:
    """A to Z, then AA, AB, ..."""
    rest, letter = divmod(i, len(ascii_uppercase))
    return (_label(rest - 1) if rest else "") + ascii_uppercase[letter]


def repetitions(runs: Iterable[Run]) -> list[list[Run]]:
    """Runs that repeat each other stand together: equal name, matrix work, machine with its versions, and code."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(identity(run.name, fingerprint(run).digest, run.machine.facts, run.about.git), []).append(run)
    return list(groups.values())


def identity(name: str, digest: str, machine: Any, git: Any) -> tuple[Any, ...]:
    """Equal for repetitions. A driver's or library's new version, or another commit, may change what is measured. A
    dirty tree's commit says little, but it is all there is."""
    return name, digest, tuple(sorted(machine.items())), git.get("commit", ""), git.get("dirty", "")
