"""Whatever stands in first lines: listings say that it is damaged, or show it, and never fail."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bitwatt import store
from bitwatt.about import About, about_json
from bitwatt.cli import main
from bitwatt.harmless import in_csv, on_terminal
from bitwatt.store.index import Index
from factories import make_run

GOOD = {
    "format": "bitwatt.run", "version": store.VERSION, "id": "x", "name": "x", "command": "", "status": "ok",
    "notes": [], "started": "2026-01-01T00:00:00.000+00:00", "seconds": 1.0, "machine": {"cpu": "a"},
    "summary": {"totals": {"flops": 3}, "coverage": {"missing": 0}, "energy_j": 2.0},
    "about": {"tags": {"a": "b"}, "parameters": {"lr": 0.1},
              "metrics": {"m": {"last": 1, "min": 1, "max": 1, "count": 1}}, "git": {"commit": "0"},
              "version": "1", "batch_size": 3},
    "rank": {"rank": 0, "world": 1, "job": "j"},
}  # fmt: skip
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = [(key,) for key in GOOD if key not in ("format", "version")] + [
    (outer, inner) for outer in ("summary", "about", "rank", "machine") for inner in GOOD[outer]
] + [("about", "metrics", "m"), ("about", "parameters", "lr"), ("summary", "totals", "flops")]  # fmt: skip


def changed(place: tuple[str, ...], value: object) -> dict:
    whole = json.loads(json.dumps(GOOD))
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return whole


@given(st.sampled_from(PLACES), anything)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_no_first_line_breaks_a_listing(capsys, place, value):
    Path(".bitwatt").mkdir(exist_ok=True)
    Path(".bitwatt/x.run").write_bytes(json.dumps(changed(place, value)).encode() + b"\n")
    with Index() as index:
        assert index.count() + len(index.damaged) == 1
    found, damaged = store.headers()
    assert len(found) + len(damaged) == 1
    for format in ("text", "json", "csv"):
        assert main(["ls", "--format", format, "--sort", "-metric.m"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown.partition("[\n")[0]


@pytest.mark.parametrize("name", ["caf\udce9", "\ud800", "a\0b", "x" * 10_000, "", "\u202e", "=1", "%s%n", "../../x"])
def test_runs_of_any_name_are_kept_listed_and_found(name, capsys):
    store.save(
        make_run(id="r", name=name, about=About(tags={"t" + name.replace("=", ""): name}, parameters={name: name}))
    )
    with Index() as index:
        assert [header.name for header in index.select()] == [name]
        assert [header.name for header in index.select([f"name~{name.strip()}"])] == [name]
    for format in ("text", "json", "csv"):
        assert main(["ls", "--format", format]) == 0
        capsys.readouterr()
    assert store.load("r").about.parameters == {name: name}


def test_texts_are_made_harmless():
    assert on_terminal("a\x1b[2J\tb\n\u202ec\ud800é") == "a?[2J b ?c?é"
    assert [in_csv(text) for text in ("=1", "+1", "-1", "@x", "\tx", "a=1", "", "\ud800")] == [
        "'=1", "'+1", "'-1", "'@x", "'\tx", "a=1", "", "?",
    ]  # fmt: skip
    assert about_json(About()) == {}
