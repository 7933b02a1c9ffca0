"""onnxruntime with integer kernels, where the model has products that they can do; else an honest no.

Linear models are spelled out as products (MatMul) first, since the operators that scikit-learn's converter prefers for
them (LinearClassifier) have no integer kernel. Of the two ways to quantise, the one is taken that does more in
integers, then the one that flips fewer labels.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from bitwatt.deploy.records import Artefact, Case, Loaded
from bitwatt.deploy.runtimes.onnx_fp32 import Session, keep

WAYS = ("dynamic", "static")


class OnnxInt8:
    name, baseline, order = "onnx-int8", "", 12

    def applies(self, case: Case) -> bool:
        return case.framework == "sklearn"

    def build(self, case: Case, folder: Path) -> Artefact:
        from bitwatt.deploy.making import converting, products, quantising

        made = converting.convert(case)
        made = replace(made, model=products.spelled_out(made.model))
        found = []
        for way in WAYS if quantising.has_products(made.model) else WAYS[:1]:
            place = folder / way
            place.mkdir()
            found.append(quantised(case, made, place, self.name, way))
        best = min(found, key=lambda one: (-(one.precision.integer_share or 0.0), _flips(case, one)))
        return moved(best, folder)

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Session(artefact, threads)


RUNTIME = OnnxInt8


def quantised(case: Case, made: Any, folder: Path, name: str, way: str) -> Artefact:
    """One of the two graphs, and what the runtime makes of it."""
    from bitwatt.deploy.making import quantising

    if way == "dynamic":
        graph = quantising.dynamic(made.model)
        told = "quantised dynamically: ranges of activations are found in each call"
    else:
        rows, source = quantising.calibration(case)
        graph = quantising.static(made.model, made.feeds, rows)
        told = f"quantised statically: {source}"
    artefact = keep(case, graph, folder, name, made.feeds, made.tail, made.notes, asked="int8")
    if artefact.ranked_as:
        return artefact
    narrow = (
        ("weights have 7 bits, since sums of 8-bit products overflow on this processor",)
        if quantising.saturates()
        else ()
    )
    return replace(artefact, notes=(*artefact.notes, told, *narrow))


def _flips(case: Case, artefact: Artefact) -> float:
    """How far its results are from the native ones: labels, or values where there are none."""
    from bitwatt.deploy.given import estimators
    from bitwatt.deploy.judging import quality

    native = estimators.answer(case.model, case.method, case.inputs)
    found = quality.differences(case, quality.outcome(Session(artefact, 1), case.inputs), native)
    return float(found["max_difference"] if found["flips"] is None else found["flips"])


def moved(artefact: Artefact, folder: Path) -> Artefact:
    """Out of the folder it was tried in; the other is left behind."""
    for file in artefact.files:
        (Path(artefact.folder) / file).rename(folder / file)
    for way in WAYS:
        shutil.rmtree(folder / way, ignore_errors=True)
    return replace(artefact, folder=str(folder))
