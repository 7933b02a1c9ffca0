"""What the lab asks of a torch module."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from bitwatt.deploy.amounts import amount
from bitwatt.deploy.given import rows as rows_of
from bitwatt.errors import BitwattError

#: Programs of torch.export, by the modules that run them: those cannot be pickled, the programs can be saved.
PROGRAMS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def of_program(path: Any) -> Any:
    """The module of an exported program that is in a file."""
    import torch

    program = torch.export.load(str(path))
    module = program.module()
    PROGRAMS[module] = program
    return module


def is_exported(model: Any) -> bool:
    return type(model).__name__ == "GraphModule" and hasattr(model, "graph")


def ready(model: Any) -> Any:
    """As it is served; an exported program has no other state."""
    try:
        return model.eval()
    except NotImplementedError:
        return model


def tensors(model: Any, data: Any) -> Any:
    """Rows as tensors: whole numbers in 64 bits, which embeddings want, others in the format of the weights."""
    import numpy as np
    import torch

    if isinstance(data, tuple):
        return tuple(tensors(model, part) for part in data)
    if rows_of.is_frame(data):
        data = data.to_numpy(dtype="float32")
    found = data if torch.is_tensor(data) else torch.from_numpy(np.ascontiguousarray(data))
    weight = next((one.dtype for one in model.parameters() if one.is_floating_point()), torch.float32)
    if found.is_floating_point():
        return found.to(weight)
    return found.bool() if found.dtype == torch.bool else found.long()


def targets(y: Any) -> Any:
    import numpy as np

    return None if y is None else rows_of.column(np.asarray(rows_of.on_host(y)))


def answer(model: Any, rows: Any) -> Any:
    """The first tensor it returns, as an array on the host."""
    import torch

    with torch.inference_mode():
        return rows_of.on_host(first(model(*(rows if isinstance(rows, tuple) else (rows,)))))


def first(found: Any) -> Any:
    """Out of tuples, dicts and the outputs of transformers."""
    if hasattr(found, "logits"):
        return found.logits
    if isinstance(found, dict):
        return first(next(iter(found.values())))
    return first(found[0]) if isinstance(found, list | tuple) else found


def classes(output: Any, y: Any) -> tuple[int, ...] | None:
    """Columns are classes where the targets are whole numbers and there is a column for each."""
    if y is None or y.ndim != 1 or y.dtype.kind not in "iub" or output.ndim != 2 or output.shape[1] < 2:
        return None
    return tuple(range(output.shape[1]))


def reachable(device: str) -> None:
    """A device that is not there is told before anything is built. No CUDA context is made here: a GPU that holds one
    draws more when idle."""
    import torch

    try:
        asked = torch.device(device or "cpu")
        if asked.type != "cuda":
            torch.empty(0, device=asked)
            return
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        why = str(error).strip().partition("\n")[0].partition(". ")[0]
        raise BitwattError(f"torch {torch.__version__} cannot use the device {device!r} here: {why}") from error
    if (asked.index or 0) >= count:
        raise BitwattError(
            f"torch {torch.__version__} cannot use the device {device!r} here: {amount(count, 'GPU')} can be used"
        )
