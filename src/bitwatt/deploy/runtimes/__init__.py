"""Ways to run a model: one file for each, plug-ins by entry point.

A file here is a runtime if it has a name `RUNTIME`: a class without arguments that is a `records.Runtime`. It imports
third-party packages when it is asked to build or load, never before, and to load only what serving would need.
"""

from __future__ import annotations

from typing import Any

from bitwatt.deploy.records import Artefact, Loaded, Runtime
from bitwatt.errors import UnknownNameError
from bitwatt.plugins import Plugins

RUNTIMES: Plugins[Any] = Plugins("bitwatt.deploy.runtimes", "RUNTIME")


def runtime(name: str) -> Runtime:
    if name not in RUNTIMES:
        raise UnknownNameError(f"there is no runtime {name!r}; there are {', '.join(RUNTIMES)}")
    made: Runtime = RUNTIMES[name]()
    return made


def load(artefact: Artefact, threads: int = 1) -> Loaded:
    """Ready to be asked, in this process."""
    return runtime(artefact.runtime).load(artefact, threads)
