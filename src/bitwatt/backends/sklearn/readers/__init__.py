"""What families of estimators tell beyond their attributes: one file each, with the readers of their fitted objects
(`@facts`), the calls to count inside a fit (`probe`), the methods that speak for all they call (`whole`)
and those of which nothing is told inside of others (`hollow`)."""

import functools
import importlib
import pkgutil


@functools.cache
def load() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
