"""onnxruntime in half precision. Whether anything is computed so, the executed graph tells: most CPUs cast back."""

from __future__ import annotations

from pathlib import Path

from bitwatt.deploy.records import Artefact, Case, Loaded
from bitwatt.deploy.runtimes.onnx_fp32 import Session, keep


class OnnxFp16:
    name, baseline, order = "onnx-fp16", "", 11

    def applies(self, case: Case) -> bool:
        return case.framework == "torch"

    def build(self, case: Case, folder: Path) -> Artefact:
        from bitwatt.deploy.making import exporting

        made = exporting.exported(case, half=True)
        return keep(case, made.model, folder, self.name, made.feeds, made.tail, made.notes, asked="fp16")

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Session(artefact, threads)


RUNTIME = OnnxFp16
