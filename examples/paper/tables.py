"""Markdown tables and numbers, as the page shows them."""

from __future__ import annotations

from collections.abc import Sequence

_RULES = {"l": ":--", "r": "--:"}


def table(head: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> str:
    lines = [head, [_RULES[side] for side in sides], *rows]
    assert all(len(line) == len(head) for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def giga(amount: float) -> str:
    """Billions, with as many digits as say something."""
    digits = 3 if amount < 1e9 else 2 if amount < 1e11 else 1
    return f"{amount / 1e9:.{digits}f}"


def change(after: float, before: float) -> str:
    return f"{100 * (after / before - 1):+.1f} %"


def science(amount: float) -> str:
    return f"{amount:.2e}".replace("e+0", "e").replace("e+", "e")
