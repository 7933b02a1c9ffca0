"""Baselines: for each project and kind of machine, the run that others are held against, with what it ran on and what
one epoch of it cost. A small file in the store, `baselines/<project>-<machine>.json`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from bitwatt.config import project
from bitwatt.errors import BitwattError, RunFileError
from bitwatt.impact.energy import used
from bitwatt.pricing import totals
from bitwatt.records import Run
from bitwatt.store.places import Place, Store, place
from bitwatt.store.runfile import Header

FORMAT, VERSION = "bitwatt.baseline", 1
_FOLDER, _SUFFIX = "baselines", ".json"
#: Facts that make a kind of machine: runs on two of the same kind may be compared.
HARDWARE = ("cpu", "cores", "memory", "gpu")
#: Facts that are no versions, beside those.
_PLACE = (*HARDWARE, "os", "kernel")
#: What programs call the number of epochs.
_EPOCHS = ("epochs", "num_epochs", "n_epochs", "max_epochs", "num_train_epochs")


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch cost, and how that is known. None is not known."""

    epochs: float
    how: str
    seconds: float | None = None
    flops: int | None = None
    bops: int | None = None
    energy_j: float | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """`summary` as in the run's header: a baseline stays useful when its run is gone."""

    project: str
    machine: str  # a short name of the hardware
    run: str  # its id
    name: str
    started: str
    set: str  # when
    seconds: float
    hardware: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    git: Mapping[str, str] = field(default_factory=dict)
    version: str = ""
    dataset: str = ""
    batch_size: int | None = None
    epoch: Epoch | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)


def machine_of(facts: Mapping[str, str]) -> str:
    """The same for machines of the same hardware."""
    told = json.dumps([facts.get(name, "") for name in HARDWARE])
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def put(run: Run, summary: Mapping[str, Any], *, store: Store = None, of: str | None = None) -> Baseline:
    """Make `run` the baseline of its project (by default that of the current folder) on machines like its own."""
    if run.status != "ok":
        raise BitwattError(f"run {run.id} is no baseline: its status is {run.status!r}")
    facts = run.machine.facts
    found = Baseline(
        project=of or project(),
        machine=machine_of(facts),
        run=run.id,
        name=run.name,
        started=run.started,
        set=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=run.seconds,
        hardware={name: facts[name] for name in HARDWARE if name in facts},
        versions={name: value for name, value in facts.items() if name not in _PLACE},
        git=run.about.git,
        version=run.about.version,
        dataset=run.about.dataset,
        batch_size=run.about.batch_size,
        epoch=epoch_of(run),
        summary={name: value for name, value in summary.items() if name not in ("ranks", "meter")},
    )
    there = place(store)
    try:
        content = {"format": FORMAT, "version": VERSION, "baseline": asdict(found)}
        there.write(_name(found.project, found.machine), json.dumps(content, indent=1).encode())
    except OSError as error:
        raise RunFileError(f"the baseline could not be kept in {there.root}: {error}") from error
    return found


def find(run: Run | Header | None = None, *, store: Store = None, of: str | None = None) -> Baseline | None:
    """The baseline that a run is to be held against: of its project, on hardware like its own. Without a run, for this
    machine."""
    there = place(store)
    name = _name(of or project(), machine_of(_facts(run)))
    try:
        return _read(there, name)
    except FileNotFoundError:
        return None


def known(store: Store = None, *, of: str | None = None) -> list[Baseline]:
    """All of a store, or those of one project; files that are none are left out."""
    there, found = place(store), []
    for file in there.files(_FOLDER, _SUFFIX):
        try:
            found.append(_read(there, f"{_FOLDER}/{file.name}"))
        except (RunFileError, FileNotFoundError):
            continue
    return sorted((one for one in found if of in (None, one.project)), key=lambda one: (one.project, one.machine))


def clear(run: Run | Header | None = None, *, store: Store = None, of: str | None = None) -> bool:
    """Forget the baseline that `find` finds; whether there was one."""
    return remove(_name(of or project(), machine_of(_facts(run))), store)


def remove(baseline: Baseline | str, store: Store = None) -> bool:
    name = _name(baseline.project, baseline.machine) if isinstance(baseline, Baseline) else baseline
    there = place(store)
    try:
        there.delete(name)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RunFileError(f"{there.where(name)} could not be removed: {error}") from error
    return True


def epoch_of(run: Run) -> Epoch | None:
    """From phases called epoch where there are some, else evenly from a parameter that tells their number."""
    flops, bops = totals(run, "flops"), totals(run, "bops")
    known = used(run.meter) if run.meter is not None else None
    whole = known is not None and known.known_s is None  # of a part of the time it compares with nothing
    energy = known.energy_j if known is not None and whole else None
    entries = dict(run.observed.phases) if run.observed is not None else {}
    phases = {name: entered for name, entered in entries.items() if re.match(r"epoch\b|epoch[ _-]?\d", name.lower())}
    outermost = {name: entered for name, entered in phases.items() if "/" not in name}
    if outermost:
        number = sum(entered for entered, _ in outermost.values())
        inside = [{str(k): v for k, v in one.by("phase").items()} for one in (flops, bops)]
        sums = [sum(n for phase, n in one.items() if phase.partition("/")[0] in outermost) for one in inside]
        drawn = [
            sum(joules for device, joules in share.energy_j.items() if device in known.devices)
            for phase, share in (run.meter.phases.items() if run.meter is not None else ())
            if energy is not None and known is not None and phase.partition("/")[0] in outermost
        ]
        return Epoch(
            number,
            f"the mean of {number} phases called epoch",
            sum(seconds for _, seconds in outermost.values()) / number,
            round(sums[0] / number),
            round(sums[1] / number),
            sum(drawn) / number if drawn else None,
        )
    for name in _EPOCHS:
        told = run.about.parameters.get(name)
        if isinstance(told, int | float) and not isinstance(told, bool) and told > 0:
            return Epoch(
                told,
                f"the run shared out evenly: {name} = {told:g}",
                run.seconds / told,
                round(flops.total / told),
                round(bops.total / told),
                None if energy is None else energy / told,
            )
    return None


def _facts(run: Run | Header | None) -> Mapping[str, str]:
    if run is None:
        from bitwatt.machine import describe

        return describe().facts
    return run.machine.facts if isinstance(run, Run) else run.machine


def _name(project: str, machine: str) -> str:
    """Projects are called whatever they like; their files are not."""
    plain = re.sub(r"[^0-9A-Za-z._-]+", "_", project).strip("._")[:60] or "project"
    if plain != project:
        plain += "-" + hashlib.sha256(project.encode()).hexdigest()[:6]
    return f"{_FOLDER}/{plain}-{machine}{_SUFFIX}"


def _read(there: Place, name: str) -> Baseline:
    where = there.where(name)
    try:
        raw = json.loads(there.read(name))
        if raw["format"] != FORMAT or raw["version"] != VERSION:
            raise ValueError("it is of another format or version")
        told = {one.name: raw["baseline"][one.name] for one in fields(Baseline) if one.name in raw["baseline"]}
        return Baseline(**told | {"epoch": Epoch(**told["epoch"]) if told.get("epoch") else None})
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFileError(f"{where} is no baseline that this bitwatt can read: {error}") from error
