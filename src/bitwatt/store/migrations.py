"""Older run files: each version's header and body are turned into the next one's as they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FORMAT, VERSION = "bitwatt.run", 5

Json = dict[str, Any]

#: Version -> what turns a (header, body) of that version into one of the next. Append only; tests/data keeps a file of
#: every version. `body` is None when only the header is read.
MIGRATIONS: dict[int, Callable[[Json, Json | None], tuple[Json, Json | None]]] = {}


def _layers_as_objects(header: Json, body: Json | None) -> tuple[Json, Json | None]:
    """Version 2 writes layers as objects, since they have come to hold how their weights are written."""
    if body is None:
        return header, None
    names = ("kind", "weight_dtype", "parameters")
    layers = {scope: dict(zip(names, layer, strict=True)) for scope, layer in body["layers"].items()}
    return header, body | {"layers": layers}


MIGRATIONS[1] = _layers_as_objects


def _nothing_folded(header: Json, body: Json | None) -> tuple[Json, Json | None]:
    """Version 3 has rows in which many sizes of an op are folded, and says which rank of a job a run was."""
    return header, None if body is None else body | {"folded": []}


MIGRATIONS[2] = _nothing_folded


def _nothing_metered(header: Json, body: Json | None) -> tuple[Json, Json | None]:
    """Version 4 holds what a run used of the machine."""
    return header, None if body is None else body | {"meter": None}


MIGRATIONS[3] = _nothing_metered


def _nothing_told(header: Json, body: Json | None) -> tuple[Json, Json | None]:
    """Version 5 says what a run is about: tags, parameters, code, metrics."""
    return header | {"about": {}}, None if body is None else body | {"metrics": {}}


MIGRATIONS[4] = _nothing_told


def migrated(header: Json, body: Json | None) -> tuple[Json, Any]:
    while header["version"] < VERSION:
        version = header["version"]
        header, body = MIGRATIONS[version](header, body)
        header = header | {"version": version + 1}
    return header, body
