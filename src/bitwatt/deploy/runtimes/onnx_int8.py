"""onnxruntime with integer kernels, where the model has products that they can do; else an honest no.

Linear models are spelled out as products (MatMul) first, since the operators that scikit-learn's converter prefers for
them (LinearClassifier) have no integer kernel. Of the two ways to quantise, the one is taken that does more in
integers, then the one that flips fewer labels.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.records import Artefact, Case, Loaded, UnfitError
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
        artefact = keep(case, graph, folder, name, made.feeds, made.tail, made.notes, asked="int8")
        told = "quantised dynamically: ranges of activations are found in each call"
    else:
        artefact, told = _static(case, made, folder, name)
    if artefact.ranked_as:
        return artefact
    narrow = (
        ("weights have 7 bits, since sums of 8-bit products overflow on this processor",)
        if quantising.saturates()
        else ()
    )
    return replace(artefact, notes=(*artefact.notes, told, *narrow))


def _static(case: Case, made: Any, folder: Path, name: str) -> tuple[Artefact, str]:
    """Of the two forms of a static graph, the one of which more is executed in integers: onnxruntime does not fuse all
    pairs of the first, such as those between a convolution and the sum of a residual block."""
    from bitwatt.deploy.making import integers, quantising

    rows, source = quantising.calibration(case)
    best: tuple[float, str, Artefact] | None = None
    failure: Exception | None = None
    for form in quantising.FORMS:
        place = folder / form
        place.mkdir()
        try:
            graph = quantising.static(made.model, made.feeds, rows, form)
            found = keep(case, graph, place, name, made.feeds, made.tail, made.notes, asked="int8")
            Session(found, 1).predict(rows_of.take(rows, slice(0, 2)))
        except Exception as error:  # of the quantiser or of the runtime: told if the other form does not work either
            failure = failure or error
            continue
        share = found.precision.integer_share or 0.0
        if best is None or share > best[0]:
            best = share, form, found
        if share >= integers.MOST:
            break
    if best is None:
        raise failure or UnfitError("cannot be quantised")
    share, form, found = best
    return moved(found, folder, quantising.FORMS), f"quantised statically ({form}): {source}"


def _flips(case: Case, artefact: Artefact) -> float:
    """How far its results are from the native ones: labels, or values where there are none."""
    from bitwatt.deploy.given import estimators
    from bitwatt.deploy.judging import asking, quality

    native = estimators.answer(case.model, case.method, case.inputs)
    found = quality.differences(case, asking.outcome(Session(artefact, 1), case.inputs), native)
    return float(found["max_difference"] if found["flips"] is None else found["flips"])


def moved(artefact: Artefact, folder: Path, tried: Sequence[str] = WAYS) -> Artefact:
    """Out of the folder it was tried in; the other is left behind."""
    for file in artefact.files:
        (Path(artefact.folder) / file).rename(folder / file)
    for way in tried:
        shutil.rmtree(folder / way, ignore_errors=True)
    return replace(artefact, folder=str(folder))
