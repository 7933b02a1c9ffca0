"""The meter as a session holds it: whatever goes wrong there is a remark, never the user's problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bitwatt.config import Settings
from bitwatt.context import Token
from bitwatt.metering.configured import Configured, configured
from bitwatt.metering.meter import Meter, the_meter
from bitwatt.metering.sync import synchronise
from bitwatt.metering.window import Window
from bitwatt.readings import Metered


class Attached:
    """A session's window, opened last and closed first, so that it holds the program and little of us."""

    def __init__(self, meter: bool | Meter, token: Token, settings: Settings | None = None) -> None:
        self.remarks: list[str] = []
        self._window: Window | None = None
        self._configured = Configured()
        self._began = datetime.now(UTC)
        if not meter:
            return
        try:
            self._configured = configured(settings)
            self._window = (the_meter() if meter is True else meter).window(self._configured.options)
            token.meter = self._window.regions
        except Exception as error:
            self._failed(error)

    @property
    def is_on(self) -> bool:
        return self._window is not None

    def synchronise(self) -> None:
        if self._window is not None:
            synchronise()

    def end(self) -> None:
        if self._window is not None:
            try:
                self._window.end()
            except Exception as error:
                self._failed(error)
                self._window = None

    def metered(
        self, phase_seconds: Mapping[str, float], device_seconds: Mapping[str, float], usage: Mapping[str, float]
    ) -> Metered | None:
        """`usage` is what others know of it."""
        if self._window is None:
            return None
        try:
            found = self._window.metered(phase_seconds, device_seconds, self._configured.told)
            found = replace(found, usage={**found.usage, **usage})
        except Exception as error:
            self._failed(error)
            return None
        if self._window.ended is None or all(part.energy_j is None for part in found.energy):
            return found
        return replace(found, grid=self._grid())

    def _grid(self) -> dict[str, Any]:
        """What the grid says of the run, if the settings name a service: that may take as long as they allow."""
        if self._configured.settings.grid_provider is None:
            return {}
        from bitwatt import grid  # few need it

        try:
            return grid.at_close(self._configured.settings, self._began, datetime.now(UTC))
        except KeyboardInterrupt:  # the program has ended: what is left to interrupt is this
            self.remarks.append("the grid's answer was not waited for")
        except Exception as error:
            self._failed(error)
        return {}

    def _failed(self, error: Exception) -> None:
        remark = f"the meter failed: {type(error).__name__}: {error}"
        if remark not in self.remarks:
            self.remarks.append(remark)
