"""From words to runs: ids, names, paths and filters, with their repetitions. The only file here that reads a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bitwatt.comparing.sides import identity
from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.fingerprint import fingerprint
from bitwatt.records import Run
from bitwatt.store import Header, baselines, load, runs
from bitwatt.store.filters import is_condition
from bitwatt.store.index import Index
from bitwatt.store.places import SUFFIX, Store


def chosen(
    sides: Sequence[Run | str | Path | Sequence[Run]], store: Store = None, *, repeat: bool = False
) -> list[list[Run]]:
    """One list of runs for each side. A word is a run (the newest of that name), or conditions with commas between them
    (`name~resnet,status=ok`): then each run they find is a side, or, with `repeat`, each group that repeat each other.
    With `repeat` a run that is named brings along all that repeat it."""
    found: list[list[Run]] = []
    seen: dict[Any, str] = {}
    for one in sides:
        if not isinstance(one, str | Path):
            found.append([one] if isinstance(one, Run) else list(one))
        elif is_filter(str(one), store):
            found += _filtered(str(one), store, repeat=repeat)
        elif not repeat:
            found.append([load(one, store)])
        else:
            run = load(one, store)
            found.append([run, *repeating(run, store)])
            _once(_identity(run), str(one), seen)
    return found


def _once(same: Any, word: str, seen: dict[Any, str]) -> None:
    if same in seen:
        raise BitwattError(
            f"{seen[same]} and {word} repeat each other (equal name, work, machine and code): compare them without "
            "--repeat, or give their runs different names"
        )
    seen[same] = word


def is_filter(word: str, store: Store = None) -> bool:
    """Whether a word is conditions, and not the name of a run that looks like some (`lr=0.1`)."""
    if word.endswith(SUFFIX) or not all(is_condition(part) for part in word.split(",")):
        return False
    return all(word not in (header.id, header.name) for header in runs(store))


def baseline_of(run: Run, store: Store = None) -> Run | None:
    """What `bitwatt baseline set` chose for this project and kind of machine."""
    found = baselines.find(run, store=store)
    if found is None:
        return None
    try:
        return load(found.run, store)
    except UnknownNameError as error:
        raise UnknownNameError(
            f"the baseline's run {found.run} is gone: see bitwatt baseline set, or bitwatt baseline clear"
        ) from error


def repeating(run: Run, store: Store = None) -> list[Run]:
    """The kept runs that ended well and repeat this one, newest first, without itself."""
    same = _identity(run)
    return [
        load(str(header.path), store)
        for header in runs(store)
        if header.id != run.id and header.status == "ok" and _of_header(header) == same
    ]


def _filtered(word: str, store: Store, *, repeat: bool) -> list[list[Run]]:
    with Index(store) as index:
        headers = index.select([part.strip() for part in word.split(",")])
    if not headers:
        raise UnknownNameError(f"no kept run is such that {word!r}")
    groups: dict[Any, list[Header]] = {}
    for header in headers:
        alone = not repeat or header.status != "ok"
        groups.setdefault(header.id if alone else _of_header(header), []).append(header)
    return [[load(str(header.path), store) for header in group] for group in groups.values()]


def _identity(run: Run) -> tuple[Any, ...]:
    return identity(run.name, fingerprint(run).digest, run.machine.facts, run.about.git)


def _of_header(header: Header) -> tuple[Any, ...]:
    return identity(header.name, header.summary.get("fingerprint", ""), header.machine, header.about.git)
