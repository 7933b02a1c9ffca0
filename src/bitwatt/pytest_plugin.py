"""pytest plugin: limits on what a test may compute, and a fixture that tells. Markers do nothing without --bitwatt.

Nothing of bitwatt but this file is imported until a test is measured, and no framework ever is.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bitwatt.budgets.checking import Outcome
    from bitwatt.budgets.limits import Limit
    from bitwatt.pricing import Totals
    from bitwatt.records import Run

#: Marker -> the quantity it limits.
LIMITS = {
    "limit_flops": "flops",
    "limit_macs": "macs",
    "limit_bops": "bops",
    "limit_bytes": "bytes",
    "limit_energy": "energy",
    "limit_seconds": "seconds",
}
_NOISY = ("energy", "seconds")
_TOP = 5
#: A test's property that says which of its limits decided nothing.
_OPEN = "bitwatt undecided"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bitwatt")
    group.addoption("--bitwatt", action="store_true", default=None, help="hold tests to their limit_flops and others")
    parser.addini(
        "bitwatt", "hold tests to their limit_flops and others, as --bitwatt does", type="bool", default=False
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, quantity in LIMITS.items():
        config.addinivalue_line(
            "markers",
            f"{name}(limit, *, phase='', layer=''): with --bitwatt, fail if the test takes more {quantity} than that",
        )


def is_on(config: pytest.Config) -> bool:
    return bool(config.getoption("--bitwatt") or config.getini("bitwatt"))


class Measured:
    """What the `bitwatt` fixture gives. It measures the test from its first line; asking for a number ends that, and
    `restart()` begins anew."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: Any = None
        self._run: Run | None = None

    def restart(self) -> None:
        """Forget what was measured so far, and measure from here."""
        from bitwatt.session import measure

        self._end()
        self._open = measure(self._name, keep=False)
        self._session, self._run = self._open.__enter__(), None

    def _end(self) -> None:
        if self._open is not None:
            opened, self._open = self._open, None
            opened.__exit__(None, None, None)
            self._run = self._session.run

    @property
    def run(self) -> Run:
        """The run: bitwatt.report, compare and everything else take it."""
        self._end()
        if self._run is None:
            raise RuntimeError("nothing was measured: the bitwatt fixture measures while its test runs")
        return self._run

    def totals(self, cost_model: str = "flops") -> Totals:
        from bitwatt.pricing import totals

        return totals(self.run, cost_model)

    @property
    def flops(self) -> int:
        return self.totals("flops").total

    @property
    def macs(self) -> int:
        return self.totals("macs").total

    @property
    def bops(self) -> int:
        return self.totals("bops").total

    @property
    def bytes(self) -> int:
        return self.totals("bytes").total

    @property
    def missing(self) -> dict[str, int]:
        """Ops that no rule covers, and how often they were called."""
        return self.totals().missing

    @property
    def energy_j(self) -> float | None:
        """Measured joules; None where no sensor tells."""
        return None if self.run.meter is None else self.run.meter.measured_j


@pytest.fixture
def bitwatt(request: pytest.FixtureRequest) -> Iterator[Measured]:
    """Measures the test: bitwatt.flops, .macs, .bops, .bytes, .totals(cost_model), .missing, .energy_j and .run."""
    measured = Measured(request.node.name)
    request.node.stash[_MEASURED] = measured
    yield measured
    measured._end()


_MEASURED = pytest.StashKey[Measured]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Around the test itself: what fixtures set up is not measured."""
    limits = _limits(item) if is_on(item.config) else []
    measured = item.stash.get(_MEASURED, None)
    if not limits and measured is None:
        return (yield)
    from bitwatt.session import measure

    noisy = [limit for limit in limits if limit[0].quantity in _NOISY]
    runs: list[Run] = []
    with measure(item.name, keep=False, meter=bool(noisy)) if limits else nullcontext() as session:
        if measured is not None:
            measured.restart()
        result = yield
    if session is None:
        return result
    runs.append(session.run)
    for _ in range(max((again for _, again in noisy), default=1) - 1):
        with measure(item.name, keep=False) as session:
            item.runtest()
        runs.append(session.run)
    _judge(item, [limit for limit, _ in limits], runs)
    return result


def _limits(item: pytest.Item) -> list[tuple[Limit, int]]:
    """The nearest limit of each kind and place, and how often it wants the test run."""
    from bitwatt.errors import BitwattError

    found: dict[Any, tuple[Limit, int]] = {}
    for name, quantity in LIMITS.items():
        for mark in item.iter_markers(name):
            try:
                limit, times = _limit(quantity, *mark.args, **mark.kwargs)
            except (BitwattError, TypeError) as error:
                pytest.fail(f"bitwatt: @pytest.mark.{name}: {error}", pytrace=False)
            found.setdefault((name, limit.where), (limit, times))
    return list(found.values())


def _limit(
    quantity: str, limit: Any, *, phase: str = "", layer: str = "", repetitions: int | None = None
) -> tuple[Limit, int]:
    from bitwatt.budgets.limits import limit_of
    from bitwatt.budgets.reading import REPETITIONS
    from bitwatt.comparing.quantities import Where
    from bitwatt.errors import BitwattError

    made = limit_of(quantity, limit, Where(phase, layer))
    if made.is_relative:
        raise BitwattError(f"{limit!r} is against a baseline, which a test has not: write an amount")
    if repetitions is not None and quantity not in _NOISY:
        raise BitwattError("repetitions are for what varies: limit_energy and limit_seconds")
    return made, (REPETITIONS if repetitions is None else max(1, repetitions)) if quantity in _NOISY else 1


def _judge(item: pytest.Item, limits: list[Limit], runs: list[Run]) -> None:
    from bitwatt.budgets.checking import UNDECIDED, UNGATED, check
    from bitwatt.budgets.reading import REPETITIONS, Budget
    from bitwatt.comparing.spread import LEAST
    from bitwatt.errors import SettingsError

    try:
        needed = REPETITIONS if len(runs) < LEAST else min(REPETITIONS, len(runs))  # who asks for three means three
        outcomes = check(Budget(tuple(limits), repetitions=needed, source=item.nodeid), runs)
    except SettingsError as error:
        pytest.fail(f"bitwatt: {error}", pytrace=False)
    for one in outcomes:
        item.user_properties.append((f"bitwatt {one.limit.name}", one.amount))
        if one.status in (UNGATED, UNDECIDED):
            item.user_properties.append(
                (_OPEN, f"{one.limit.name}: {one.status}: {one.why.removeprefix('not gated: ')}")
            )
    failed = [one for one in outcomes if one.fails]
    if failed:
        pytest.fail("\n\n".join(_told(one, runs[0]) for one in failed), pytrace=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Limits that decided nothing are said, not passed over. Properties of a report come home from xdist's workers."""
    reports = [one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind)]
    told = [
        f"{report.nodeid}: {text}"
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, text in report.user_properties
        if name == _OPEN
    ]
    if told:
        terminalreporter.section("bitwatt: limits that decided nothing")
        for line in told:
            terminalreporter.write_line(line)


def _told(one: Outcome, run: Run) -> str:
    """The count, the limit, and who is to blame."""
    from bitwatt.budgets.limits import shown
    from bitwatt.budgets.telling import why

    unit = one.limit.unit
    exact = f" ({one.amount:,})" if isinstance(one.amount, int) and one.amount >= 1000 else ""
    lines = [
        f"bitwatt: {one.limit.name} {shown(one.amount, unit)}{exact} is over the limit of {one.limit.text}: {why(one)}"
    ]
    if one.limit.quantity not in _NOISY:
        for axis, title in (("scope", "layers"), ("op", "ops")):
            lines += [f"  top {title}:", *_largest(run, one, axis)]
    return "\n".join(lines)


def _largest(run: Run, one: Outcome, axis: str) -> list[str]:
    from bitwatt.budgets.limits import shown
    from bitwatt.pricing import totals
    from bitwatt.reports.model import NO_LAYER

    sums: dict[str, int] = {}
    for (phase, scope, op), n in totals(run, one.limit.quantity).by("phase", "scope", "op").items():  # type: ignore[str-unpack]
        if one.limit.where.has_phase(phase) and one.limit.where.has_layer(scope):
            name = scope or NO_LAYER if axis == "scope" else op
            sums[name] = sums.get(name, 0) + n
    ordered = sorted(((name, n) for name, n in sums.items() if n), key=lambda item: -item[1])[:_TOP]
    width = max((len(name) for name, _ in ordered), default=0)
    return [f"    {name:{width}}  {shown(n, one.limit.unit)}" for name, n in ordered]
