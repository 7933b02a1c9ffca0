"""torchvision beside a CPU build of torch: its package works, its compiled extension does not load.

It lies in a folder of its own (see the Makefile), because a torchvision whose extension is missing breaks the import
of transformers for every other test.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import torch

_OPS = ("nms", "qnms")


@cache
def torchvision_models() -> ModuleType:
    home = str(Path(sys.prefix) / "torchvision")
    sys.path.append(home)
    library = torch.library.Library("torchvision", "FRAGMENT")
    torchvision_models.library = library  # type: ignore[attr-defined]  # it unregisters when it is collected
    for name in _OPS:  # the two ops that torchvision registers fakes for on import
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    try:
        import torchvision.models
    finally:
        sys.path.remove(home)  # processes that other tests start are given this path

    return torchvision.models


def published() -> dict[str, tuple[int, float]]:
    """Classifier -> (side of the input, published GMAC), over all its weights with the first of each size."""
    models = torchvision_models()
    found = {}
    for name in models.list_models(module=models):
        for weights in models.get_model_weights(name):
            (side,) = {weights.transforms.keywords["crop_size"]}
            found.setdefault((name, side), weights.meta["_ops"])
    return {f"{name}@{side}": (side, gmac) for (name, side), gmac in found.items()}
