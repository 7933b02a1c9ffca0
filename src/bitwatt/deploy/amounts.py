"""How many of something, in words: 1 thread, 2 threads, 1,000 rows; and shares: 41 %."""

from __future__ import annotations

#: Below so many percent, nobody asks how many.
LEAST = 0.001


def amount(count: int, one: str, many: str = "") -> str:
    """`many` where it takes more than an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """0.1 %, 1.5 %, 41 %: two digits, and no powers of ten."""
    value = 100 * share
    if 0 < abs(value) < LEAST:
        return f"less than {LEAST} %"
    return f"{value:.0f} %" if abs(value) >= 9.95 else f"{value:.2g} %"
