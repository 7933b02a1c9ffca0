"""Runs are kept completely or not at all, come back exactly, and old files stay readable."""

import json
import os
import zlib
from dataclasses import fields, replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bitwatt import store
from bitwatt.about import About
from bitwatt.dtypes import Precision
from bitwatt.errors import RunFileError, UnknownNameError
from bitwatt.fingerprint import summary
from bitwatt.folding import Folder
from bitwatt.ledger import Ledger, Row
from bitwatt.records import Layer, Op, Quantised, TensorSpec
from bitwatt.store import migrations
from factories import make_run, metered, mm_op, transformer_run

DATA = Path(__file__).parent / "data"
SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "reference" / "run-file.schema.json").read_text())

sizes = st.lists(st.integers(0, 2**40), max_size=4).map(tuple)
tensors = st.builds(
    TensorSpec,
    sizes,
    st.sampled_from(["float32", "int8", "a new format"]),
    st.none() | st.integers(0, 10**9),
    st.none() | st.lists(sizes, max_size=3).map(tuple),
)
plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
values = st.recursive(plain | tensors, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=8)
ops = st.builds(
    Op,
    st.text(min_size=1),
    st.lists(st.tuples(st.text(), values), max_size=3).map(tuple),
    st.lists(tensors, max_size=2).map(tuple),
    st.text(),
)
rows = st.lists(st.builds(Row, st.text(), st.text(), ops, st.integers(1, 10**15)), max_size=5)


def same(a, b) -> bool:
    return a.ledger == b.ledger and all(
        getattr(a, f.name) == getattr(b, f.name) for f in fields(a) if f.name != "ledger"
    )


def named(name: str, second: int, root: Path) -> Path:
    run = make_run(id=f"run-{name}-{second}", name=name, started=f"2026-01-02T03:04:{second:02}.000+00:00")
    return store.save(run, root)


@given(rows)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_was_called_comes_back_exactly(tmp_path, rows):
    run = make_run(rows)
    back = store.load(store.save(run, tmp_path))
    assert back.ledger == run.ledger
    assert repr(list(back.ledger)) == repr(list(run.ledger))  # True is not 1, and the order stays


def test_everything_else_comes_back_too(tmp_path):
    run = replace(told_run(), status="failed: ValueError: ü\n", notes=("a", "b"))
    assert same(store.load(store.save(run, tmp_path, summary=summary(run))), run)


def test_files_follow_the_published_schema(tmp_path):
    run = make_run(
        [Row("forward", "", Op("toy.mm", (("x", (float("inf"), None, TensorSpec((1,), "int8", 3, ((1, 2),)))),)), 1)],
        layers=quantised_run().layers,
        phase_seconds={"forward": 0.5},
        meter=metered(),
        about=told_run().about,
    )
    header, _, body = store.save(run, tmp_path, summary=summary(run)).read_bytes().partition(b"\n")
    for name, document in (("header", json.loads(header)), ("body", json.loads(zlib.decompress(body)))):
        jsonschema.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{name}"}).validate(document)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{name}"}).validate(document | {"more": 1})


def test_files_of_every_version_stay_readable():
    assert same(store.load(DATA / "run-v1.run"), transformer_run(2, 64, 3, 8))
    assert same(store.load(DATA / "run-v2.run"), quantised_run())
    assert same(store.load(DATA / "run-v3.run"), folded_run())
    assert same(store.load(DATA / "run-v4.run"), metered_run())
    assert same(store.load(DATA / "run-v5.run"), told_run())
    assert store.headers(DATA)[0][0].summary["totals"]["flops"] > 0


def told_run():
    points = ((0, 0.5, 0.25), (None, 1.0, float("inf")), (2, 1.5, 0.5))
    about = About(
        {"good": "", "team": "vision"}, "2.1", {"commit": "0" * 40, "branch": "main", "dirty": "no"},
        {"lr": 0.1, "epochs": 3, "ema": True, "norm": "layer", "clip": None, "top": float("-inf")}, "a set", 32,
        {"accuracy": {"last": 0.5, "min": 0.25, "max": float("inf"), "count": 3}}, "a-sweep", "sweep",
        {"accuracy": points},
    )  # fmt: skip
    return replace(metered_run(), id="20260102-030405-abc126", about=about)


def metered_run():
    meter = metered(settings={"pue": "1.2 (bitwatt.toml)"})
    return replace(folded_run(), id="20260102-030405-abc125", meter=meter, device_seconds={"forward": 1.0})


def folded_run():
    run = quantised_run()
    sizes = Ledger(Row("forward", "lm_head", mm_op(n, 64, 5000), n) for n in range(1, 20))
    return replace(run, id="20260102-030405-abc124", ledger=Folder(run.layers).ledger(run.ledger + sizes, 1))


def quantised_run():
    run = transformer_run(2, 64, 3, 8)
    weights = Quantised(Precision("nf4", "float", 4), 4.5, "a.library.Linear4bit: quant_type=nf4", kept_bits=8.5)
    activations = Quantised(Precision("ternary", "int", 1.58), 1.58, stored=False)
    layer = Layer("Linear4bit", "uint8", 320_000, ((5000, 64),), 180_000, weights, activations, 0.5, True)
    return replace(run, layers={**run.layers, "lm_head": layer, "odd": Layer("Odd", unknown="says nothing")})


def test_an_older_file_goes_through_every_migration(tmp_path, monkeypatch):
    path = store.save(make_run(name="old"), tmp_path)
    now = store.VERSION
    monkeypatch.setattr(migrations, "VERSION", now + 2)
    monkeypatch.setitem(store.MIGRATIONS, now, lambda header, body: (header | {"name": header["name"] + "er"}, body))
    monkeypatch.setitem(store.MIGRATIONS, now + 1, lambda header, body: (header | {"name": header["name"] + "!"}, body))
    assert store.load(path).name == "older!"
    assert store.runs(tmp_path)[0].name == "older!"


def test_there_is_a_migration_and_a_kept_file_for_every_version():
    assert sorted(store.MIGRATIONS) == list(range(1, store.VERSION))
    assert {path.name for path in DATA.glob("*.run")} == {f"run-v{v}.run" for v in range(1, store.VERSION + 1)}


def test_a_run_is_found_by_path_id_beginning_name_and_age(tmp_path):
    first, second, newest = (named(n, s, tmp_path) for n, s in (("a", 1), ("b", 2), ("a", 3)))
    for which, path in ((None, newest), ("run-b-2", second), ("run-b", second), ("a", newest), (first, first),
                        (str(first), first)):  # fmt: skip
        assert store.load(which, tmp_path).id == path.stem
    assert [header.id for header in store.runs(tmp_path)] == ["run-a-3", "run-b-2", "run-a-1"]


def test_a_run_that_is_not_there_is_asked_back_with_a_hint(tmp_path):
    with pytest.raises(UnknownNameError, match="bitwatt run script"):
        store.load(None, tmp_path / "nothing")
    named("a", 1, tmp_path), named("a", 2, tmp_path)
    with pytest.raises(UnknownNameError, match="begins the ids of 2 runs"):
        store.load("run-a", tmp_path)
    with pytest.raises(UnknownNameError, match="the newest are run-a-2, run-a-1"):
        store.load("nobody", tmp_path)
    with pytest.raises(RunFileError, match="No such file"):
        store.load(tmp_path / "gone.run")


def test_a_damaged_file_says_what_is_wrong_and_hides_no_other(tmp_path):
    path = named("good", 1, tmp_path)
    whole = store.save(make_run([Row("", "", mm_op(2, 3, 4), 1)]), tmp_path).read_bytes()
    broken = {
        "empty": (b"", "is empty"),
        "foreign": (b"PK\x03\x04 something else", "not a bitwatt run file"),
        "foreign-json": (b'{"hello": 1}\n', "not a bitwatt run file"),
        "cut-header": (whole[:40], "truncated"),
        "cut-body": (whole[:-5], "damaged"),
        "more": (whole + b"x", "damaged"),
        "newer": (whole.replace(f'"version":{store.VERSION}'.encode(), b'"version":99', 1), "upgrade"),
        "lacking": (b'{"format":"bitwatt.run","version":1}\n', "damaged"),
    }
    for name, (content, _) in broken.items():
        (tmp_path / f"{name}.run").write_bytes(content)
    for name, (_, message) in broken.items():
        with pytest.raises(RunFileError, match=message):
            store.load(tmp_path / f"{name}.run")
    found, damaged = store.headers(tmp_path)
    assert path in [header.path for header in found]
    assert len(damaged) == 6  # a header is intact in cut-body and more


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path, monkeypatch):
    path = named("a", 1, tmp_path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunFileError, match="No space left"):
        named("a", 1, tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_an_id_cannot_lead_out_of_the_folder(tmp_path):
    with pytest.raises(RunFileError, match="plain file name"):
        store.save(make_run(id="../escape"), tmp_path)


def test_listing_reads_first_lines_only(tmp_path):
    path = named("a", 1, tmp_path)
    header, _, _ = path.read_bytes().partition(b"\n")
    path.write_bytes(header + b"\nnot even compressed")
    assert store.runs(tmp_path)[0].name == "a"


@pytest.mark.parametrize("name", ["exp/resnet", "../../etc/passwd", "odd.run", "/abs/olute", "a\\b"])
def test_a_name_may_look_like_a_path(name, tmp_path):
    store.save(make_run(id="one", name=name), tmp_path)
    assert store.load(name, tmp_path).id == "one"
    with pytest.raises(RunFileError, match="cannot be read"):
        store.load(f"{name}/no/such.run", tmp_path)
