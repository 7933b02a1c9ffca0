"""Reads sensors while a session is open, and tells what it used: one meter a process, one poller a machine."""

from __future__ import annotations

from bitwatt.metering.attached import Attached
from bitwatt.metering.meter import Meter, the_meter
from bitwatt.metering.window import Window

__all__ = ["Attached", "Meter", "Window", "the_meter"]
