"""The module compiled by torch.compile where it is loaded: the first call takes seconds.

For any number of rows, and for the other sizes as they come: left to itself it compiles for the first number that
comes, and which code the others get would depend on the order in which they come. Were all sizes left open
(`dynamic=True`), tracing a ResNet would take four times as long, in every process.

The code itself is kept by torch in its cache, where processes after the first find it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bitwatt.deploy.records import Artefact, Case, Loaded, UnfitError
from bitwatt.deploy.runtimes.torch_eager import Module, formats, keep, loaded

#: Rows of the calls for which it is compiled when it is built: one row has code of its own, all other numbers share it.
SIZES = (1, 32)


class Compiled(Module):
    """For any number of rows."""

    def __init__(self, model: Any, device: str) -> None:
        import torch
        from torch._dynamo import maybe_mark_dynamic

        super().__init__(model, device, torch.compile(model))
        self.mark = maybe_mark_dynamic

    def placed(self, part: Any) -> Any:
        part = super().placed(part)
        self.mark(part, 0)
        return part


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
        began = time.perf_counter()
        try:
            predict = self.load(artefact, 1).predict
            for size in SIZES:
                predict(rows.take(case.inputs, slice(0, size)))
        except Exception as error:  # of the compiler, or of the one for C++ that it needs
            raise UnfitError(f"cannot be compiled: {said(error)}") from error
        took = f"compiled in {time.perf_counter() - began:.1f} s when it was built"
        return replace(artefact, notes=(f"{took}; processes after that, cold starts too, load the code from a cache",))

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Compiled(loaded(artefact, threads), artefact.options["device"])


RUNTIME = TorchCompile
