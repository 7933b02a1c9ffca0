"""From a torch module to an ONNX graph, by torch.export, for any number of rows."""

from __future__ import annotations

import copy
from typing import Any
from weakref import WeakKeyDictionary

from bitwatt.deploy.given import modules
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.making import pruning
from bitwatt.deploy.making.converting import Converted
from bitwatt.deploy.records import Case, UnfitError

KINDS = {
    "torch.float32": "float",
    "torch.float64": "double",
    "torch.float16": "half",
    "torch.int64": "int64",
    "torch.bool": "bool",
}


#: Several runtimes begin with the same graph, which takes seconds to make.
_known: WeakKeyDictionary[Case, Converted] = WeakKeyDictionary()


def export(case: Case) -> Converted:
    """In the format of its weights."""
    if case not in _known:
        _known[case] = exported(case)
    return _known[case]


def exported(case: Case, half: bool = False) -> Converted:
    """Also in half precision. The number of rows stays free."""
    import torch

    few = _parts(rows_of.take(case.inputs, slice(0, 4)))
    if len(few[0]) < 2:
        few = tuple(torch.cat([part, part]) for part in few)  # torch takes a size of 1 for a constant
    model = case.model
    if half:
        model = copy.deepcopy(model).half()
        few = tuple(part.half() if part.is_floating_point() else part for part in few)
    if isinstance(model, torch.jit.ScriptModule):
        raise UnfitError("is TorchScript, which torch.export does not take: give the module itself")
    if strange := {str(part.dtype) for part in few} - set(KINDS):
        raise UnfitError(f"takes {strange.pop()}, which onnxruntime is not fed from numpy")
    shapes = tuple({0: torch.export.Dim("rows")} for _ in few)
    try:
        with torch.no_grad():
            program = torch.onnx.export(
                copy.deepcopy(model).cpu(), few, dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False
            )
    except Exception as error:  # whatever the exporter meets in the module's code
        raise UnfitError(f"cannot be exported: {said(error)}") from error
    made = pruning.prune(program.model_proto, program.model_proto.graph.output[0].name)
    feeds = [
        {"name": value.name, "of": "tensor", "kind": KINDS[str(part.dtype)]}
        for value, part in zip(made.graph.input, few, strict=True)
    ]
    with torch.inference_mode():
        native = modules.first(model(*few))
    return Converted(made, feeds, list(native.shape[1:]))


def _parts(rows: Any) -> tuple[Any, ...]:
    return rows if isinstance(rows, tuple) else (rows,)


def said(error: BaseException) -> str:
    """The cause of what an exporter raises, in a line: it wraps them, with reports of its steps around them."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0]}".rstrip(": ")
