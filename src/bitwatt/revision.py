"""Which code ran: commit and branch read from git's own files, and whether something was changed since."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

#: Seconds that git may take to look for changes. It is asked once in a process.
PATIENCE = 2.0


def head() -> dict[str, str]:
    """Commit and branch of the current folder, or else of the script's; without starting a process. Empty where there
    is no repository."""
    with suppress(OSError, ValueError, RuntimeError):
        folder = repository()
        return _head(folder) if folder is not None else {}
    return {}


#: The script that `bitwatt run` runs: until it does, Python knows only of bitwatt's own.
script: list[Path] = []


def repository() -> Path | None:
    for start in (Path.cwd(), *_of_script()):
        for folder in (start, *start.parents):
            if os.path.lexists(folder / ".git"):
                return folder
    return None


def _of_script() -> list[Path]:
    if script:
        return [script[-1].absolute().parent]
    path = Path(sys.argv[0] if sys.argv else "").absolute()
    own = Path(__file__).parent in path.parents or (path.parent.parent / "pyvenv.cfg").exists()
    return [] if own else [path.parent]


def with_changes(head: Mapping[str, str]) -> dict[str, str]:
    """`head`, and whether files that git follows are changed: `dirty` is yes or no, absent where git does not tell."""
    if not head:
        return {}
    with suppress(OSError, RuntimeError):
        folder = repository()
        if folder is not None and (told := _is_dirty(folder)):
            return {**head, "dirty": told}
    return dict(head)


def _head(folder: Path) -> dict[str, str]:
    place = folder / ".git"
    if place.is_file():  # of a worktree or a submodule: it tells where the repository is
        place = folder / place.read_text(errors="replace").partition("gitdir:")[2].strip()
    told = (place / "HEAD").read_text(errors="replace").strip()
    if not told.startswith("ref:"):
        return {"commit": told[:64]}
    ref = told.removeprefix("ref:").strip()
    common = place
    with suppress(OSError):  # of a worktree
        common = place / (place / "commondir").read_text(errors="replace").strip()
    found = {"branch": ref.removeprefix("refs/heads/")[:200]}
    commit = _loose(place / ref) or _loose(common / ref) or _packed(common / "packed-refs", ref)
    return {"commit": commit[:64], **found} if commit else found


def _loose(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(errors="replace").strip()
    return ""


def _packed(path: Path, ref: str) -> str:
    with suppress(OSError), path.open(errors="replace") as lines:
        for line in lines:
            commit, _, name = line.strip().partition(" ")
            if name == ref:
                return commit
    return ""


@functools.cache
def _is_dirty(folder: Path) -> str:
    command = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain", "--untracked-files=no",
               "--ignore-submodules=dirty"]  # fmt: skip
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}  # the user's git must not find the index locked
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=PATIENCE, check=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return "yes" if done.stdout.strip() else "no"
    return ""
