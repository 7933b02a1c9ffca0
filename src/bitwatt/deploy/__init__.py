"""The deployment lab: ways to run one trained model, measured side by side, and which of them to take.

`compare` is loaded on first use: importing this imports no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bitwatt.deploy.lab import compare as compare
    from bitwatt.deploy.telling.findings import Findings as Findings
    from bitwatt.deploy.telling.findings import read as read

__all__ = ["Findings", "compare", "read"]

_WHERE = {"compare": "lab", "Findings": "telling.findings", "read": "telling.findings"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'bitwatt.deploy' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"bitwatt.deploy.{_WHERE[name]}"), name)
