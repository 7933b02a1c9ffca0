"""The index's tables: what of a run's first line is kept to filter and sort by, and what to make its Header of."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from bitwatt.about import about_json
from bitwatt.harmless import encodable
from bitwatt.store.runfile import Header, rank_json

#: To be raised with every change here: older indexes are made anew.
VERSION = 2

#: Numbers are REAL: counts may be larger than SQLite's integers. The exact ones are in `summary`.
_COLUMNS = {
    "id": "TEXT", "name": "TEXT", "started": "TEXT", "status": "TEXT", "command": "TEXT", "version": "TEXT",
    "dataset": "TEXT", "parent": "TEXT", "parent_kind": "TEXT", "job": "TEXT", "commit": "TEXT", "branch": "TEXT",
    "dirty": "TEXT", "seconds": "REAL", "flops": "REAL", "bops": "REAL", "macs": "REAL", "bytes": "REAL",
    "energy_j": "REAL", "grams": "REAL", "cost": "REAL", "missing": "REAL", "memory_bytes": "REAL",
    "device_memory_bytes": "REAL", "parameters": "REAL", "batch_size": "REAL", "rank": "REAL",
}  # fmt: skip
TABLES = ("files", "runs", "texts", "tags", "parameters", "metrics", "machines", "facts")
SCHEMA = (
    "CREATE TABLE files (name TEXT PRIMARY KEY, stamp TEXT, error TEXT) WITHOUT ROWID",
    "CREATE TABLE runs (number INTEGER PRIMARY KEY, file TEXT UNIQUE, "
    + "".join(f'"{name}" {kind}, ' for name, kind in _COLUMNS.items())
    + "machine INTEGER)",
    # Apart, so that sorting does not carry them along.
    "CREATE TABLE texts (number INTEGER PRIMARY KEY, file TEXT, machine INTEGER, header TEXT)",
    "CREATE INDEX runs_started ON runs (started)",
    "CREATE INDEX runs_id ON runs (id)",
    "CREATE INDEX runs_name ON runs (name)",
    "CREATE TABLE tags (file TEXT, name TEXT, value TEXT, PRIMARY KEY (file, name)) WITHOUT ROWID",
    "CREATE TABLE parameters (file TEXT, name TEXT, value, PRIMARY KEY (file, name)) WITHOUT ROWID",
    "CREATE TABLE metrics (file TEXT, name TEXT, last REAL, min REAL, max REAL, count REAL, PRIMARY KEY (file, name)) "
    "WITHOUT ROWID",
    "CREATE TABLE machines (id INTEGER PRIMARY KEY, facts TEXT UNIQUE)",
    "CREATE TABLE facts (machine INTEGER, name TEXT, value TEXT, PRIMARY KEY (machine, name)) WITHOUT ROWID",
)
_INSERT = f"INSERT INTO runs VALUES (NULL, {', '.join('?' * (len(_COLUMNS) + 2))})"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _of_totals(name: str) -> Callable[[Header], Any]:
    return lambda header: _dict(header.summary.get("totals")).get(name)


def _of_summary(name: str) -> Callable[[Header], Any]:
    return lambda header: header.summary.get(name)


#: A run's fields by name, each from its header; None where it has none.
FIELDS: dict[str, Callable[[Header], Any]] = {
    "id": lambda header: header.id,
    "name": lambda header: header.name,
    "started": lambda header: header.started,
    "status": lambda header: header.status,
    "command": lambda header: header.command,
    "version": lambda header: header.about.version or None,
    "dataset": lambda header: header.about.dataset or None,
    "parent": lambda header: header.about.parent or None,
    "parent_kind": lambda header: header.about.parent_kind or None,
    "job": lambda header: header.rank.job if header.rank is not None else None,
    "commit": lambda header: header.about.git.get("commit"),
    "branch": lambda header: header.about.git.get("branch"),
    "dirty": lambda header: header.about.git.get("dirty"),
    "seconds": lambda header: header.seconds,
    **{name: _of_totals(name) for name in ("flops", "bops", "macs", "bytes")},
    **{name: _of_summary(name) for name in ("energy_j", "grams", "cost")},
    "missing": lambda header: _dict(header.summary.get("coverage")).get("missing"),
    **{name: _of_summary(name) for name in ("memory_bytes", "device_memory_bytes", "parameters")},
    "batch_size": lambda header: header.about.batch_size,
    "rank": lambda header: header.rank.rank if header.rank is not None else None,
}


def values(header: Header) -> dict[str, Any]:
    return {name: get(header) for name, get in FIELDS.items()}


def insert(database: sqlite3.Connection, file: str, header: Header) -> None:
    about, machine = header.about, _machine(database, header)
    added = database.execute(_INSERT, (file, *map(_number, values(header).values()), machine))
    keys = ("id", "name", "started", "seconds", "command", "status", "notes")
    raw = {key: getattr(header, key) for key in keys} | {"summary": header.summary, "about": about_json(about)}
    if header.rank is not None:
        raw["rank"] = rank_json(header.rank)
    text = json.dumps(raw, separators=(",", ":"))
    database.execute("INSERT INTO texts VALUES (?, ?, ?, ?)", (added.lastrowid, file, machine, text))
    pairs = ((file, encodable(name), _number(value)) for name, value in about.tags.items())
    database.executemany("INSERT OR REPLACE INTO tags VALUES (?, ?, ?)", pairs)
    database.executemany(
        "INSERT OR REPLACE INTO parameters VALUES (?, ?, ?)",
        ((file, encodable(name), _number(value)) for name, value in about.parameters.items()),
    )
    database.executemany(
        "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?, ?, ?)",
        (
            (file, encodable(name), *(_number(told.get(form)) for form in ("last", "min", "max", "count")))
            for name, told in about.metrics.items()
        ),
    )


def remove(database: sqlite3.Connection, files: Iterable[str]) -> None:
    names = [(name,) for name in files]
    database.executemany("DELETE FROM files WHERE name = ?", names)
    database.executemany("DELETE FROM texts WHERE number = (SELECT number FROM runs WHERE file = ?)", names)
    for table in ("runs", "tags", "parameters", "metrics"):
        database.executemany(f"DELETE FROM {table} WHERE file = ?", names)


def _machine(database: sqlite3.Connection, header: Header) -> int:
    """Most runs of a store are of a few machines, so those are kept once."""
    facts = json.dumps(dict(header.machine))
    found = database.execute("SELECT id FROM machines WHERE facts = ?", (facts,)).fetchone()
    if found is not None:
        return int(found[0])
    number = database.execute("INSERT INTO machines (facts) VALUES (?)", (facts,)).lastrowid
    pairs = ((number, encodable(name), encodable(str(value))) for name, value in header.machine.items())
    database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", pairs)
    return int(number or 0)


def _number(value: Any) -> Any:
    """As SQLite takes it: no integers of more than 64 bits, and what is no number is unknown."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < 1 << 62 else float(value) if abs(value) < 1 << 1000 else math.inf
    if value is None or isinstance(value, float | bool):
        return value
    return encodable(value if isinstance(value, str) else str(value))
