"""bitwatt: what an AI workload needs and what it cost, counted exactly, by phase and layer, without changing your code.

The shop window. Names are loaded on first use, so importing bitwatt is quick and imports no framework.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "measure": "bitwatt.session",
    "Session": "bitwatt.session",
    "phase": "bitwatt.context",
    "Meter": "bitwatt.metering",
    "count": "bitwatt.observing",
    "metric": "bitwatt.telling",
    "tag": "bitwatt.telling",
    "parameter": "bitwatt.telling",
    "describe": "bitwatt.telling",
    "About": "bitwatt.about",
    "meter_requests": "bitwatt.serving",
    "estimate": "bitwatt.estimation",
    "totals": "bitwatt.pricing",
    "Totals": "bitwatt.pricing",
    "CostModel": "bitwatt.pricing",
    "cost_model": "bitwatt.pricing",
    "cost_models": "bitwatt.pricing",
    "report": "bitwatt.reports",
    "what_if": "bitwatt.whatif",
    "sweep": "bitwatt.whatif",
    "compare": "bitwatt.comparing",
    "join": "bitwatt.jobs",
    "load": "bitwatt.store",
    "save": "bitwatt.store",
    "runs": "bitwatt.store",
    "rule": "bitwatt.registry",
    "free": "bitwatt.registry",
    "Run": "bitwatt.records",
    "Op": "bitwatt.records",
    "Work": "bitwatt.records",
    "TensorSpec": "bitwatt.records",
    "matmul": "bitwatt.formulas.linalg",
    "FLOPS": "bitwatt.costs.flops",
    "MACS": "bitwatt.costs.flops",
    "BOPS": "bitwatt.costs.bops",
    "BitwattError": "bitwatt.errors",
    "load_ipython_extension": "bitwatt.notebook",
}

if TYPE_CHECKING:
    from bitwatt.about import About as About
    from bitwatt.comparing import compare as compare
    from bitwatt.context import phase as phase
    from bitwatt.costs.bops import BOPS as BOPS
    from bitwatt.costs.flops import FLOPS as FLOPS
    from bitwatt.costs.flops import MACS as MACS
    from bitwatt.errors import BitwattError as BitwattError
    from bitwatt.estimation import estimate as estimate
    from bitwatt.formulas.linalg import matmul as matmul
    from bitwatt.jobs import join as join
    from bitwatt.metering import Meter as Meter
    from bitwatt.notebook import load_ipython_extension as load_ipython_extension
    from bitwatt.observing import count as count
    from bitwatt.pricing import CostModel as CostModel
    from bitwatt.pricing import Totals as Totals
    from bitwatt.pricing import cost_model as cost_model
    from bitwatt.pricing import cost_models as cost_models
    from bitwatt.pricing import totals as totals
    from bitwatt.records import Op as Op
    from bitwatt.records import Run as Run
    from bitwatt.records import TensorSpec as TensorSpec
    from bitwatt.records import Work as Work
    from bitwatt.registry import free as free
    from bitwatt.registry import rule as rule
    from bitwatt.reports import report as report
    from bitwatt.serving import meter_requests as meter_requests
    from bitwatt.session import Session as Session
    from bitwatt.session import measure as measure
    from bitwatt.store import load as load
    from bitwatt.store import runs as runs
    from bitwatt.store import save as save
    from bitwatt.telling import describe as describe
    from bitwatt.telling import metric as metric
    from bitwatt.telling import parameter as parameter
    from bitwatt.telling import tag as tag
    from bitwatt.whatif import sweep as sweep
    from bitwatt.whatif import what_if as what_if

__all__ = [*_WHERE, "__version__"]


#: Modules that need a launcher to be installed, loaded when they are asked for.
_LAUNCHERS = ("ray", "submitit")


def __getattr__(name: str) -> Any:
    if name in _LAUNCHERS:
        return importlib.import_module(f"bitwatt.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'bitwatt' has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
