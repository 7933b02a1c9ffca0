"""A torch module in onnxruntime with integer kernels; ranges of activations found in each call."""

from __future__ import annotations

from pathlib import Path

from bitwatt.deploy.records import Artefact, Case, Loaded
from bitwatt.deploy.runtimes.onnx_fp32 import Session
from bitwatt.deploy.runtimes.onnx_int8 import quantised


class OnnxInt8Dynamic:
    name, baseline, order = "onnx-int8-dynamic", "", 13

    def applies(self, case: Case) -> bool:
        return case.framework == "torch"

    def build(self, case: Case, folder: Path) -> Artefact:
        from bitwatt.deploy.making import exporting

        return quantised(case, exporting.export(case), folder, self.name, "dynamic")

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Session(artefact, threads)


RUNTIME = OnnxInt8Dynamic
