"""Models out of files, if they are trusted, and out of functions that make them."""

from __future__ import annotations

import importlib
import sys
import warnings
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from bitwatt.deploy.given import trust
from bitwatt.errors import BitwattError


def read(where: str | Path, trusted: bool = False) -> tuple[Any, Path | None, tuple[str, ...]]:
    """The model, its file, and what was warned of while it was loaded."""
    path = Path(where)
    if not path.exists() and ":" in str(where):
        return _made(str(where)), None, ()
    if not path.is_file():
        raise BitwattError(f"there is no file {path}; a model is a file, or package.module:function that returns one")
    if path.suffix.lower() == ".onnx":
        raise BitwattError(f"{path.name} is converted already; give the trained model (bitwatt estimate counts it)")
    if path.suffix.lower() == ".py":
        raise BitwattError(
            f"{path.name} is a program, not a trained model; name what makes the model in it, such as {path.stem}:model"
        )
    if not trusted:
        raise trust.refuse(path)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        model = _loaded(path)
    notes = dict.fromkeys(
        str(one.message).strip().splitlines()[0] for one in warned if "ersion" in type(one.message).__name__
    )
    return model, path, tuple(notes)


def _made(where: str) -> Any:
    """By a function of the user's, which is imported as their program would."""
    module, _, name = where.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        made = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise BitwattError(f"{module} cannot be imported: {error}") from error
    except AttributeError as error:
        raise BitwattError(f"{module} has no {name!r}") from error
    return made() if callable(made) and not hasattr(made, "get_params") and not hasattr(made, "parameters") else made


def _loaded(path: Path) -> Any:
    try:
        return _torch(path) if zipfile.is_zipfile(path) else _joblib(path)
    except BitwattError:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if _lies_here(package):
            sys.path.append(str(Path.cwd()))  # last, so that it hides nothing
            return _loaded(path)
        raise BitwattError(f"{path.name} needs the package {package}, which is not installed here") from error
    except AttributeError as error:
        raise BitwattError(
            f"{path.name} names something that is not where it was when it was saved: {error}"
        ) from error
    except (KeyError, EOFError, UnpicklingError) as error:
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        raise BitwattError(f"{path.name} is no joblib, pickle or torch file, or not a whole one ({said})") from error
    except Exception as error:  # a class may run anything when it is unpickled
        lines = str(error).strip().splitlines() or [""]
        raise BitwattError(f"{path.name} cannot be loaded: {type(error).__name__}: {lines[0]}".rstrip(": ")) from error


def _lies_here(package: str) -> bool:
    """Whether a module of the user's own lies in the folder they are in, where the command `bitwatt` does not look."""
    here = Path.cwd()
    there = (here / package).is_dir() or (here / f"{package}.py").is_file()
    return bool(package) and there and str(here) not in sys.path


def _joblib(path: Path) -> Any:
    import joblib

    return joblib.load(path)


def _torch(path: Path) -> Any:
    import torch

    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if any(name.endswith(("/constants.pkl", "/code/__torch__.py")) for name in names) and any(
        "/code/" in name for name in names
    ):
        return torch.jit.load(str(path), map_location="cpu")
    if any(name.endswith("archive_format") for name in names):
        from bitwatt.deploy.given import modules

        return modules.of_program(path)
    found = torch.load(path, weights_only=False, map_location="cpu")
    if isinstance(found, dict):
        raise BitwattError(
            f"{path.name} holds weights without their module: give package.module:function that makes it with them"
        )
    return found
