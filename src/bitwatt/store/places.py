"""Where runs are kept: a folder, or object storage behind a URL. Files appear there completely or not at all, without
locks, so that many processes on many hosts may write at once."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from bitwatt.config import nearest

FOLDER = Path(".bitwatt")
VARIABLE = "BITWATT_STORE"
SUFFIX = ".run"
#: A first line longer than this is not ours; reading on could swallow a whole foreign file.
HEAD = 1 << 20

#: As callers give it: a folder, a URL, or None for what is configured.
Store = str | os.PathLike[str] | None
#: As we use it: a path of this machine, or a URL.
Where = Path | str


class File(NamedTuple):
    """`stamp` is another one whenever the file was written anew."""

    name: str
    stamp: str


class Place(Protocol):
    """Errors of all methods are OSErrors."""

    root: Where
    #: A run that is under way is not written more often than every so many seconds.
    interval: float

    def files(self, folder: str = "", suffix: str = SUFFIX) -> list[File]: ...

    def heads(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        """First lines, with the newline where there is one."""
        ...

    def read(self, name: str) -> bytes: ...

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None: ...

    def delete(self, name: str) -> None: ...

    def where(self, name: str) -> Where: ...


def is_url(text: object) -> bool:
    return isinstance(text, str) and "://" in text


def root(store: Store = None) -> Where:
    """The folder or URL that is meant; without one what BITWATT_STORE says, the nearest settings, or .bitwatt here."""
    if store is None:
        return _configured()
    text = os.fspath(store)
    if not is_url(text):
        # pathlib makes s3:/bucket of s3://bucket
        collapsed = re.fullmatch(r"([a-z][a-z0-9+.]+):/([^/].*)", text) if isinstance(store, Path) else None
        if collapsed is None:
            return Path(text)
        text = f"{collapsed[1]}://{collapsed[2]}"
    if text.startswith(("file://", "local://")):
        return Path(unquote(urlsplit(text).path))
    return text.rstrip("/") if not text.endswith("://") else text


def _configured() -> Where:
    if given := os.environ.get(VARIABLE):
        return root(given)
    found = nearest("store")
    if found is None:
        return FOLDER
    text, file = found
    return root(text) if is_url(text) else file.parent / Path(text).expanduser()


def absolute(where: Where) -> Where:
    """For a program that may change its folder."""
    return where.absolute() if isinstance(where, Path) else where


def place(store: Store = None) -> Place:
    where = root(store)
    if isinstance(where, Path):
        return Folder(where)
    from bitwatt.store.remote import Remote

    return Remote(where)


def split(where: Where) -> tuple[Place, str]:
    """The place that a file lies in, and its name there."""
    if isinstance(where, Path):
        return Folder(where.parent), where.name
    base, _, name = where.rpartition("/")
    return place(base), name


class Folder:
    """On this machine, or on a file system that hosts share: a rename is atomic there too."""

    interval = 0.0

    def __init__(self, root: Path) -> None:
        self.root: Where = root
        self._root = root

    def files(self, folder: str = "", suffix: str = SUFFIX) -> list[File]:
        found = []
        try:
            with os.scandir(self._root / folder) as entries:
                for entry in entries:
                    if entry.name.endswith(suffix) and not entry.name.startswith("."):
                        with suppress(FileNotFoundError):  # removed since
                            found.append(File(entry.name, _stamp(entry)))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return found

    def heads(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        for name in names:
            try:
                with open(self._root / name, "rb", opener=_regular) as file:
                    yield name, file.readline(HEAD)
            except OSError as error:
                yield name, error

    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        path = self._root / name
        temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        if sync:
            _sync(path.parent)

    def delete(self, name: str) -> None:
        (self._root / name).unlink()

    def where(self, name: str) -> Where:
        return self._root / name


def _stamp(entry: os.DirEntry[str]) -> str:
    try:
        told = entry.stat()
    except FileNotFoundError:
        raise
    except OSError:  # such as a link to itself: whoever opens it is told
        return "unreadable"
    # a rename brings a new inode, also within one tick of the clock
    return f"{told.st_mtime_ns}:{told.st_size}:{told.st_ino}"


def _regular(path: str, flags: int) -> int:
    """Open a file that is one: of a pipe the first line would be waited for."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no ordinary file", path)


def _sync(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system lets folders be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
