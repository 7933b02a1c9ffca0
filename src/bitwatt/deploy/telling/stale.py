"""Do results still hold? While model, data, machine and versions are those that they were made with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bitwatt import __version__
from bitwatt.deploy.records import Checked, Study
from bitwatt.errors import BitwattError

#: Facts of a machine that decide about times; what is measured anew each time, such as a copy's speed, does not.
_FACTS = ("cpu", "cores", "sockets", "memory", "gpu", "driver", "flags")
_MODULES = {"sklearn": "scikit-learn", "PIL": "pillow"}
#: Letters of a digest that are told.
_SHORT = 12


def check(
    study: Study,
    *,
    model: Path | str | None = None,
    data: Path | str | None = None,
    machine: Mapping[str, str] | None = None,
    installed: Callable[[str], str | None] | None = None,
) -> list[Checked]:
    """Files are looked for where they were, unless told; nothing in them is run. What fails makes the results stale;
    what could not be found out is told."""
    case = study.case
    return [
        _file("model", model or case.get("path"), str(case.get("model_digest") or ""), bool(model)),
        _file("data", data or case.get("data_path"), str(case.get("data_digest") or ""), bool(data)),
        *_machine(study.machine, machine if machine is not None else here()),
        *_versions(study.versions, installed or present),
    ]


def is_stale(found: list[Checked]) -> bool:
    return any(one.passed is False for one in found)


def here() -> dict[str, str]:
    from bitwatt import machine
    from bitwatt.deploy.measuring import versions

    return {**machine.describe().facts, **versions.flags()}


def present(name: str) -> str | None:
    """The version that is installed now."""
    if name == "python":
        import platform

        return platform.python_version()
    if name == "bitwatt":  # also where it runs from its source
        return __version__
    try:
        return version(_MODULES.get(name, name))
    except PackageNotFoundError:
        return None


def _file(what: str, path: Any, digest: str, asked: bool) -> Checked:
    from bitwatt.deploy.given import loading

    if not digest:
        return Checked(what, None, "no digest was kept: it was no file")
    if not path:
        return Checked(what, None, f"it was no file; give it to be compared with {digest[:_SHORT]}")
    try:
        now = loading.digest(path)
    except OSError as error:
        if asked:
            raise BitwattError(f"{path} cannot be read: {error.strerror or error}") from error
        return Checked(what, False, f"{path} cannot be read: {error.strerror or error}")
    if now == digest:
        return Checked(what, True, f"{path} is the same ({digest[:_SHORT]})")
    return Checked(what, False, f"{path} was changed: {digest[:_SHORT]} then, {now[:_SHORT]} now")


def _machine(then: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Checked]:
    known = [name for name in then if name in _FACTS and name in now]
    changed = [f"{name} {then[name]} then, {now[name]} now" for name in known if then[name] != now[name]]
    if not known:
        yield Checked("machine", None, "nothing was kept of the machine that can be compared")
    elif changed:
        yield Checked("machine", False, "; ".join(changed))
    else:
        yield Checked("machine", True, ", ".join(f"{name} {then[name]}" for name in known if name != "flags"))


def _versions(then: Mapping[str, str], installed: Callable[[str], str | None]) -> Iterator[Checked]:
    if not then:
        yield Checked("versions", None, "no versions were kept")
        return
    changed = [
        f"{name} {kept} then, {now or 'not installed'} now"
        for name, kept in then.items()
        if (now := installed(name)) != kept
    ]
    told = "; ".join(changed) if changed else ", ".join(f"{name} {kept}" for name, kept in then.items())
    yield Checked("versions", not changed, told)
