"""What a request asks for: filters as people type them, an order, columns, and where to begin."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bitwatt.dashboard.frame import url
from bitwatt.errors import BitwattError

#: Lines of a page.
LINES = 50
SORT = "-started"
_SIGN = re.compile(r"!=|!~|>=|<=|==|=|~|>|<")


@dataclass(frozen=True)
class Asked:
    """A list of runs. `columns` are empty where the page is to choose them."""

    text: str = ""
    sort: str = SORT
    columns: tuple[str, ...] = ()
    start: int = 0

    @property
    def where(self) -> list[str]:
        return words(self.text)

    def url(self, **changes: object) -> str:
        asked = replace(self, **changes) if changes else self  # type: ignore[arg-type]
        told = [("q", asked.text), ("sort", asked.sort if asked.sort != SORT else "")]
        told += [("column", name) for name in asked.columns]
        return url("/", [*told, ("start", str(asked.start) if asked.start else "")])


def words(text: str) -> list[str]:
    """Filters with spaces between them; quotes keep one together. Spaces around a sign are no mistake: flops > 1e12."""
    try:
        parts = shlex.split(text)
    except ValueError:
        raise BitwattError(f"a quotation mark or backslash is left open in {text!r}") from None
    found: list[str] = []
    for part in parts:
        if found and (_begins(part) or _ends(found[-1])):
            found[-1] += part
        else:
            found.append(part)
    return found


def _begins(part: str) -> bool:
    return _SIGN.match(part) is not None


def _ends(part: str) -> bool:
    return re.search(f"(?:{_SIGN.pattern})$", part) is not None


def quoted(condition: str) -> str:
    """A condition as it may stand among others."""
    return shlex.quote(condition) if re.search(r"[\s'\"\\]", condition) else condition


def whole(text: str, least: int, most: int) -> int:
    """A number of a request; what is none, or out of bounds, is the nearest that is."""
    return min(max(int(text), least), most) if text.isascii() and text.isdigit() and len(text) < 12 else least


def joined(where: Sequence[str]) -> str:
    return " ".join(map(quoted, where))
