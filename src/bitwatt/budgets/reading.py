"""Reads a budget: the [budget] table of bitwatt.toml, or [tool.bitwatt.budget] of pyproject.toml."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitwatt.budgets.limits import Limit, limit_of
from bitwatt.comparing.quantities import COUNTS, NOISY, WHOLE, Where
from bitwatt.config import BUDGET, FILE, PROJECT
from bitwatt.errors import SettingsError
from bitwatt.pricing import cost_models

#: Runs on each side from which an interval of five or more repetitions holds what it promises.
REPETITIONS = 5
_PLACES = ("phase", "layer")
_OWN = ("baseline", "repetitions", *_PLACES)


@dataclass(frozen=True, slots=True)
class Budget:
    """`baseline` names the run that relative limits are held against; `repetitions` are the runs on each side without
    which time and energy are not gated."""

    limits: tuple[Limit, ...]
    baseline: str = ""
    repetitions: int = REPETITIONS
    source: str = ""


def read(file: Path | str | None = None, start: Path | None = None) -> Budget:
    """The budget of a file; by default of the nearest bitwatt.toml or pyproject.toml upward that has one."""
    if file is not None:
        path = Path(file)
        table = _table(path)
        if table is None:
            raise SettingsError(f"{path} holds no budget: write a table [{_heading(path)}]")
        return budget_of(table, str(path))
    folder = (start or Path.cwd()).absolute()
    for place in (folder, *folder.parents):
        for name in (FILE, PROJECT):
            if (place / name).is_file() and (table := _table(place / name)) is not None:
                return budget_of(table, str(place / name))
    raise SettingsError(f"there is no budget: write a table [{BUDGET}] into {FILE}, or name a file with --budget")


def _heading(path: Path) -> str:
    return f"tool.bitwatt.{BUDGET}" if path.name == PROJECT else BUDGET


def _table(path: Path) -> Any:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the budget {path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"the budget {path} is no valid TOML: {error}") from None
    for step in _heading(path).split("."):
        content = content.get(step) if isinstance(content, Mapping) else None  # type: ignore[assignment]
    return content


def budget_of(table: Any, source: str = "budget") -> Budget:
    if not isinstance(table, Mapping):
        raise SettingsError(f"{source}: {BUDGET} is no table")
    limits = [_limit(source, key, value, WHOLE) for key, value in table.items() if key not in _OWN]
    for kind in _PLACES:
        places = table.get(kind, {})
        if not isinstance(places, Mapping) or not all(isinstance(inner, Mapping) for inner in places.values()):
            raise SettingsError(f'{source}: {kind} holds one table for each {kind}: [{BUDGET}.{kind}."name"]')
        for name, inner in places.items():
            where = Where(**{kind: name})
            limits += [_limit(f"{source}: {kind}.{name}", key, value, where) for key, value in inner.items()]
    if not limits:
        raise SettingsError(f'{source}: the budget holds no limit; write one such as flops = "4.1 GFLOP"')
    return Budget(tuple(limits), _baseline(table, source), _repetitions(table, source), source)


def _limit(source: str, key: str, value: Any, where: Where) -> Limit:
    known = [*cost_models(), *COUNTS, *NOISY]
    if key not in known:
        offered = [*known, *(_OWN if where == WHOLE else ())]
        close = difflib.get_close_matches(key, offered, 1, 0.6)
        meant = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(offered)}"
        raise SettingsError(f"{source}: there is no limit {key!r}{meant}")
    try:
        return limit_of(key, value, where)
    except SettingsError as error:
        raise SettingsError(f"{source}: {error}") from None


def _baseline(table: Mapping[str, Any], source: str) -> str:
    found = table.get("baseline", "")
    if not isinstance(found, str):
        raise SettingsError(f"{source}: baseline is the name, id or path of a run, not {found!r}")
    return found


def _repetitions(table: Mapping[str, Any], source: str) -> int:
    found = table.get("repetitions", REPETITIONS)
    if isinstance(found, bool) or not isinstance(found, int) or found < 3:
        raise SettingsError(f"{source}: repetitions is a whole number from 3 on, not {found!r}")
    return found
