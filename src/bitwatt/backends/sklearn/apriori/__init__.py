"""Calls of estimators that nobody made: what a rule needs to know of them, from hyper-parameters, shapes and stated
assumptions. One file for each family, with a function for the methods of its classes (`@assumes`, or `told_by_shapes`
where there is nothing to assume), and the methods that they call on themselves (`calls`)."""

import importlib
import pkgutil


def load() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
