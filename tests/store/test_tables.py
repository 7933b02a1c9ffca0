"""Runs as tables: exact counts, hostile names, every format by what is installed."""

import csv
import json
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet
import pytest

from bitwatt import store
from bitwatt.cli import main
from bitwatt.errors import BitwattError
from bitwatt.pricing import totals
from bitwatt.store import export
from bitwatt.store.index import Index
from bitwatt.store.tables import INSIDE, NAMES
from factories import metered

HOSTILE = "=cmd|'/c calc'!A0\x1b[31m\n\"; DROP TABLE runs; --<script>"


@pytest.fixture
def two(kept):
    kept("a", name=HOSTILE, tags={"team": "=1+1"}, parameters={"lr": 0.1, "n": 7, "=x": "@y"}, batch_size=4,
         metrics={"accuracy": 0.9, "val/loss": float("inf")},
         totals={"flops": 3 * 10**30, "bops": 1, "macs": 2, "bytes": 5},
         started="2026-01-02T00:00:00.000+00:00")  # fmt: skip
    kept("b", name="plain", tags="good", parameters={"lr": 0.2, "n": "many"}, meter=metered())
    return Index().select()


def told(capsys, *arguments: str, status: int = 0) -> str:
    assert main(list(arguments)) == status
    captured = capsys.readouterr()
    return captured.err if status else captured.out


@pytest.mark.parametrize("by_duckdb", [False, True])
@pytest.mark.parametrize("table", NAMES)
def test_parquet_holds_what_the_runs_hold(two, table, by_duckdb):
    made = export.table_of(table, two, pytest.fail)
    rows = list(made.rows)
    with pytest.MonkeyPatch.context() as patch:
        if by_duckdb:
            patch.setitem(sys.modules, "pyarrow", None)
        assert export.write(export.table_of(table, two, pytest.fail), Path("x.parquet")) == len(rows) > 1
    read = pyarrow.parquet.read_table("x.parquet").to_pylist()
    assert [list(row) for row in read] == [list(made.columns)] * len(rows)
    for got, row in zip(read, rows, strict=True):
        assert {k: int(v) if isinstance(v, Decimal) else v for k, v in got.items()} == {k: row[k] for k in made.columns}


def test_a_row_of_runs(two):
    row = next(row for row in export.table_of("runs", two, pytest.fail).rows if row["id"] == "a")
    assert row["flops"] == 3 * 10**30
    assert row["tag_team"] == "=1+1"
    assert (row["param_lr"], row["param_n"], row["param_x"]) == (0.1, "7", "@y")
    assert (row["metric_accuracy"], row["metric_val_loss"]) == (0.9, float("inf"))
    assert (row["tag_good"], row["batch_size"], row["machine_torch"]) == (None, 4, "2.13.0")


def test_tables_of_what_is_inside_add_up_to_the_totals(two):
    run = store.load("b")
    for name in ("phases", "layers", "ops"):
        rows = list(INSIDE[name][1](run))
        for model in ("flops", "bops", "macs", "bytes"):
            assert sum(row[model] for row in rows) == totals(run, model).total
    energy = {row["phase"]: (row["energy_j"], row["energy_how"]) for row in INSIDE["phases"][1](run)}
    assert energy["forward"] == (1000.0, "apportioned")
    assert energy["loss"] == (None, None)


def test_a_spreadsheet_computes_nothing(two):
    export.write(export.table_of("runs", two, pytest.fail), Path("x.csv"))
    with open("x.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    first = next(row for row in rows if row["id"] == "a")
    assert first["name"] == "'" + HOSTILE
    assert first["tag_team"] == "'=1+1"
    assert first["flops"] == str(3 * 10**30)
    assert not [cell for row in rows for cell in row.values() if cell[:1] in ("=", "+", "@", "\t")]


def test_a_file_that_cannot_be_read_is_told_of_and_left_out(two):
    Path(".bitwatt/a.run").write_bytes(Path(".bitwatt/a.run").read_bytes()[:-9])
    said = []
    rows = list(export.table_of("ops", two, said.append).rows)
    assert {row["run"] for row in rows} == {"b"}
    assert "damaged" in said[0]


def test_sql_asks_all_tables(two, capsys):
    assert told(capsys, "sql", "select name, flops from runs where tag_good = 'yes'").split()[2] == "plain"
    answer = told(
        capsys, "sql", "select count(*) as n, sum(o.flops) as f from ops o join runs on run = id", "--format", "json"
    )
    expected = sum(totals(store.load(name), "flops").total for name in "ab")
    assert json.loads(answer)[0]["f"] == expected
    for table in NAMES:
        assert json.loads(told(capsys, "sql", f"select count(*) as n from {table}", "--format", "json"))[0]["n"] > 0
    rows = json.loads(
        told(capsys, "sql", "select name, flops, metric_val_loss from runs order by id", "--format", "json")
    )
    assert rows[0] == {"name": HOSTILE, "flops": 3 * 10**30, "metric_val_loss": "inf"}
    assert "\x1b" not in told(capsys, "sql", "select name from runs")
    assert "'=cmd" in told(capsys, "sql", "select name from runs", "--format", "csv")
    only = told(capsys, "sql", "select id from runs", "--where", "tag:good", "--format", "csv")
    assert only == "id\nb\n"
    assert "column_name" in told(capsys, "sql", "describe runs")


def test_sql_mistakes_are_one_line(two, capsys, monkeypatch):
    assert told(capsys, "sql", "selct 1", status=2).count("\n") == 1
    assert "colour" in told(capsys, "sql", "select colour from runs", status=2)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert told(capsys, "sql", "select 1", status=2) == "bitwatt: SQL needs DuckDB; pip install 'bitwatt[sql]'\n"
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "needs pyarrow or DuckDB" in told(capsys, "export", "--to", "x.parquet", status=2)
    assert not list(Path().glob("*.tmp"))


def test_export_says_what_it_wrote(two, capsys):
    assert told(capsys, "export", "--to", "x.parquet") == "2 rows of 2 runs in x.parquet\n"
    assert told(capsys, "export", "tag:good", "--table", "metrics", "--to", "x.csv") == "0 rows of 1 run in x.csv\n"
    assert "ends in .parquet or .csv" in told(capsys, "export", "--to", "x.xls", status=2)
    assert "there is no table 'cats'" in told(capsys, "export", "--to", "x.csv", "--table", "cats", status=2)
    with pytest.raises(BitwattError, match="could not be written"):
        export.write(export.table_of("runs", two, pytest.fail), Path("nowhere/x.csv"))


def test_counts_beyond_38_digits_are_unknown_rather_than_wrong(kept):
    kept("a", totals={"flops": 10**40, "bops": 1})
    export.write(export.table_of("runs", Index().select(), pytest.fail), Path("x.parquet"))
    assert pyarrow.parquet.read_table("x.parquet").to_pylist()[0]["flops"] is None


def test_a_store_of_runs_without_anything_is_a_table_too(kept):
    assert [row["id"] for row in export.table_of("runs", [], pytest.fail).rows] == []
    assert export.write(export.table_of("runs", [], pytest.fail), Path("x.parquet")) == 0
