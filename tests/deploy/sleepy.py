"""A runtime of a third party, in one file, that takes as long as it is told: for loads whose outcome is known."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from bitwatt.deploy.measuring import batching
from bitwatt.deploy.records import Artefact, Case


class Model:
    def __init__(self, options: dict[str, Any]) -> None:
        self._options, self._calls, self._lock = options, 0, threading.Lock()

    def predict(self, rows: Any) -> Any:
        with self._lock:
            self._calls += 1
            now = self._calls
        told = self._options
        if now == told.get("dies_at"):
            os.kill(os.getpid(), signal.SIGKILL)
        if now == told.get("stalls_at"):
            with self._lock:  # nobody is served meanwhile
                time.sleep(told["stalls_s"])
        if now > told.get("raises_from", now):
            raise RuntimeError("out of handles")
        held = bytearray(told.get("bytes", 0))
        for page in range(0, len(held), 4096):
            held[page] = 1
        print("a runtime that prints")  # must not end up among the results
        time.sleep(told.get("takes", 0.0))
        return [0.0 for _ in rows]


class Sleepy:
    name, baseline, order = "sleepy", "", 99

    def applies(self, case: Case) -> bool:
        return False

    def build(self, case: Case, folder: Path) -> Artefact:
        raise NotImplementedError

    def load(self, artefact: Artefact, threads: int) -> Model:
        if artefact.options.get("broken"):
            raise OSError("the file is no model")
        return Model(dict(artefact.options))


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As pip would: an entry point of a distribution on the path, which fresh processes inherit."""
    home = folder / "sleepy-1.0.dist-info"
    home.mkdir()
    (home / "METADATA").write_text("Metadata-Version: 2.1\nName: sleepy\nVersion: 1.0\n")
    (home / "entry_points.txt").write_text("[bitwatt.deploy.runtimes]\nsleepy = deploy.sleepy:Sleepy\n")
    monkeypatch.syspath_prepend(str(folder))


def artefact(folder: Path, **options: Any) -> Artefact:
    return Artefact("sleepy", "sleepy", str(folder), (), "predict", options=options)


def rows(folder: Path, inputs: Any) -> Path:
    return batching.save(inputs, folder / "rows.pickle")
