"""Indexes of these tests go to a cache of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bitwatt import store
from bitwatt.about import described
from bitwatt.fingerprint import summary
from factories import transformer_run


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("BITWATT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bitwatt"


@pytest.fixture
def kept() -> Callable[..., Any]:
    """Keep a run in .bitwatt here: fields of the run, and what it is about."""
    base = transformer_run(1, 16, batch=4)
    priced = summary(base)

    def keep(
        id: str, store_: Any = None, *, metrics: dict[str, float] | None = None, totals: Any = None, **fields: Any
    ) -> Any:
        about = described(**{key: fields.pop(key) for key in list(fields) if key in (
            "tags", "version", "parameters", "dataset", "batch_size", "parent", "parent_kind")})  # fmt: skip
        told = {
            name: {"last": value, "min": value, "max": value, "count": 1} for name, value in (metrics or {}).items()
        }
        series = {name: ((None, 0.5, value),) for name, value in (metrics or {}).items()}
        run = replace(base, id=id, about=replace(about, metrics=told, series=series), **fields)
        return store.save(run, store_, summary={**priced, **({"totals": totals} if totals else {})})

    return keep
