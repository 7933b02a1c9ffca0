"""The module with its linear layers in INT8 by torchao: weights once, activations in each call."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from bitwatt.deploy.given import modules
from bitwatt.deploy.records import Artefact, Case, Loaded, Precision, UnfitError
from bitwatt.deploy.runtimes.torch_eager import Module, keep, loaded

ROWS = 32  # that are counted: kernels of some devices refuse fewer than 17


class TorchaoInt8:
    name, baseline, order = "torchao-int8", "", 7

    def applies(self, case: Case) -> bool:
        return case.framework == "torch"

    def build(self, case: Case, folder: Path) -> Artefact:
        try:
            from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_
        except ImportError as error:
            raise UnfitError("needs the package torchao, which is not installed here") from error
        if modules.is_exported(case.model):
            raise UnfitError("is an exported program; torchao quantises the layers of modules: give the module itself")
        device = case.options.get("device", "cpu")
        model = copy.deepcopy(case.model).to(device)
        quantize_(model, Int8DynamicActivationInt8WeightConfig())
        for part in model.modules():
            part.__dict__.pop("extra_repr", None)  # torchao's, for printing, which cannot be pickled
        precision = executed(case, model, device)
        ranked_as = "" if precision.integer_nodes else "torch-eager"
        return keep(
            case,
            model,
            folder,
            self.name,
            precision,
            "torchao",
            ranked_as=ranked_as,
            notes=(precision.note,) if precision.note else (),
        )

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Module(loaded(artefact, threads), artefact.options["device"])


RUNTIME = TorchaoInt8


def executed(case: Case, model: Any, device: str) -> Precision:
    """What bitwatt counts when it runs."""
    import bitwatt
    from bitwatt.config import Settings
    from bitwatt.deploy.given import rows
    from bitwatt.deploy.making import integers

    few = rows.take(case.inputs, slice(0, ROWS))
    with bitwatt.measure(keep=False, meter=False, settings=Settings()) as session:
        Module(model, device).predict(few)
    count = rows.count(few)
    return integers.told(session.run, "fp32", "int8", "ops that bitwatt saw torch dispatch", count)
