"""Runs kept: one versioned file per run, written atomically, in a folder or in object storage."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bitwatt.errors import BitwattError, RunFileError, UnknownNameError
from bitwatt.records import Run
from bitwatt.store.migrations import FORMAT, MIGRATIONS, VERSION
from bitwatt.store.places import FOLDER, SUFFIX, Place, Store, Where, absolute, is_url, place, root, split
from bitwatt.store.runfile import Header, header_of, run_of, written

__all__ = [
    "FOLDER", "FORMAT", "MIGRATIONS", "SUFFIX", "VERSION", "Header", "Place", "Store", "Where", "absolute", "content",
    "find", "headers", "is_url", "keep", "kept_or_given", "load", "place", "ranked", "read", "root", "run_of", "runs",
    "save", "split",
]  # fmt: skip

#: From so many runs on, first lines are read from the index.
LARGE = 500


def save(run: Run, store: Store = None, *, summary: Mapping[str, Any] | None = None, sync: bool = True) -> Where:
    """Write a run to `<store>/<id>.run`, completely or not at all; where it is now: a Path, or a URL. `summary` is kept
    in the header for listings. Without `sync` it survives the end of the process, but perhaps not a power cut."""
    if not run.id or Path(run.id).name != run.id or run.id.startswith("."):
        raise RunFileError(f"a run cannot be kept under the id {run.id!r}: it must be a plain file name")
    there = place(store)
    name = f"{run.id}{SUFFIX}"
    try:
        there.write(name, written(run, summary), sync=sync)
    except OSError as error:
        raise RunFileError(f"the run could not be kept in {there.root}: {error}") from error
    return there.where(name)


def keep(run: Run, store: Store = None, *, summary: Mapping[str, Any] | None = None) -> tuple[Where, str]:
    """As `save`; where that fails, in a new folder among the temporary ones, so that nothing is lost. And what went
    wrong, in words."""
    try:
        return save(run, store, summary=summary), ""
    except (BitwattError, OSError) as error:
        try:
            spare = save(run, tempfile.mkdtemp(prefix="bitwatt-"), summary=summary)
        except (BitwattError, OSError) as another:
            raise RunFileError(f"{error}; nor elsewhere: {another}") from error
        return spare, f"{error}. It is in {spare} for now: move it when there is room"


def load(which: str | Path | None = None, store: Store = None) -> Run:
    """A run by path, id, name (the newest of that name) or unique beginning of an id, or the first rank
    of a job by its id; by default the newest."""
    where = find(which, store)
    return run_of(content(where), where)


def kept_or_given(run: Any, store: Store = None) -> Run:
    """A run, or the one of a name, id or path."""
    if isinstance(run, Run):
        return run
    if isinstance(run, str | Path):
        return load(run, store)
    raise BitwattError(f"this is a {type(run).__name__}; wanted is a run, or the name, id or path of one that is kept")


def content(where: Where) -> bytes:
    """A whole file, once its first line has shown that it is ours."""
    there, name = split(where)
    for _, line in there.heads([name]):
        if isinstance(line, OSError):
            raise RunFileError(f"{where} cannot be read: {line.strerror or line}") from line
        header_of(line, where)
    try:
        return there.read(name)
    except OSError as error:
        raise RunFileError(f"{where} cannot be read: {error.strerror or error}") from error


def headers(store: Store = None) -> tuple[list[Header], list[RunFileError]]:
    """Every run, newest first, from first lines alone; and one error for each file that is damaged."""
    there = place(store)
    files = there.files()
    if len(files) >= LARGE:
        from bitwatt.store.index import Index

        with Index(store) as index:
            return index.select(), index.damaged
    return read(there, (file.name for file in files))


def read(there: Place, names: Iterable[str]) -> tuple[list[Header], list[RunFileError]]:
    found, damaged = [], list[RunFileError]()
    for name, line in there.heads(names):
        where = there.where(name)
        try:
            if isinstance(line, FileNotFoundError):  # removed since
                continue
            if isinstance(line, OSError):
                raise RunFileError(f"{where} cannot be read: {line.strerror or line}")
            found.append(header_of(line, where))
        except RunFileError as error:
            damaged.append(error)
    found.sort(key=lambda header: (header.started, header.id), reverse=True)
    return found, damaged


def runs(store: Store = None) -> list[Header]:
    """The runs of a store, newest first."""
    return headers(store)[0]


def ranked(store: Store = None, since: str = "") -> list[Header]:
    """Those that are ranks of jobs, newest first; `since` a time as runs write it."""
    there = place(store)
    names = [file.name for file in there.files()]
    if len(names) < LARGE:
        return [one for one in read(there, names)[0] if one.rank is not None and one.started >= since]
    from bitwatt.store.index import Index

    with Index(store) as index:
        return index.select(["rank>=0", *([f"since={since}"] if since else [])])


def find(which: str | Path | None = None, store: Store = None) -> Where:
    """The file of a run, named as for `load`: a Path, or a URL."""
    if isinstance(which, Path):
        return which
    looks_like_a_path = which is not None and (which.endswith(SUFFIX) or os.sep in which)
    if which is not None and looks_like_a_path and (is_url(which) or os.path.lexists(which)):
        return which if is_url(which) else Path(which)
    there = place(store)
    if which is not None and not looks_like_a_path and (exact := _exact(there, which)):
        return there.where(exact)
    kept = _candidates(there, which, store)
    if which is None:
        if not kept:
            raise UnknownNameError(f"no run is kept in {there.root}; make one with: bitwatt run script.py")
        return _whole(kept[0], kept).path
    for key in ("id", "name"):
        for match in (run for run in kept if getattr(run, key) == which):
            return match.path if key == "id" else _whole(match, kept).path
    ranks = [(run.rank.rank, run.path) for run in kept if run.rank is not None and run.rank.job == which]
    if ranks:
        return min(ranks, key=lambda one: one[0])[1]
    if looks_like_a_path:  # no run has that name either: whoever opens it is told
        return Path(which)
    begun = [run for run in kept if run.id.startswith(which)]
    if len(begun) == 1:
        return begun[0].path
    if begun:
        several = "several" if len(begun) > _SHOWN else len(begun)
        shown = ", ".join(run.id for run in begun[:_SHOWN])
        raise UnknownNameError(f"{which!r} begins the ids of {several} runs: {shown}")
    known = f"the newest are {', '.join(run.id for run in kept[:_SHOWN])}" if kept else "none is kept there"
    raise UnknownNameError(f"no run in {there.root} has the id or name {which!r}; {known}")


_SHOWN = 5


def _whole(run: Header, kept: Iterable[Header]) -> Header:
    """Of a rank whose job was joined, the joined run: it has the job's id."""
    if run.rank is None:
        return run
    return next((one for one in kept if one.rank is None and one.id == run.rank.job), run)


def _exact(there: Place, which: str) -> str:
    """The file's name where `which` is a whole id. One that is damaged is found too: loading it tells how."""
    name = f"{which}{SUFFIX}"
    if which.startswith(".") or not which or "\0" in which:
        return ""
    for _, line in there.heads([name]):
        if isinstance(line, FileNotFoundError):
            return ""
        if isinstance(line, OSError):  # it cannot be read, or no file can have such a name
            return name if any(file.name == name for file in there.files()) else ""
    return name


def _candidates(there: Place, which: str | None, store: Store) -> list[Header]:
    """The runs of a store, newest first; of a large one only those that may be meant, and the newest."""
    names = [file.name for file in there.files()]
    if len(names) < LARGE:
        return read(there, names)[0]
    from bitwatt.store.index import Index

    with Index(store) as index:
        found = index.select(limit=_SHOWN)
        if which is not None:
            found += index.select([f"name={which}"], limit=1) + index.select([f"id={which}"], limit=_SHOWN + 1)
            found += index.select([f"job={which}"], "rank", limit=1)
    unique = {str(header.path): header for header in found}
    return sorted(unique.values(), key=lambda header: (header.started, header.id), reverse=True)
