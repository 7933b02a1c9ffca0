"""onnxruntime in float64, for rows whose digits float32 cannot hold: the cure for labels that flip by the cast."""

from __future__ import annotations

from pathlib import Path

from bitwatt.deploy.records import Artefact, Case, Loaded
from bitwatt.deploy.runtimes.onnx_fp32 import Session, keep


class OnnxFp64:
    name, baseline, order = "onnx-fp64", "", 9

    def applies(self, case: Case) -> bool:
        from bitwatt.deploy.judging import doubts

        return case.framework == "sklearn" and doubts.coarsest(case.inputs) is not None

    def build(self, case: Case, folder: Path) -> Artefact:
        from bitwatt.deploy.making import converting

        made = converting.converted(case, double=True)
        return keep(case, made.model, folder, self.name, made.feeds, made.tail, made.notes, asked="fp64")

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Session(artefact, threads)


RUNTIME = OnnxFp64
