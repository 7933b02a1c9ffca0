"""Changes to runs that are kept: tags, and removing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from bitwatt.about import about_json, about_of, tags_of
from bitwatt.errors import BitwattError, RunFileError
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.store import content, find
from bitwatt.store.places import Store, Where, split
from bitwatt.store.runfile import Header, as_header, packed, unpacked


def tag(
    which: str | Path | None,
    tags: Mapping[str, str] | Iterable[str] | str = (),
    *,
    remove: Iterable[str] = (),
    store: Store = None,
) -> Header:
    """Add tags to a kept run, and take some away. Its first line is written anew, and nothing else."""
    where = find(which, store)
    whole = content(where)
    header, body = unpacked(whole, where)
    if header["status"] == UNDER_WAY:
        raise BitwattError(
            f"run {header['id']} is under way, and would write over its tags; use bitwatt.tag() in the program, or wait"
        )
    told = about_json(about_of(header["about"]))
    kept = {**told.get("tags", {}), **tags_of(tags)}
    for name in remove:
        if name not in kept:
            raise BitwattError(f"run {header['id']} has no tag {name!r}; it has {', '.join(kept) or 'none'}")
        del kept[name]
    about = {name: value for name, value in {**told, "tags": kept}.items() if value or name != "tags"}
    header = header | {"about": about}
    there, name = split(where)
    try:
        there.write(name, packed(header, body))
    except OSError as error:
        raise RunFileError(f"{where} could not be written: {error}; it is as it was") from error
    return as_header(header, where)


def remove(paths: Iterable[Where]) -> list[Where]:
    """Remove runs for good. One that is gone already is no mistake."""
    gone = []
    for where in dict.fromkeys(paths):
        there, name = split(where)
        try:
            there.delete(name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RunFileError(f"{where} could not be removed: {error.strerror or error}") from error
        gone.append(where)
    return gone


def with_their_jobs(chosen: Iterable[Header], kept: Iterable[Header]) -> list[Header]:
    """`chosen`, and of jobs the other ranks too: a rank alone tells little."""
    found = {header.id: header for header in chosen}
    jobs = {(header.rank.job, header.name) for header in found.values() if header.rank is not None}
    if jobs:
        found |= {one.id: one for one in kept if one.rank is not None and (one.rank.job, one.name) in jobs}
    return list(found.values())
