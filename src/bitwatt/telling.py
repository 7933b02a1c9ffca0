"""metric, tag, parameter, describe: what the user tells of a run while it goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bitwatt import context
from bitwatt.about import NAME, NAMES, About, Point, described, parameters_of, tags_of
from bitwatt.errors import BitwattError
from bitwatt.sensors.counters import Lock

#: Values of one metric that are kept. Beyond, every second one is, then every fourth, and so on; and the last.
POINTS = 10_000


def metric(name: str, value: Any, step: int | None = None) -> None:
    """Keep a number with the run: `bitwatt.metric("accuracy", 0.93, step=100)`. Outside measure() it does nothing."""
    here = _here()
    if here is not None:
        here.metric(name, value, step)


def tag(*tags: str, **named: str) -> None:
    """Tag the run: `bitwatt.tag("good", team="vision")`. Outside measure() it does nothing."""
    here = _here()
    if here is not None:
        here.add(tags=tags_of(tags) | tags_of(named))


def parameter(**parameters: Any) -> None:
    """Keep what the run was set to: `bitwatt.parameter(lr=0.1, model="small")`. Outside measure() it does nothing."""
    here = _here()
    if here is not None:
        here.add(parameters=parameters)


def describe(*, version: str = "", dataset: str = "", batch_size: int | None = None) -> None:
    """Say which version of the model this is, and what it is fed. Outside measure() it does nothing."""
    here = _here()
    if here is not None:
        here.add(version=version, dataset=dataset, batch_size=batch_size)


def _here() -> Teller | None:
    found = context.current()
    return found.token.about if found is not None else None


class Teller:
    """What one session was told (`Token.about`)."""

    def __init__(self, run: str, about: About) -> None:
        self.run, self._about = run, about
        self._began = time.perf_counter()
        self._lock = Lock()
        self._series: dict[str, _Series] = {}
        self.notes: list[str] = []

    def add(self, **told: Any) -> None:
        more = described(**told)
        with self._lock:
            old = self._about
            self._about = replace(
                old,
                tags=tags_of({**old.tags, **more.tags}),
                parameters=parameters_of({**old.parameters, **more.parameters}),
                version=more.version or old.version,
                dataset=more.dataset or old.dataset,
                batch_size=old.batch_size if more.batch_size is None else more.batch_size,
            )

    def metric(self, name: str, value: Any, step: int | None) -> None:
        number, at = _number(name, value), time.perf_counter() - self._began
        if step is not None and (isinstance(step, bool) or not hasattr(step, "__index__")):
            raise BitwattError(f"metric({name!r}, step={step!r}): a step is a whole number")
        with self._lock:
            known = self._series.get(str(name)[:NAME])
            if known is None:
                if len(self._series) >= NAMES:
                    self.notes = [f"more than {NAMES} metrics were named: the later ones are not kept"]
                    return
                known = self._series.setdefault(str(name)[:NAME], _Series())
            known.add((None if step is None else step.__index__(), round(at, 6), number))

    def told(self, git: Mapping[str, str] | None = None) -> About:
        """Until now."""
        with self._lock:
            return replace(
                self._about,
                git=dict(git or {}),
                metrics={name: series.summary() for name, series in self._series.items()},
                series={name: series.points() for name, series in self._series.items()},
            )


class _Series:
    __slots__ = ("_count", "_kept", "_last", "_max", "_min", "_stride")

    def __init__(self) -> None:
        self._kept: list[Point] = []
        self._stride, self._count = 1, 0
        self._min, self._max = math.inf, -math.inf

    def add(self, point: Point) -> None:
        if self._count % self._stride == 0:
            if len(self._kept) >= POINTS:
                self._kept = self._kept[::2]
                self._stride *= 2
            if self._count % self._stride == 0:
                self._kept.append(point)
        self._last = point
        self._count += 1
        if not math.isnan(point[2]):
            self._min, self._max = min(self._min, point[2]), max(self._max, point[2])

    def points(self) -> tuple[Point, ...]:
        return (*self._kept, *([self._last] if self._kept[-1] is not self._last else ()))

    def summary(self) -> dict[str, float | None]:
        known = self._min <= self._max
        return {
            "last": self._last[2],
            "min": self._min if known else None,
            "max": self._max if known else None,
            "count": self._count,
        }


def _number(name: str, value: Any) -> float:
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise BitwattError(f"metric({name!r}, {value!r:.80}): it is no number ({error})") from None
