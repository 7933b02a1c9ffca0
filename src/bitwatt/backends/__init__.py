"""Watch one framework each. The only room that imports frameworks, and only ones the user has already imported."""

import importlib
from typing import cast

from bitwatt.backends.harvest import Watch

#: Framework -> where its watch is. A framework is watched from the moment the user's program has imported it.
FRAMEWORKS = {
    "torch": "bitwatt.backends.torch.watch:TorchWatch",
    "sklearn": "bitwatt.backends.sklearn.watch:EstimatorWatch",
    "xgboost": "bitwatt.backends.sklearn.alone:XGBoostWatch",
    "lightgbm": "bitwatt.backends.sklearn.alone:LightGBMWatch",
    "catboost": "bitwatt.backends.sklearn.alone:CatBoostWatch",
    "tokenizers": "bitwatt.backends.tokenizers:TokenizersWatch",
    "transformers": "bitwatt.backends.transformers:TransformersWatch",
}


def watch(framework: str) -> Watch:
    """A new watch for `framework`, which must be imported."""
    module, _, name = FRAMEWORKS[framework].partition(":")
    return cast(Watch, getattr(importlib.import_module(module), name)())
