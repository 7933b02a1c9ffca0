"""Runs of all ranks of a job as one: totals, the least and the most that a rank did, what was done more than once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any, Protocol

from bitwatt.ranks.arrivals import Arrivals
from bitwatt.ranks.identity import is_alive
from bitwatt.ranks.shares import is_added, is_after_reducing
from bitwatt.ranks.silence import UNDER_WAY as UNDER_WAY
from bitwatt.ranks.silence import is_silent
from bitwatt.records import Rank, members

Amounts = tuple[int, int]  # FLOPs, BOPs


class Kept(Protocol):
    """A run's file as its first line tells it: a store.Header."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def started(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def command(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def summary(self) -> Mapping[str, Any]: ...
    @property
    def rank(self) -> Rank | None: ...


@dataclass(frozen=True)
class Part:
    """One rank's share of a job."""

    kept: Kept
    rank: Rank
    shares: Mapping[str, Any]
    is_lost: bool = False  # its file was never closed, and the process is gone; on another machine, silent

    @property
    def number(self) -> int:
        return self.rank.rank

    @cached_property
    def phases(self) -> dict[str, Amounts]:
        return {phase: (int(n[0]), int(n[1])) for phase, n in self.shares.get("phases", {}).items()}

    @cached_property
    def total(self) -> Amounts:
        return sum(n[0] for n in self.phases.values()), sum(n[1] for n in self.phases.values())

    @property
    def is_known(self) -> bool:
        """Whether anything is known of its work: one that was lost may not have written a word."""
        return bool(self.phases) or not self.is_lost

    @cached_property
    def arrivals(self) -> Arrivals | None:
        return Arrivals.unpacked(self.rank.arrivals)

    @property
    def waited(self) -> float:
        """Seconds spent in messages and waiting for them: on a GPU those that nothing else overlapped."""
        if self.rank.clock != "host":
            return self.arrivals.wait if self.arrivals is not None else 0.0
        return sum(self.rank.comm_seconds.values())


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the middle and the most among ranks, with the ranks' numbers."""

    least: tuple[int, float]
    middle: float
    most: tuple[int, float]

    @classmethod
    def of(cls, values: Mapping[int, float]) -> Spread:
        least, most = (choose(values, key=lambda rank: (values[rank], rank)) for choose in (min, max))
        return cls((least, values[least]), median(values.values()), (most, values[most]))


@dataclass(frozen=True, slots=True)
class Work:
    """FLOPs of one phase: of all ranks, how much of it is repeated, what was added because there are several, and how
    it spreads."""

    total: Amounts
    repeated: Amounts
    spread: Spread
    added: Amounts = (0, 0)

    @property
    def once(self) -> Amounts:
        """What one process would do alone."""
        flops, bops = (self.total[i] - self.repeated[i] - self.added[i] for i in (0, 1))
        return flops, bops


@dataclass(frozen=True, slots=True)
class Link:
    """What went over one process group, or between two ranks."""

    kind: str
    ranks: str
    calls: int
    bytes: int


@dataclass(frozen=True)
class Joined:
    """A job: its ranks in order, and everything that can be said of them together."""

    parts: Sequence[Part]
    world: int
    notes: list[str] = field(default_factory=list)

    @property
    def first(self) -> Part:
        return self.parts[0]

    @property
    def name(self) -> str:
        return self.first.kept.name

    @property
    def job(self) -> str:
        return self.first.rank.job

    @cached_property
    def lost(self) -> list[Part]:
        return [part for part in self.parts if part.is_lost]

    @cached_property
    def known(self) -> list[Part]:
        """Ranks whose work is known, were it in part."""
        return [part for part in self.parts if part.is_known] or list(self.parts)

    @cached_property
    def absent(self) -> list[int]:
        """Ranks of which there is no file."""
        there = {part.number for part in self.parts}
        return [rank for rank in range(self.world) if rank not in there]

    @cached_property
    def seconds(self) -> float:
        return max(part.kept.seconds for part in self.parts)

    @cached_property
    def axes(self) -> dict[str, tuple[int, str]]:
        """Kind of parallelism -> over how many ranks, and what said so; `data` over the product of its axes."""
        found: dict[str, dict[str, tuple[int, str]]] = {}
        for part in self.parts:
            mine: dict[str, dict[str, tuple[int, str]]] = {}
            for axis in part.rank.axes:
                mine.setdefault(axis.kind, {})[axis.ranks] = (len(members(axis.ranks)), axis.source)
            for kind, ways in mine.items():
                if len(ways) >= len(found.get(kind, {})):
                    found[kind] = ways
        return {kind: (_product(ways.values()), next(iter(ways.values()))[1]) for kind, ways in found.items()}

    @cached_property
    def pattern(self) -> str:
        """data 4 (DistributedDataParallel) x tensor 2 (DTensor)."""
        return " x ".join(f"{kind} {ways} ({source})" for kind, (ways, source) in self.axes.items())

    @cached_property
    def nodes(self) -> dict[str, list[int]]:
        """Machine -> its ranks."""
        found: dict[str, list[int]] = {}
        for part in self.parts:
            found.setdefault(part.rank.machine or part.rank.node, []).append(part.number)
        return found

    def once_per_node(self, quantity: Callable[[Part], float]) -> float:
        """A quantity of the machine, such as its energy, that every rank on it reads: the largest reading of each."""
        by_rank = {part.number: quantity(part) for part in self.parts}
        return sum(max(by_rank[rank] for rank in ranks) for ranks in self.nodes.values())

    @cached_property
    def phases(self) -> dict[str, Work]:
        names = dict.fromkeys(phase for part in self.parts for phase in part.phases)
        return {phase: self._phase(phase) for phase in names}

    @cached_property
    def total(self) -> Work:
        works = list(self.phases.values())
        spread = Spread.of({part.number: part.total[0] for part in self.known})
        total, repeated, added = (
            (sum(flops for flops, _ in amounts), sum(bops for _, bops in amounts))
            for amounts in zip(*((work.total, work.repeated, work.added) for work in works), strict=True)
        ) if works else ((0, 0),) * 3  # fmt: skip
        return Work(total, repeated, spread, added)

    def _phase(self, phase: str) -> Work:
        amounts = {part.number: part.phases.get(phase, (0, 0)) for part in self.known}
        total = sum(n[0] for n in amounts.values()), sum(n[1] for n in amounts.values())
        spread = Spread.of({rank: n[0] for rank, n in amounts.items()})
        if self.axes and is_added(phase):
            return Work(total, (0, 0), spread, total)
        return Work(total, self._repeated(phase), spread)

    def _repeated(self, phase: str) -> Amounts:
        flops = bops = 0
        for group in self._alike(phase):
            one, two = _repeated([part.shares.get("shared", {}).get(phase, {}) for part in group])
            flops, bops = flops + one, bops + two
        return flops, bops

    def _alike(self, phase: str) -> Iterable[list[Part]]:
        """Groups of ranks that may be doing the same work on the same data."""
        axes = {axis for part in self.parts for axis in part.rank.axes}
        if not axes or is_after_reducing(phase):
            return [list(self.parts)]
        groups = {axis.ranks for axis in axes if axis.kind == "tensor"}
        by_rank = {part.number: part for part in self.parts}
        return [[by_rank[rank] for rank in members(ranks) if rank in by_rank] for ranks in groups]

    @cached_property
    def links(self) -> list[Link]:
        """Messages by kind and by who exchanged them, most bytes first."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for part in self.parts:
            for kind, group, peer, calls, sent in part.shares.get("messages", ()):
                ranks = part.rank.groups.get(group, "")
                if peer >= 0 and kind in ("send", "receive"):
                    if kind == "receive":
                        continue  # counted where it was sent
                    ranks = f"{part.number} to {members(ranks)[peer] if ranks else peer}"
                known = found.get((kind, ranks), (0, 0))
                found[kind, ranks] = (known[0] + calls, known[1] + sent)
        links = [Link(kind, ranks, *amounts) for (kind, ranks), amounts in found.items()]
        return sorted(links, key=lambda link: (-link.bytes, link.kind, link.ranks))

    @property
    def overlap(self) -> float | None:
        """Of the time that gradients took to add up, the share in which backward went on, as DDP itself timed it."""
        return _middle(part.rank.overlap for part in self.parts)

    @cached_property
    def comm_share(self) -> float | None:
        """Of all ranks' time, the part inside messages."""
        seconds = sum(part.kept.seconds for part in self.parts)
        return sum(part.waited for part in self.parts) / seconds if seconds else None


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def join(kept: Iterable[Kept], shares_of: Callable[[Kept], Mapping[str, Any]], again: Callable[[Kept], Kept]) -> Joined:
    """The runs of one job as one. `shares_of` reads the shares of a file that was never closed; `again` reads a first
    line anew."""
    newest: dict[int, Kept] = {}
    for one in sorted(kept, key=lambda one: (one.status != UNDER_WAY, one.started)):
        if one.rank is not None:
            newest[one.rank.rank] = one
    if not newest:
        raise ValueError("there is no rank to join")
    parts = []
    for rank in sorted(newest):
        one, is_lost = _settled(newest[rank], again)
        assert one.rank is not None
        parts.append(Part(one, one.rank, one.summary.get("ranks") or shares_of(one), is_lost))
    return Joined(parts, parts[0].rank.world or len(parts))  # workers that come and go have no number agreed on


def _settled(one: Kept, again: Callable[[Kept], Kept]) -> tuple[Kept, bool]:
    """And whether its rank was lost. Who is gone may have closed the file after it was read: then it is read again."""
    if one.status != UNDER_WAY or one.rank is None:
        return one, False
    alive = is_alive(one.rank)
    if alive or (alive is None and not is_silent(one)):
        return one, False
    one = again(one)
    return one, one.status == UNDER_WAY


def jobs(kept: Iterable[Kept]) -> dict[tuple[str, str], list[Kept]]:
    """The files that belong together, by job and name; runs of a single process are left out."""
    found: dict[tuple[str, str], list[Kept]] = {}
    for one in kept:
        if one.rank is not None:
            found.setdefault((one.rank.job, one.name), []).append(one)
    return found


def _repeated(tables: Sequence[Mapping[str, Sequence[int]]]) -> Amounts:
    """Of calls that several ranks made on the same contents, all but the largest."""
    flops = bops = 0
    unsure: dict[str, list[Sequence[int]]] = {}
    sizes: dict[str, list[int]] = {}  # size -> FLOPs that are repeated, and that are not
    known: dict[str, list[Sequence[int]]] = {}
    for table in tables:
        for name, amounts in table.items():
            (unsure if name[4] == "?" else known).setdefault(name, []).append(amounts)
    for name, rows in known.items():
        extra, extra_bops = _all_but_largest(rows)
        flops, bops = flops + extra, bops + extra_bops
        tally = sizes.setdefault(name[:4], [0, 0])
        tally[len(rows) == 1] += sum(row[0] for row in rows)
    whole = [sum(tally[i] for tally in sizes.values()) for i in (0, 1)]
    for name, rows in unsure.items():
        repeated, apart = sizes.get(name[:4], whole)
        if repeated > apart:
            extra, extra_bops = _all_but_largest(rows)
            flops, bops = flops + extra, bops + extra_bops
    return flops, bops


def _all_but_largest(rows: Sequence[Sequence[int]]) -> Amounts:
    flops, bops = ([row[i] for row in rows] for i in (0, 1))
    return sum(flops) - max(flops), sum(bops) - max(bops)


def _product(ways: Iterable[tuple[int, str]]) -> int:
    product = 1
    for size, _ in ways:
        product *= size
    return product
