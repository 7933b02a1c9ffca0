"""What a report says, as plain data: one view of a run that every format renders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from bitwatt.config import Settings, settings
from bitwatt.errors import SettingsError
from bitwatt.fingerprint import Fingerprint, fingerprint
from bitwatt.inherited import inherited
from bitwatt.pricing import MISSING, CostModel, Coverage, Entry, Totals, entries_of, find_model, totals
from bitwatt.records import Run
from bitwatt.reports.devices import Devices
from bitwatt.reports.scopes import folded
from bitwatt.reports.weights import WeightGroup, are_told_apart, weight_groups

if TYPE_CHECKING:
    from bitwatt.profiles import Profile
    from bitwatt.reports.bounds import Bounds
    from bitwatt.reports.energy import EnergyView

#: The phases bitwatt finds, in the order a training step goes through them. A user's own come after.
PHASES = ("preprocess", "forward", "loss", "backward", "recompute", "optimizer", "inference", "other")
#: What every report shows, whichever model the shares are taken of.
STANDARD = ("flops", "bops", "macs")
#: What a report of quantised layers shows side by side: what values carry, and what the machine did.
BOTH = ("bops", "bops:executed", "bops:paper", "bops:product", "bytes", "bytes:effective")
NO_LAYER = "(no layer)"


@dataclass(frozen=True, slots=True)
class Line:
    """One phase, layer or op: how much of everything. An amount is None where the model cannot speak of the work."""

    name: str
    about: str = ""
    calls: int = 0
    amounts: Mapping[str, int | None] = field(default_factory=dict)
    bytes_read: int | None = None
    bytes_written: int | None = None
    text_steps: int = 0
    seconds: float | None = None
    device_seconds: float | None = None
    by_phase: Mapping[str, int] = field(default_factory=dict)

    @property
    def bytes_moved(self) -> int | None:
        return None if self.bytes_read is None or self.bytes_written is None else self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float | None:
        flops, moved = self.amounts.get("flops"), self.bytes_moved
        return flops / moved if flops is not None and moved else None

    def during(self, *phases: str) -> int:
        """The amount, under the report's model, in phases of which any step has one of these names."""
        return sum(n for path, n in self.by_phase.items() if not set(phases).isdisjoint(path.split("/")))


@dataclass(frozen=True, slots=True)
class Missing:
    """An op that no rule covers, or whose rule failed."""

    op: str
    calls: int
    reason: str


class View:
    """A run seen through one cost model."""

    def __init__(self, run: Run, model: CostModel | str = "flops", settings: Settings | None = None) -> None:
        self.run, self.model, self._settings = run, find_model(model), settings
        self.training: Run | None = None  # what the model that is served took to train
        self.against: tuple[Run, ...] = ()  # of the same task: another run, or several for their median
        self.beside: Profile | None = None  # a trace of another tool
        self.entries = entries_of(run.ledger, run.layers)
        self.priced: dict[str, Totals] = {
            name: totals(run, name) for name in dict.fromkeys((*STANDARD, self.model.name))
        }

    @property
    def coverage(self) -> Coverage:
        return self.priced[self.model.name].coverage

    @property
    def is_estimate(self) -> bool:
        """Nothing was run: its seconds are those that counting took."""
        return self.run.meter is None and self.run.command.startswith("estimate(")

    @property
    def trust(self) -> str:
        """How far the numbers go: bad with ops missing, fair with some estimated, layers by dtype only or no op seen at
        all, else good."""
        coverage = self.coverage
        doubtful = coverage.estimated or coverage.dtype_only or not self.entries
        return "bad" if coverage.missing else "fair" if doubtful else "good"

    @cached_property
    def energy(self) -> EnergyView | None:
        """What the run cost here; None where nothing was metered."""
        if self.run.meter is None:
            return None
        from bitwatt.reports.energy import EnergyView

        return EnergyView(self, self.run.meter, self.settings)

    @cached_property
    def devices(self) -> Devices:
        """Where its work was done."""
        return Devices(self.run, self.settings)

    @cached_property
    def bounds(self) -> Bounds | None:
        """What holds its phases up; None where none was timed."""
        from bitwatt.reports.bounds import bounds

        return bounds(self)

    @cached_property
    def settings(self) -> Settings:
        mine = self._settings if self._settings is not None else configured()
        return mine if self.run.meter is None else inherited(mine, self.run.meter.settings)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        return fingerprint(self.run)

    @cached_property
    def missing(self) -> list[Missing]:
        found: dict[tuple[str, str], int] = {}
        for entry in self.entries:
            if entry.status == MISSING:
                key = (entry.op.name, entry.reason)
                found[key] = found.get(key, 0) + entry.calls
        ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return [Missing(name, calls, reason) for (name, reason), calls in ordered]

    @cached_property
    def total(self) -> Line:
        on_device = sum(self.run.device_seconds.values()) if self.run.device_seconds else None
        return replace(merged("total", self.phases), seconds=self.run.seconds, device_seconds=on_device)

    @cached_property
    def phases(self) -> list[Line]:
        seconds, on_device = self.run.phase_seconds, self.run.device_seconds
        lines = self._lines("phase", lambda entry: entry.row.phase)
        # a span in which nothing was called took its time all the same
        silent = Line("", amounts=dict.fromkeys(self.priced, 0), bytes_read=0, bytes_written=0)
        lines |= {name: silent for name in seconds if name not in lines}
        seen = {step: i for i, step in enumerate(dict.fromkeys(step for name in lines for step in name.split("/")))}

        def place(path: str) -> list[tuple[int, int]]:
            return [(PHASES.index(s), 0) if s in PHASES else (len(PHASES), seen[s]) for s in path.split("/")]

        return [
            replace(lines[name], name=name or "other", seconds=seconds.get(name), device_seconds=on_device.get(name))
            for name in sorted(lines, key=place)
        ]

    @cached_property
    def scopes(self) -> list[Line]:
        """Every scope as recorded, costliest first."""
        return self._ranked(self._lines("scope", lambda entry: entry.row.scope).values())

    @cached_property
    def ops(self) -> list[Line]:
        families = {entry.op.name: entry.rule.family for entry in self.entries if entry.rule}
        lines = self._lines("op", lambda entry: entry.op.name)
        return self._ranked(replace(line, about=families.get(name, "")) for name, line in lines.items())

    @cached_property
    def precisions(self) -> list[tuple[str, int]]:
        sums = self.priced[self.model.name].by("precision")
        return sorted(((str(name), n) for name, n in sums.items() if n), key=lambda item: -item[1])

    @cached_property
    def is_quantised(self) -> bool:
        """Whether some layer's precision is more than its dtype."""
        return are_told_apart(self.run.layers.values())

    def phases_by(self, model: str) -> list[Line]:
        """Phases priced by another model alone."""
        sums = totals(self.run, model).by("phase")
        return [Line(str(name) or "other", amounts={model: n}) for name, n in sums.items()]

    @cached_property
    def weights(self) -> list[WeightGroup]:
        return weight_groups(self.run.layers, self.entries)

    @cached_property
    def unknown_layers(self) -> list[str]:
        """Why layers that look quantised are counted by their dtype, each reason once."""
        seen = {entry.row.scope for entry in self.entries}
        return list(
            dict.fromkeys(layer.unknown for scope, layer in self.run.layers.items() if layer.unknown and scope in seen)
        )

    def layers(self, limit: int) -> list[Line]:
        """The scopes, folded to about `limit` lines."""
        by_name = {line.name: line for line in self.scopes}
        groups = folded({name: self.amount(line) or 0 for name, line in by_name.items()}, limit)
        lines = [
            replace(
                merged(group.name or NO_LAYER, (by_name[".".join(member)] for member in group.members)),
                about=self._classes(group.places),
            )
            for group in groups
        ]
        return top(self._ranked(lines), limit)

    def amount(self, line: Line) -> int | None:
        return line.amounts.get(self.model.name)

    def share(self, line: Line) -> float | None:
        amount, whole = self.amount(line), self.amount(self.total)
        return None if amount is None or not whole else amount / whole

    def _ranked(self, lines: Iterable[Line]) -> list[Line]:
        return sorted(lines, key=lambda line: (-(self.amount(line) or 0), -(line.bytes_moved or 0), line.name))

    def _classes(self, places: list[str]) -> str:
        kinds = {self.run.layers[place].kind if place in self.run.layers else "" for place in places}
        kind = kinds.pop() if len(kinds) == 1 else "mixed"
        return kind if len(places) == 1 else f"{len(places)} × {kind or 'layers'}"

    def _lines(self, key: str, name_of: Callable[[Entry], str]) -> dict[str, Line]:
        amounts = {model: cast(dict[str, int], priced.by(key)) for model, priced in self.priced.items()}
        by_phase: dict[str, dict[str, int]] = {}
        for (name, phase), n in cast(dict[tuple[str, str], int], self.priced[self.model.name].by(key, "phase")).items():
            by_phase.setdefault(name, {})[phase] = n
        groups: dict[str, list[Entry]] = {}
        for entry in self.entries:
            groups.setdefault(name_of(entry), []).append(entry)
        return {
            name: Line(
                name,
                calls=sum(entry.calls for entry in entries),
                amounts={model: sums.get(name) for model, sums in amounts.items()},
                bytes_read=_sum(_times(entry, "bytes_read") for entry in entries),
                bytes_written=_sum(_times(entry, "bytes_written") for entry in entries),
                text_steps=sum(map(_text, entries)),
                by_phase=by_phase.get(name, {}),
            )
            for name, entries in groups.items()
        }


def configured() -> Settings:
    """As the folder says. A file that is wrong was told of when the run was measured, or is by other verbs."""
    try:
        return settings()
    except (SettingsError, OSError):  # the latter where the folder itself is gone
        return Settings()


def merged(name: str, lines: Iterable[Line]) -> Line:
    """Several lines as one."""
    lines = list(lines)
    by_phase: dict[str, int] = {}
    for line in lines:
        for phase, n in line.by_phase.items():
            by_phase[phase] = by_phase.get(phase, 0) + n
    models = dict.fromkeys(model for line in lines for model in line.amounts)
    return Line(
        name,
        calls=sum(line.calls for line in lines),
        amounts={model: _sum(line.amounts.get(model) for line in lines) for model in models},
        bytes_read=_sum(line.bytes_read for line in lines),
        bytes_written=_sum(line.bytes_written for line in lines),
        text_steps=sum(line.text_steps for line in lines),
        by_phase=by_phase,
    )


def top(lines: list[Line], limit: int) -> list[Line]:
    """The first lines, and the rest as one."""
    if len(lines) <= limit:
        return lines
    return [*lines[:limit], merged(f"… {len(lines) - limit} more", lines[limit:])]


def _sum(amounts: Iterable[int | None]) -> int | None:
    """None only where nothing is known."""
    known = [n for n in amounts if n is not None]
    return sum(known) if known else None


def _times(entry: Entry, what: str) -> int | None:
    amount: int | None = getattr(entry.work, what, None)
    return None if amount is None else amount * entry.row.calls


def _text(entry: Entry) -> int:
    ops = entry.work.ops if entry.work else ()
    return entry.row.calls * sum(n for kind, _, _, n in ops if kind == "text")
