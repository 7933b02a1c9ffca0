"""The module compiled by torch.compile where it is loaded: the first call of each size takes seconds."""

from __future__ import annotations

from pathlib import Path

from bitwatt.deploy.records import Artefact, Case, Loaded, UnfitError
from bitwatt.deploy.runtimes.torch_eager import Module, formats, keep, loaded


class TorchCompile:
    name, baseline, order = "torch-compile", "", 5

    def applies(self, case: Case) -> bool:
        return case.framework == "torch"

    def build(self, case: Case, folder: Path) -> Artefact:
        import torch

        from bitwatt.deploy.given import rows
        from bitwatt.deploy.making.exporting import said

        if isinstance(case.model, torch.jit.ScriptModule):
            raise UnfitError("is TorchScript, which is compiled already")
        artefact = keep(case, case.model, folder, self.name, formats(case.model))
        try:
            self.load(artefact, 1).predict(rows.take(case.inputs, slice(0, 2)))
        except Exception as error:  # of the compiler, or of the one for C++ that it needs
            raise UnfitError(f"cannot be compiled: {said(error)}") from error
        return artefact

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        import torch

        model = loaded(artefact, threads)
        return Module(model, artefact.options["device"], torch.compile(model))


RUNTIME = TorchCompile
