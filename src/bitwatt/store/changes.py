"""Changes to runs that are kept: tags, and removing them."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bitwatt.about import about_json, tags_of
from bitwatt.errors import BitwattError, RunFileError
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.ranks.silence import state_of
from bitwatt.store import content, find, read
from bitwatt.store.places import Store, Where, absolute, split
from bitwatt.store.runfile import Header, as_header, packed, unpacked

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

#: How often tags are written anew before giving up, and the least pause after each.
_TRIES, _PAUSE_S = 20, 0.02


def tag(
    which: str | Path | None,
    tags: Mapping[str, str] | Iterable[str] | str = (),
    *,
    remove: Iterable[str] = (),
    store: Store = None,
) -> Header:
    """Add tags to a kept run, and take some away. Its first line is written anew, and nothing else. Stores have no
    locks that hold for all hosts: who finds that another wrote in between does it again."""
    where, added, dropped = find(which, store), tags_of(tags), list(dict.fromkeys(remove))
    for trial in range(_TRIES):
        began = time.monotonic()
        with _alone(where):
            header = _tagged(where, added, dropped, again=trial > 0)
        took = time.monotonic() - began
        time.sleep(random.uniform(1, 2) * max(_PAUSE_S, took))  # another who read before us writes within that time
        now = _tags(where)
        if all(now.get(name) == value for name, value in added.items()) and not set(dropped) & set(now):
            return header
    raise BitwattError(f"others write to {where} all the time: the tags were lost {_TRIES} times; try again later")


def _tagged(where: Where, added: Mapping[str, str], dropped: Iterable[str], *, again: bool) -> Header:
    header, body = unpacked(content(where), where)
    known = as_header(header, where)
    if state_of(known) == UNDER_WAY:
        raise BitwattError(
            f"run {known.id} is under way, and would write over its tags; use bitwatt.tag() in the program, or wait"
        )
    told = about_json(known.about)
    kept = {**told.get("tags", {}), **added}
    for name in dropped:
        if name not in kept and not again:
            raise BitwattError(f"run {known.id} has no tag {name!r}; it has {', '.join(kept) or 'none'}")
        kept.pop(name, None)
    about = {name: value for name, value in {**told, "tags": kept}.items() if value or name != "tags"}
    header = header | {"about": about}
    there, name = split(where)
    try:
        there.write(name, packed(header, body))
    except OSError as error:
        raise RunFileError(f"{where} could not be written: {error}; it is as it was") from error
    return as_header(header, where)


def _tags(where: Where) -> Mapping[str, str]:
    there, name = split(where)
    found, damaged = read(there, [name])
    if damaged or not found:
        raise damaged[0] if damaged else RunFileError(f"{where} was removed meanwhile")
    return found[0].about.tags


@contextmanager
def _alone(where: Where) -> Iterator[None]:
    """Among processes of this machine one after the other, where its file system can lock a folder."""
    with ExitStack() as until_written:
        if fcntl is not None and isinstance(where, Path):
            with suppress(OSError):
                descriptor = os.open(where.parent, os.O_RDONLY)
                until_written.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


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
    found = {absolute(header.path): header for header in chosen}
    jobs = {(header.rank.job, header.name) for header in found.values() if header.rank is not None}
    if jobs:
        found |= {absolute(one.path): one for one in kept if one.rank is not None and (one.rank.job, one.name) in jobs}
    return list(found.values())
