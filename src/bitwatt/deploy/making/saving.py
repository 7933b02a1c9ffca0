"""Writes a model so that a fresh process can load it, and says what that process needs."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

from bitwatt.deploy.given import trust


def dump(model: Any, path: Path) -> None:
    """By joblib; what was defined in the user's script is written by value, since no other process can import it."""
    import joblib

    joblib.dump(model, path)
    if any(name.startswith(("__main__.", "__mp_main__.")) for name in trust.contents(path, trusted=True)):
        import cloudpickle

        with path.open("wb") as file:
            cloudpickle.dump(model, file)


def modules(path: Path) -> tuple[str, ...]:
    """That loading the file imports, so that importing can be timed apart from loading."""
    found = {name.rpartition(".")[0] for name in trust.contents(path, trusted=True)}
    return tuple(sorted(module for module in found if _importable(module)))


def _importable(module: str) -> bool:
    try:
        return bool(module) and module not in ("builtins", "__main__") and importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def homes(names: tuple[str, ...]) -> list[str]:
    """Folders from which modules of the user's own came: a fresh process would not look there."""
    found: list[str] = []
    for name in {module.partition(".")[0] for module in names}:
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is None:
            continue
        home = Path(file).parent.parent if Path(file).name == "__init__.py" else Path(file).parent
        if not str(home).startswith((sys.prefix, sys.base_prefix)):
            found.append(str(home))
    return sorted(found)


def reach(options: Mapping[str, Any]) -> None:
    """Looks where `homes` said, after everywhere else."""
    sys.path.extend(home for home in options.get("homes", ()) if home not in sys.path)


def versions(*packages: str) -> dict[str, str]:
    """By distribution, of what is installed."""
    known = _distributions()
    found = {}
    for package in dict.fromkeys(name.partition(".")[0] for name in packages):
        for distribution in known.get(package, [package])[:1]:
            try:
                found[distribution] = version(distribution)
            except PackageNotFoundError:
                continue
    return found


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """By package: reading what is installed takes a third of a second, and several artefacts ask."""
    return packages_distributions()


def size(folder: Path, files: tuple[str, ...]) -> int:
    return sum((folder / file).stat().st_size for file in files)
