"""Flags for what only the user can know, for the verbs that price a run."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bitwatt.config import Settings

#: Flag -> how its text is shown in the help. Tables (peaks) belong into a file.
FLAGS = {
    "pue": "RATIO", "country": "ISO", "region": "NAME", "intensity_g_per_kwh": "GRAMS", "price_per_kwh": "PRICE",
    "price_per_device_hour": "PRICE", "currency": "NAME", "tdp_w": "WATTS", "requests_per_second": "RATE",
    "float32": "FORMAT", "grid_provider": "NAME", "grid_zone": "ZONE",
}  # fmt: skip
SWITCHES = ("show_modelled", "measured_peaks")


def add_settings_options(parser: argparse.ArgumentParser, only: Collection[str] = ()) -> None:
    """All of them, or those that a verb has a use for."""
    from bitwatt.config import about

    group = parser.add_argument_group("settings", "as in bitwatt.toml or [tool.bitwatt]; flags come first")
    for name, shown in [(name, shown) for name, shown in FLAGS.items() if not only or name in only]:
        group.add_argument(_flag(name), dest=f"setting_{name}", metavar=shown, help=about(name))
    for name in [name for name in SWITCHES if not only or name in only]:
        group.add_argument(_flag(name), dest=f"setting_{name}", action="store_const", const=True, help=about(name))


def settings_of(args: argparse.Namespace) -> Settings:
    """What the files of this folder and the flags say; a wrong value is told with its place. Read once: the program
    that is run may change the folder."""
    from bitwatt.config import settings

    if not hasattr(args, "settings"):
        args.settings = settings(flags=given(args))
    found: Settings = args.settings
    return found


def given(args: argparse.Namespace) -> dict[str, Any]:
    """The flags that were written."""
    flags = {name: getattr(args, f"setting_{name}", None) for name in (*FLAGS, *SWITCHES)}
    return {name: value for name, value in flags.items() if value is not None}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
