"""A pytest plugin for the test suites of other libraries: measures every test, and writes down which ones fail."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import bitwatt

MEASURING = "SUITE_MEASURING" in os.environ
ONLY = Path(os.environ.get("SUITE_ONLY", os.devnull))
OUTCOMES = Path(os.environ.get("SUITE_OUTCOMES", os.devnull))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    if not MEASURING:
        return (yield)
    with bitwatt.measure(item.name, keep=False):
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    only = set(ONLY.read_text().splitlines())
    if only:
        items[:] = [item for item in items if item.nodeid in only]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if (report.failed or report.when == "call") and "PYTEST_XDIST_WORKER" not in os.environ:
        with OUTCOMES.open("a") as file:
            file.write(f"{report.outcome} {report.nodeid}\n")
