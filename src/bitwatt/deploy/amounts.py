"""How many of something, in words: 1 thread, 2 threads, 1,000 rows."""

from __future__ import annotations


def amount(count: int, one: str, many: str = "") -> str:
    """`many` where it takes more than an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
