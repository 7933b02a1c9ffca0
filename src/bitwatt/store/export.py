"""Tables out of a store: into DuckDB to query, or into Parquet and CSV files."""

from __future__ import annotations

import csv
import importlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from bitwatt.errors import BitwattError, RunFileError, UnknownNameError
from bitwatt.harmless import in_csv
from bitwatt.records import Run
from bitwatt.store import load
from bitwatt.store.runfile import Header
from bitwatt.store.tables import BIG, BOOL, INT, NAMES, REAL, TEXT, Row, Table, inside_table, runs_table

FORMATS = (".parquet", ".csv")
_DUCKDB = {TEXT: "VARCHAR", INT: "BIGINT", BIG: "DECIMAL(38,0)", REAL: "DOUBLE", BOOL: "BOOLEAN"}
#: Rows that are written at once.
_GROUP = 50_000
_LARGEST = 10**38 - 1

Trouble = Callable[[str], None]


def table_of(name: str, headers: Sequence[Header], trouble: Trouble) -> Table:
    """One of NAMES, of these runs. A file that cannot be read is told of and left out."""
    if name not in NAMES:
        raise UnknownNameError(f"there is no table {name!r}; there are {', '.join(NAMES)}")
    return runs_table(headers) if name == "runs" else inside_table(name, _loaded(headers, trouble))


def _loaded(headers: Iterable[Header], trouble: Trouble) -> Iterator[Run]:
    for header in headers:
        try:
            yield load(header.path)
        except RunFileError as error:
            trouble(str(error))


def write(table: Table, path: Path) -> int:
    """To a file whose name says the format, completely or not at all: how many rows."""
    if path.suffix not in FORMATS:
        raise BitwattError(f"{path} does not say its format: it ends in {' or '.join(FORMATS)}")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        rows = (_to_csv if path.suffix == ".csv" else _to_parquet)(table, temporary)
        os.replace(temporary, path)
        return rows
    except OSError as error:
        raise BitwattError(f"{path} could not be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _to_csv(table: Table, path: Path) -> int:
    rows = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        for row in table.rows:
            writer.writerow([in_csv(cell) if isinstance(cell := row[name], str) else cell for name in table.columns])
            rows += 1
    return rows


def _to_parquet(table: Table, path: Path) -> int:
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        return _by_duckdb(table, path)
    types = {TEXT: arrow.string(), INT: arrow.int64(), BIG: arrow.decimal128(38, 0), REAL: arrow.float64(),
             BOOL: arrow.bool_()}  # fmt: skip
    schema = arrow.schema([(name, types[kind]) for name, kind in table.columns.items()])
    number = 0
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _groups(table.rows):
            columns = {
                name: [_plain(row[name], kind, Decimal) for row in group] for name, kind in table.columns.items()
            }
            writer.write_table(arrow.table(columns, schema=schema))
            number += len(group)
    return number


def _by_duckdb(table: Table, path: Path) -> int:
    database = connected("Parquet needs pyarrow or DuckDB; pip install pyarrow")
    number = fill(database, table)
    target = str(path).replace("'", "''")
    database.execute(f"COPY {table.name} TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
    return number


def connected(missing: str) -> Any:
    """A database in memory, which fetches nothing from anywhere."""
    try:
        duckdb: Any = importlib.import_module("duckdb")
    except ImportError:
        raise BitwattError(missing) from None
    config = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    return duckdb.connect(":memory:", config=config)


def fill(database: Any, table: Table) -> int:
    """Put a table in. It goes through a file, as row by row it would take minutes."""
    number = 0
    columns = ", ".join(f'"{name}" {_DUCKDB[kind]}' for name, kind in table.columns.items())
    types = ", ".join(f"\"{name}\": '{_DUCKDB[kind]}'" for name, kind in table.columns.items())
    database.execute(f"CREATE TABLE {table.name} ({columns})")
    with tempfile.TemporaryDirectory(prefix="bitwatt-") as folder:
        path = Path(folder) / "rows.json"
        for group in _groups(table.rows):
            with path.open("w", encoding="utf-8") as file:
                for row in group:
                    cells = {name: _plain(row[name], kind, str) for name, kind in table.columns.items()}
                    file.write(json.dumps(cells) + "\n")
            database.execute(
                f"INSERT INTO {table.name} SELECT * FROM read_json(?, format='newline_delimited', columns={{{types}}})",
                [str(path)],
            )
            number += len(group)
    return number


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    rest = iter(rows)
    while group := list(islice(rest, _GROUP)):
        yield group


def _plain(value: Any, kind: str, big: Callable[[Any], Any]) -> Any:
    """As the column's type has it; None for what it cannot hold."""
    if value is None:
        return None
    if kind == TEXT:
        return str(value).encode("utf-8", "replace").decode()
    if kind == BOOL:
        return bool(value)
    if kind == REAL:
        number = float(value)
        return number if big is Decimal or math.isfinite(number) else str(number)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    whole = round(value)
    if kind == INT:
        return whole if abs(whole) < 1 << 63 else None
    return big(whole) if abs(whole) <= _LARGEST else None
