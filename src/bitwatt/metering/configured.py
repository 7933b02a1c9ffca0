"""What the settings of the folder say to sensors: a model needs numbers that only the user has."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

from bitwatt.config import Settings, settings
from bitwatt.errors import BitwattError


@dataclass(frozen=True, slots=True)
class Configured:
    """Keyword arguments by sensor, and what was set and where, for the report."""

    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)


def configured(given: Settings | None = None) -> Configured:
    """A file that is wrong is told of, and nothing of it is applied: the user's program comes first."""
    try:
        found = settings() if given is None else given
    except (BitwattError, OSError) as error:
        warnings.warn(f"bitwatt: settings are not applied: {error}", stacklevel=3)
        return Configured(told={"settings": f"not applied: {error}"})
    given_to: dict[str, dict[str, Any]] = {
        "modelled": {"tdp_w": found.tdp_w, "cores": found.modelled_cores, "curve": found.modelled_curve},
        "dcgm": {"url": found.dcgm_url},
    }
    options = {name: {key: value for key, value in one.items() if value} for name, one in given_to.items()}
    return Configured({name: one for name, one in options.items() if one}, found.told(), found)
