"""What bitwatt keeps of a machine between runs (baselines, probes, answers of the grid): where, under which name."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path


def folder() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home) / "bitwatt"


def machine() -> str:
    """The same after the next start."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with suppress(OSError):
            if identity := Path(path).read_bytes().strip():
                return hashlib.sha256(identity).hexdigest()[:12]
    return hashlib.sha256(platform.node().encode()).hexdigest()[:12]
