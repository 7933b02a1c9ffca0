"""docs/paper.md is what examples/paper makes of what was measured, and that is what would be measured now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from examples.paper import drawing, factor, gpu, settings
from examples.paper.coverage import asking, gathering
from examples.paper.page import PARTS, TARGET, draw, measured, on_gpu, page

DATA = measured()


def test_the_page_is_made_of_what_was_measured() -> None:
    assert set(DATA) == set(PARTS)
    assert TARGET.read_text(encoding="utf-8") == page(DATA, on_gpu()), "run python -m examples.paper --render"


def test_the_figures_are_made_of_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = drawing.FOLDER
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setattr(drawing, "FOLDER", tmp_path)
    draw(DATA, on_gpu())
    names = {file.name for file in tmp_path.iterdir()}
    assert names == {file.name for file in kept.iterdir()}
    if matplotlib.__version__ == "3.11.2":  # others draw the same with other bytes
        for name in names:
            if name.endswith(".svg"):
                assert (tmp_path / name).read_text() == (kept / name).read_text(), name


def test_the_search_would_find_the_same_again() -> None:
    again = json.loads(json.dumps(settings.measure()))
    assert again == DATA["settings"]


def test_the_factors_would_be_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor, "SETTINGS", factor.SETTINGS[:2])
    assert factor.measure() == DATA["factor"][:2]


def test_bitwatt_would_answer_the_same_again() -> None:
    again: dict[str, Any] = {"version": DATA["coverage"]["bitwatt"]["version"], **asking.ask("bitwatt")}
    assert gathering.scores(again) == gathering.scores(DATA["coverage"]["bitwatt"])
    assert json.loads(json.dumps(again["training"])) == DATA["coverage"]["bitwatt"]["training"]


def test_a_profiler_that_raises_is_scored_zero_there() -> None:
    assert all("error" in one for one in DATA["coverage"]["thop"]["classical"].values())
    assert gathering.scores(DATA["coverage"]["thop"])["classical"] == 0


def numbers(found: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number with its place, but times."""
    if isinstance(found, dict):
        for key, value in found.items():
            yield from numbers(value, f"{path}/{key}")
    elif isinstance(found, list):
        for place, value in enumerate(found):
            yield from numbers(value, f"{path}/{place}")
    elif isinstance(found, int | float):
        yield path, found


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_everything_would_be_measured_the_same_again(part: str) -> None:
    again = dict(numbers(PARTS[part].measure()))
    before = dict(numbers(DATA[part]))
    assert again.keys() == before.keys()
    assert again == pytest.approx(before, rel=0.01)


def test_nothing_of_a_gpu_is_said_without_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "TARGET", tmp_path / "none.json")
    assert "Not yet measured" in page(DATA, on_gpu())
