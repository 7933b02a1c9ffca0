"""What a Python frame is: part of torch, a loss, an optimizer's step, recomputation, or the user's own function."""

from __future__ import annotations

import os
from types import CodeType, FrameType

import torch
import torch.nn.functional
from torch import nn

TORCH = os.path.dirname(torch.__file__) + os.sep
STDLIB = os.path.dirname(os.__file__) + os.sep
BITWATT = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep

INSIDE, LOSS, SCALER, SEED = "<inside>", "<loss>", "<scaler>", "<seed>"
ENGINE, RECOMPUTE, CHECKPOINT, WORKER = "<engine>", "<recompute>", "<checkpoint>", "<worker>"

#: Functions of torch.nn.functional that are losses though their name does not end in _loss.
_OTHER_LOSSES = {
    "cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div", "linear_cross_entropy",
}  # fmt: skip

#: So much code is remembered: all of a large program's.
LIMIT = 10_000
#: By identity, since hashing a code object reads all of it; the code is kept so that no other takes its place.
kinds: dict[int, tuple[str, CodeType]] = {}
_steps: dict[CodeType, bool] = {}
#: Kinds of library code.
_LIBRARY = frozenset({INSIDE, LOSS, SCALER, SEED, ENGINE, RECOMPUTE, CHECKPOINT, WORKER})


def kind_of(code: CodeType) -> str:
    """INSIDE, LOSS, ... for library code; for the user's functions a label such as `train_step` or `train.py`."""
    known = kinds.get(id(code))
    if known is None:
        if len(kinds) > LIMIT:  # a program that makes functions as it goes
            kinds.clear()
        known = kinds[id(code)] = (_classify(code), code)
    return known[0]


def _classify(code: CodeType) -> str:
    path, name = code.co_filename, code.co_name
    if path.startswith(TORCH):
        inner = path[len(TORCH) :].replace(os.sep, "/")
        if inner == "nn/functional.py" and (name.endswith("_loss") or name in _OTHER_LOSSES):
            return LOSS
        if inner == "nn/modules/loss.py":
            return LOSS
        if inner == "amp/grad_scaler.py" or (inner, name) == ("distributed/pipelining/stage.py", "scale_grads"):
            return SCALER
        if inner == "utils/checkpoint.py" and name in ("unpack_hook", "recompute_fn", "backward"):
            return RECOMPUTE
        if (inner, name) in (("utils/checkpoint.py", "forward"), ("autograd/function.py", "apply")):
            return CHECKPOINT
        if inner in ("autograd/__init__.py", "distributed/pipelining/_backward.py"):  # the latter adds gradients itself
            return SEED
        if inner == "autograd/graph.py" and name == "_engine_run_backward":
            return ENGINE
        return INSIDE
    if path.startswith(BITWATT) and name == "worker_loop":
        return WORKER
    if path.startswith(BITWATT) or (path.startswith(STDLIB) and "site-packages" not in path):
        return INSIDE
    if path.startswith("<") and not path.startswith(("<stdin>", "<ipython", "<string>")):
        return INSIDE
    if f"{os.sep}transformers{os.sep}loss{os.sep}" in path:
        return LOSS
    if name == "<module>":
        return os.path.basename(path)
    return code.co_qualname.replace(".<locals>", "")


def caller(frame: FrameType | None) -> tuple[str, str]:
    """(what the innermost telling frame is, the user's function that called it)."""
    found = ""
    while frame is not None:
        kind = kind_of(frame.f_code)
        if kind is WORKER:  # above it are the frames of the process that forked
            break
        if kind in (LOSS, SCALER, SEED):
            found = found or kind
        elif kind not in (INSIDE, ENGINE, RECOMPUTE, CHECKPOINT):
            return found, kind
        frame = frame.f_back
    return found, ""


_methods: dict[int, tuple[bool, CodeType]] = {}


def module_above(frame: FrameType | None, depth: int = 10) -> tuple[nn.Module | None, str]:
    """The innermost module one of whose own methods is running (`encode`, `training_step`), and that method's name."""
    while frame is not None and depth:
        code = frame.f_code
        if code.co_argcount and code.co_varnames[0] == "self" and kind_of(code) not in (INSIDE, LOSS, SCALER, SEED):
            known = _methods.get(id(code))
            if known is None or known[0]:
                owner = frame.f_locals.get("self")
                if len(_methods) > LIMIT:
                    _methods.clear()
                _methods[id(code)] = (isinstance(owner, nn.Module), code)
                if isinstance(owner, nn.Module):
                    return owner, code.co_name
        frame, depth = frame.f_back, depth - 1
    return None, ""


def optimizer_above(frame: FrameType | None, depth: int = 12) -> str:
    """The class of an optimizer whose `step` is running above, also one that fires no hooks; else ''."""
    while frame is not None and depth:
        code = frame.f_code
        if code.co_name == "step" and _steps.get(code, True):
            owner = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            if len(_steps) > LIMIT:
                _steps.clear()
            _steps[code] = hasattr(owner, "param_groups")
            if _steps[code]:
                return type(owner).__name__
        frame, depth = frame.f_back, depth - 1
    return ""


def checkpointed(frame: FrameType | None, depth: int = 12) -> bool:
    """Whether a reentrant checkpoint or another autograd function runs the code: gradients are off in its forward
    though backward will come."""
    while frame is not None and depth:
        if kind_of(frame.f_code) is CHECKPOINT:
            return True
        frame, depth = frame.f_back, depth - 1
    return False


def recomputing(frame: FrameType | None) -> bool:
    """Whether a checkpoint is running its forward again, below the innermost call of the autograd engine."""
    while frame is not None:
        kind = kind_of(frame.f_code)
        if kind == RECOMPUTE:
            return True
        if kind == ENGINE:
            return False
        frame = frame.f_back
    return False


def differentiates_itself(frame: FrameType | None) -> bool:
    """Whether code of the program's own runs below the innermost call of the autograd engine: a hook on a gradient, the
    backward of a function."""
    while frame is not None:
        kind = kind_of(frame.f_code)
        if kind not in _LIBRARY:
            return True
        if kind is ENGINE:
            return False
        frame = frame.f_back
    return False
