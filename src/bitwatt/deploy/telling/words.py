"""Numbers of the lab as its sentences write them."""

from __future__ import annotations

from bitwatt.deploy.amounts import LEAST, percent
from bitwatt.units import format_count, format_duration


def of_change(share: float) -> str:
    """With its sign: −41 %, +0.1 %; ±0 % where rounding is all there is."""
    if abs(100 * share) < LEAST:
        return "±0 %"
    return f"{'−' if share < 0 else '+'}{percent(abs(share))}"


def times(ratio: float) -> str:
    """How many times: 12.3×, 0.94×."""
    return f"{ratio:.3g}×"


def milliseconds(value: float | None) -> str:
    return "?" if value is None else format_duration(float(f"{value / 1000:.3g}"))


def megabytes(value: float | None) -> str:
    return (
        "?"
        if value is None
        else f"{value:.4g} MB"
        if value < 10_000
        else format_count(float(f"{value:.3g}") * 1e6, "B")
    )


def size(value: float | None) -> str:
    return "?" if value is None else format_count(float(f"{value:.3g}"), "B")


def rate(value: float | None, unit: str = "/s") -> str:
    return "?" if value is None else f"{value:,.0f}{unit}" if value >= 10 else f"{value:.3g}{unit}"


def listed(names: list[str] | tuple[str, ...]) -> str:
    """a; a and b; a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
