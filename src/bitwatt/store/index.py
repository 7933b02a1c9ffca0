"""An index of a store's runs: SQLite in the user's cache, made of the files' first lines. It may be deleted at any
time, and is brought up to date in steps, by any number of processes at once."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from bitwatt.errors import BitwattError, RunFileError
from bitwatt.harmless import encodable
from bitwatt.store import migrations
from bitwatt.store.columns import SCHEMA, TABLES, VERSION, insert, remove
from bitwatt.store.filters import FIELDS, conditions, order
from bitwatt.store.filters import words as as_list
from bitwatt.store.places import Place, Store, absolute, place
from bitwatt.store.runfile import Header, as_header, header_of
from bitwatt.uncollected import uncollected

T = TypeVar("T")
Progress = Callable[[int, int], None]

#: Files whose first lines are written down in one step.
_STEP = 2_000
#: Indexes that nobody asked for so long are removed.
_FORGET_S = 90 * 86_400
#: Rows, as large as SQLite can count.
_MOST = 1 << 62
#: What SQLite says of a file that is no index, no longer one, or has other tables.
_DAMAGE = ("not a database", "malformed", "no such table", "no such column", "values were supplied", "Could not decode")


def cache() -> Path:
    if given := os.environ.get("BITWATT_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "bitwatt"


class Index:
    """The runs of one store. `refresh` looks for what is new, the rest answers from what is known; the first question
    refreshes by itself. It may be used from several threads."""

    def __init__(self, store: Store = None) -> None:
        self.place: Place = place(store)
        key = str(absolute(self.place.root))
        self.path = cache() / f"index-{hashlib.sha256(key.encode()).hexdigest()[:16]}.sqlite"
        self._lock = threading.RLock()
        self._process = 0
        self._database: sqlite3.Connection | None = None
        self._fresh = False
        self._unread: list[RunFileError] = []  # this time: they may be readable the next
        self._machines: dict[int, dict[str, str]] = {}

    def refresh(self, progress: Progress | None = None) -> Index:
        """Read the first lines of files that are new or written anew since the last time."""
        with self._lock:
            self._retrying(lambda: self._refreshed(progress))
            self._fresh = True
        return self

    def select(
        self, where: Sequence[str] | str = (), sort: str = "-started", limit: int | None = None, offset: int = 0
    ) -> list[Header]:
        """Runs that fulfil all of `where` (see filters), such as `name~resnet` or `metric.accuracy>=0.9`."""
        try:
            return self._selected(where, sort, limit, offset)
        except _SpoiledError:  # what the index itself wrote can no longer be read
            with self._lock:
                self._remove()
                self.refresh()
            return self._selected(where, sort, limit, offset)

    def _selected(self, where: Sequence[str] | str, sort: str, limit: int | None, offset: int) -> list[Header]:
        chosen, sorted_by = conditions(as_list(where)), order(sort)
        query = f"SELECT number FROM runs WHERE {chosen.sql} ORDER BY {sorted_by.sql} LIMIT ? OFFSET ?"
        bound = (*chosen.bound, *sorted_by.bound, -1 if limit is None else min(limit, _MOST), min(offset, _MOST))
        with self._lock:
            numbers = [number for (number,) in self._ask(query, bound)]
            found: dict[int, Header] = {}
            with uncollected():
                for some in _steps(numbers, 500):
                    rows = self._ask(f"SELECT * FROM texts WHERE number IN ({', '.join('?' * len(some))})", some)
                    found |= {number: self._header(file, machine, text) for number, file, machine, text in rows}
        return [found[number] for number in numbers if number in found]

    def count(self, where: Sequence[str] | str = ()) -> int:
        chosen = conditions(as_list(where))
        return int(self._ask(f"SELECT count(*) FROM runs WHERE {chosen.sql}", chosen.bound)[0][0])

    def columns(self) -> list[str]:
        """What runs can be filtered and sorted by: fields that every run has, then tags, parameters and metrics."""
        found = list(FIELDS)
        for prefix, table in (("tag:", "tags"), ("param.", "parameters"), ("metric.", "metrics")):
            found += [f"{prefix}{name}" for (name,) in self._ask(f"SELECT DISTINCT name FROM {table} ORDER BY name")]
        return found

    @property
    def damaged(self) -> list[RunFileError]:
        """One for each file that is no run, or cannot be read."""
        rows = self._ask("SELECT error FROM files WHERE error IS NOT NULL ORDER BY name")
        return [RunFileError(text) for (text,) in rows] + self._unread

    def close(self) -> None:
        with self._lock:
            if self._database is not None and self._process == os.getpid():
                self._database.close()
            self._database = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, query: str, bound: Iterable[Any] = ()) -> list[Any]:
        with self._lock:
            if not self._fresh or self._process != os.getpid():
                self.refresh()
            values = tuple(encodable(value) if isinstance(value, str) else value for value in bound)
            found: list[Any] = self._retrying(lambda: self._open().execute(query, values).fetchall())
            return found

    def _header(self, file: str, machine: int, text: str) -> Header:
        try:
            if machine not in self._machines:
                [(facts,)] = self._ask("SELECT facts FROM machines WHERE id = ?", (machine,))
                self._machines[machine] = json.loads(facts)
            raw = json.loads(text)
            raw["machine"] = self._machines[machine]
            return as_header(raw, self.place.where(file), odd='{"float":' in text)
        except (ValueError, TypeError, RunFileError) as error:
            raise _SpoiledError(f"the index {self.path} cannot be read: {error}") from error

    def _refreshed(self, progress: Progress | None) -> None:
        database = self._open()
        # Known before listed: what another process adds in between is not taken for removed.
        known = dict(database.execute("SELECT name, stamp FROM files"))
        listed = {file.name: file.stamp for file in self.place.files()}
        gone = [name for name in known if name not in listed]
        new = [name for name, stamp in listed.items() if known.get(name) != stamp]
        self._unread, done = [], 0
        for step in _steps(gone, _STEP):
            with _Transaction(database):
                remove(database, step)
        lines = self.place.heads(new)
        while step_lines := list(islice(lines, _STEP)):
            with _Transaction(database):
                remove(database, [name for name, _ in step_lines])
                for name, line in step_lines:
                    self._take(database, name, line, listed[name])
            done += len(step_lines)
            if progress is not None:
                progress(done, len(new))

    def _take(self, database: sqlite3.Connection, name: str, line: bytes | OSError, stamp: str) -> None:
        where = self.place.where(name)
        if isinstance(line, FileNotFoundError):  # removed since
            return
        if isinstance(line, OSError):
            self._unread.append(RunFileError(f"{where} cannot be read: {line.strerror or line}"))
            return
        try:
            header, error = header_of(line, where), None
        except RunFileError as problem:
            header, error = None, str(problem)
        database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", (name, stamp, error))
        if header is not None:
            insert(database, name, header)

    def _retrying(self, work: Callable[[], Any]) -> Any:
        """An index that is damaged is made anew; where none can be kept, it is made in memory. A question that SQLite
        cannot answer says nothing about the index."""
        for start_over in (self._remove, self._in_memory):
            try:
                return work()
            except sqlite3.DatabaseError as error:
                is_damaged = _is_damaged(error)
                if not is_damaged and getattr(error, "sqlite_errorname", "") in ("SQLITE_ERROR", "SQLITE_TOOBIG"):
                    raise BitwattError(f"that is too much to ask at once: {error}") from error
                start_over() if is_damaged else self._in_memory()
                self._refreshed(None)
        return work()

    def _remove(self) -> None:
        self.close()
        for path in (self.path, self.path.with_name(f"{self.path.name}-journal")):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _open(self) -> sqlite3.Connection:
        if self._database is None or self._process != os.getpid():
            self._machines = {}
            self._process = os.getpid()
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                if not self.path.exists():
                    _forget_old(self.path.parent)
                self._database = _prepared(str(self.path))
            except (OSError, sqlite3.OperationalError):
                self._in_memory()
        assert self._database is not None
        return self._database

    def _in_memory(self) -> None:
        self._machines = {}
        self._process = os.getpid()
        self._database = _prepared(":memory:")


class _SpoiledError(BitwattError):
    """A row of the index is not as it was written."""


def _is_damaged(error: sqlite3.DatabaseError) -> bool:
    return isinstance(error, sqlite3.IntegrityError) or any(sign in str(error) for sign in _DAMAGE)


class _Transaction:
    """Takes the writer's place at once, so that of two processes one waits instead of failing."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._database.execute("COMMIT" if kind is None else "ROLLBACK")


def _prepared(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
    wanted = 1000 * VERSION + migrations.VERSION  # what a first line says depends on both
    if database.execute("PRAGMA user_version").fetchone()[0] != wanted:
        with _Transaction(database):
            if database.execute("PRAGMA user_version").fetchone()[0] != wanted:  # else another process was quicker
                for table in TABLES:
                    database.execute(f'DROP TABLE IF EXISTS "{table}"')
                for statement in SCHEMA:
                    database.execute(statement)
                database.execute(f"PRAGMA user_version = {wanted}")
    return database


def _forget_old(folder: Path) -> None:
    for path in folder.glob("index-*.sqlite"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _FORGET_S:
                path.unlink()


def _steps(items: list[T], size: int) -> Iterable[list[T]]:
    return (items[i : i + size] for i in range(0, len(items), size))
