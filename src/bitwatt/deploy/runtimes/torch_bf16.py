"""The module in bfloat16, on devices that have units for it."""

from __future__ import annotations

import copy
from pathlib import Path

from bitwatt.deploy.records import Artefact, Case, Loaded
from bitwatt.deploy.runtimes.torch_eager import Module, formats, keep, loaded


class TorchBf16:
    name, baseline, order = "torch-bf16", "", 6

    def applies(self, case: Case) -> bool:
        return case.framework == "torch" and str(case.options.get("device", "cpu")).startswith("cuda")

    def build(self, case: Case, folder: Path) -> Artefact:
        model = copy.deepcopy(case.model).bfloat16()
        return keep(case, model, folder, self.name, formats(model))

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Module(loaded(artefact, threads), artefact.options["device"])


RUNTIME = TorchBf16
