"""What every test may use: one thread for torch, a store of its own, and a measured call."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers of pytest-xdist share two cores

if find_spec("hypothesis") is not None:
    from hypothesis import HealthCheck
    from hypothesis import settings as hypothesis_settings

    # An example takes as long as a crowded machine lets it stand still: that is no failure.
    hypothesis_settings.register_profile("crowded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    hypothesis_settings.load_profile("crowded")


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are kept in the current folder by default: give each test one of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BITWATT_STORE", raising=False)
    monkeypatch.setenv("BITWATT_CACHE", str(tmp_path.parent / "bitwatt-cache"))


@pytest.fixture(autouse=True)
def _nothing_held() -> Iterator[None]:
    """A test that plays a joblib worker in this process must not leave it watched, as a worker is."""
    yield
    if "bitwatt.backends.watchers" in sys.modules:
        sys.modules["bitwatt.backends.watchers"].WATCHERS.release()
