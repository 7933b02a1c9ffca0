"""Makes the case ready for every runtime that applies. What cannot be made is a row that says why."""

from __future__ import annotations

import logging
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bitwatt.deploy.judging import restoring
from bitwatt.deploy.records import Case, Runtime, Scenario, UnfitError
from bitwatt.deploy.runtimes import RUNTIMES, runtime
from bitwatt.errors import UnknownNameError
from bitwatt.harmless import on_terminal

Progress = Callable[[float, float, str], None]


def build_all(case: Case, folder: Path, chosen: Sequence[str] = (), progress: Progress | None = None) -> list[Scenario]:
    """In the order of the runtimes; those chosen by name also where they do not apply, which is then told."""
    if unknown := [name for name in chosen if name not in RUNTIMES]:
        raise UnknownNameError(f"there is no scenario {unknown[0]!r}; there are {', '.join(RUNTIMES)}")
    asked = [runtime(name) for name in RUNTIMES if not chosen or name in chosen]
    ways = [way for way in asked if chosen or way.applies(case)]
    found = []
    for done, way in enumerate(ways):
        if progress:
            progress(done, len(ways), f"building {way.name}")
        found.append(build(case, way, Path(folder)))
    if progress:
        progress(len(ways), len(ways), "built")
    return found


def build(case: Case, way: Runtime, folder: Path) -> Scenario:
    row = Scenario(way.name, way.name, baseline=way.baseline)
    if not way.applies(case):
        return replace(row, failure=f"{way.name} is no way to run {case.name}")
    place = folder / way.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        with quiet(), restoring.threads(), restoring.traces():
            return replace(row, artefact=way.build(case, place))
    except UnfitError as error:
        return replace(row, failure=on_terminal(str(error)))
    except Exception as error:  # of whatever a converter calls: it costs this row, not the report
        lines = str(error).strip().splitlines() or [""]
        return replace(row, failure=on_terminal(f"{type(error).__name__}: {lines[0]}".rstrip(": ")))


@contextmanager
def quiet() -> Iterator[None]:
    """Converters warn of what is judged here by its results."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
