"""Worth it? What a gain in quality costs in joules, bit-operations and money, and a rule for when that is much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from bitwatt.comparing.noisy import noisy
from bitwatt.comparing.quantities import WHOLE, Value, is_count, metric, unit_of, value
from bitwatt.comparing.sides import Side
from bitwatt.config import Settings
from bitwatt.errors import UnknownNameError
from bitwatt.readings import MODELLED

#: What a gain is held against, beside what the rule names.
COSTS = ("energy", "bops", "cost")


@dataclass(frozen=True, slots=True)
class Extra:
    """What one side takes more than the first, of one kind of cost. `per` is the gain for each unit of it."""

    name: str
    unit: str
    more: float | None  # negative where it takes less
    relative: float | None
    per: float | None  # None unless both rise, or both fall
    doubt: str = ""  # modelled, one run each
    told_apart: bool = True  # False where an interval leaves open which side takes more


@dataclass(frozen=True, slots=True)
class Worth:
    """One side against the first: the gain (positive is better), what it costs, and what the rule says of it."""

    label: str
    metric: str
    before: float
    after: float
    gain: float
    relative: float | None
    extras: tuple[Extra, ...]
    flags: tuple[str, ...] = ()
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Quality:
    """A metric on every side: the median of its runs."""

    name: str
    lower: bool
    values: tuple[float | None, ...]
    notes: tuple[str, ...] = field(default=())


def quality(sides: Sequence[Side], name: str, *, lower: bool) -> Quality:
    found = [[metric(run, name) for run in side.runs] for side in sides]
    values = tuple(_median(side) for side in found)
    if all(one is None for one in values):
        raise UnknownNameError(found[0][0].because)
    notes = [side[0].because for side, one in zip(found, values, strict=True) if one is None]
    many = [len([one for one in side if one.amount is not None]) for side in found]
    if max(many) > 1:
        notes.append(f"{name} is the median of {', '.join(map(str, many))} runs")
    return Quality(name, lower, values, tuple(notes))


def _median(values: Sequence[Value]) -> float | None:
    known = [one.amount for one in values if one.amount is not None]
    return float(median(known)) if known else None


def worth(sides: Sequence[Side], found: Quality, settings: Settings) -> list[Worth]:
    """Each side against the first, where both have the metric."""
    told = []
    for i, after in enumerate(found.values[1:], 1):
        before = found.values[0]
        if before is None or after is None:
            continue
        gain = before - after if found.lower else after - before
        names = dict.fromkeys((settings.worth_by, *COSTS))
        extras = tuple(_extra(sides[0], sides[i], name, gain, settings) for name in names)
        relative = gain / abs(before) if before else None
        one = Worth(sides[i].label, found.name, before, after, gain, relative, extras)
        cost = next((extra for extra in extras if extra.more is not None), extras[0])  # what the rule names, if known
        told.append(replace(one, flags=_flags(one, cost, settings), verdict=_verdict(gain, cost)))
    return told


def _extra(first: Side, other: Side, name: str, gain: float, settings: Settings) -> Extra:
    unit = unit_of(name)
    doubt, apart = "", True
    if is_count(name):
        here, there = (value(side.run, name, WHOLE, settings).amount for side in (first, other))
    else:
        both = noisy((first, other), name, WHOLE, settings)
        (here, there), unit = both.medians, both.unit or unit
        doubt = "modelled" if MODELLED in both.hows else both.spread(1)
        if (ratio := both.ratios[1]) is None:
            here = there = None
        else:
            apart = not ratio.is_known or ratio.excludes_one
    if here is None or there is None:
        return Extra(name, unit, None, None, None, doubt)
    more = there - here
    per = gain / more if more and gain and (gain > 0) == (more > 0) else None
    return Extra(name, unit, more, more / here if here else None, per, doubt, apart)


def _flags(one: Worth, cost: Extra, settings: Settings) -> tuple[str, ...]:
    """The user's rule: a cost that rises by so much must bring so much."""
    if cost.relative is None or one.relative is None or not cost.told_apart:
        return ()
    if cost.relative < settings.worth_cost or one.relative >= settings.worth_gain:
        return ()
    doubt = f" ({cost.doubt})" if cost.doubt else ""
    return (
        f"costs {_percent(cost.relative)} more {shown(cost.name)}{doubt} for {_gained(one)}: not worth it by the rule "
        f"that {_percent(settings.worth_cost)} more must bring {_percent(settings.worth_gain)}",
    )


def _gained(one: Worth) -> str:
    change = f"({one.before:g} → {one.after:g})"
    if one.gain == 0:
        return f"no change of {one.metric} {change}"
    better = "better" if one.gain > 0 else "worse"
    return f"{_percent(abs(one.relative or 0.0))} {better} {one.metric} {change}"


def _verdict(gain: float, cost: Extra) -> str:
    name = shown(cost.name)
    if cost.more is None:
        return f"{name} is not known, or not comparable"
    if not cost.told_apart:
        better = "better" if gain > 0 else "worse" if gain < 0 else "as good"
        return f"{better}; {name} cannot be told apart"
    if gain > 0:
        return f"better, and no more {name}" if cost.more <= 0 else f"better, for more {name}"
    if gain < 0:
        return f"worse, and no less {name}" if cost.more >= 0 else f"worse, for less {name}"
    return f"as good, for {'more' if cost.more > 0 else 'less' if cost.more < 0 else 'the same'} {name}"


def shown(name: str) -> str:
    """A quantity in a sentence."""
    return {"bops": "BOPs", "flops": "FLOPs", "macs": "MACs", "seconds": "time", "cost": "money"}.get(name, name)


def _percent(share: float) -> str:
    """Three digits: 0.1 % and 20 %."""
    return f"{100 * share:.3g} %"
