"""What is known of a method of a class ahead of its calls: found out once."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn import facts, probes, results
from bitwatt.backends.sklearn.names import PHASES, op_name

#: Methods after which an estimator knows new things.
FITS = frozenset({"fit", "partial_fit", "fit_transform", "fit_predict"})


class Plan:
    """How calls of `function`, the method of a class, are watched. Who counts calls tells methods apart by it."""

    __slots__ = (
        "fits", "function", "given", "hollow", "kind", "look", "method", "name", "phase", "scope", "silent", "streams",
        "unheard",
    )  # fmt: skip

    def __init__(self, kind: type, method: str, function: Any) -> None:
        self.kind, self.method, self.function, self.scope = kind, method, function, kind.__name__
        self.fits, self.streams = method in FITS, method == "partial_fit"
        self.silent = facts.is_whole(kind, method)
        self.unheard = probes.unheard_by(kind)
        self.phase = PHASES.get(method, "fit")
        self.look = results.looks_at(kind, method)
        self.name = op_name(kind, method, function)
        self.hollow = self.name in facts.hollow
        self.given: facts.Given | None = None  # what the last call was given
