"""Fresh processes: what they are told, what they found out, and what they were doing when they died or hung.

All goes through files, so that a runtime that prints, crashes or hangs costs nothing but itself: the job, the results
(a line of JSON each), all that was printed, and a marker that says where the process is. The marker is looked at now
and then; a pipe would wake this process on the other core while something is timed.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitwatt.deploy import documents
from bitwatt.deploy.records import Artefact

#: A child that has not moved its marker for so long hangs. Compiling a model may take minutes.
HANGS_S = 300.0
#: Each library has its own word for how many threads it may start.
THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "LOKY_MAX_CPU_COUNT",
)  # fmt: skip
#: Of what a child printed last, so much is quoted.
QUOTED = 400
#: Seconds between two looks at the marker, and at whether the child has ended.
_MARKER_S, _END_S = 0.25, 0.05
_WIDTH = 512


@dataclass(frozen=True)
class Ended:
    """How a child went: what it handed back, and where it did not end well why, and what it was busy with."""

    results: list[dict[str, Any]]
    failure: str = ""
    at: str = ""
    doing: str = ""


class Tell:
    """The child's side: where it is, and what it found."""

    def __init__(self, results: str, marker: str) -> None:
        self._results = Path(results).open("a", encoding="utf-8")  # noqa: SIM115 - open as long as the process lives
        self._marker = os.open(marker, os.O_RDWR | os.O_CREAT, 0o600)
        self._steps = 0

    def at(self, name: str, doing: str = "", done: float = 0.0) -> None:
        """Where this process is now: quick, and wakes nobody. `done` is the share of its work that is behind it."""
        self._steps += 1
        line = json.dumps([self._steps, name, doing[:200], done]).encode()
        os.lseek(self._marker, 0, os.SEEK_SET)
        os.write(self._marker, line.ljust(_WIDTH))

    def result(self, found: Mapping[str, Any]) -> None:
        self._results.write(json.dumps(found) + "\n")
        self._results.flush()


def run(
    job: Mapping[str, Any],
    folder: Path,
    *,
    threads: int = 1,
    core: int = 0,
    timeout_s: float = HANGS_S,
    tick: Callable[[float], None] | None = None,
) -> Ended:
    """Do `job["task"]` ("package.module:function") in a fresh process that may use `threads` threads, pinned to as many
    cores; `core` turns which. `tick` is called now and then with the share that is done."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name}.txt" for name in ("job", "results", "marker", "printed")}
    for name in ("results", "marker"):
        paths[name].unlink(missing_ok=True)
    settings = {
        "threads": threads, "cores": cores(threads, core), "parent": os.getpid(),
        **{name: str(path) for name, path in paths.items()},
    }  # fmt: skip
    paths["job"].write_text(json.dumps({**job, **settings}), encoding="utf-8")
    command = [sys.executable, "-P", "-m", "bitwatt.deploy.measuring.worker", str(paths["job"])]
    # A folder that the caller can import from, the child can: a runtime may be in the user's own file.
    found = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, **dict.fromkeys(THREADS, str(threads)), "PYTHONPATH": found}
    held = subprocess.DEVNULL if sys.platform == "linux" else subprocess.PIPE  # see worker.tied
    with paths["printed"].open("wb") as printed:
        child = subprocess.Popen(
            command, stdin=held, stdout=printed, stderr=subprocess.STDOUT, env=environment,
            start_new_session=True,
        )  # fmt: skip
        try:
            hung = _wait(child, paths["marker"], timeout_s, tick)
        finally:
            _kill(child)
    results = _results(paths["results"])
    step = _marked(paths["marker"])
    if not hung and child.returncode == 0:
        return Ended(results)
    said = _tail(paths["printed"])
    how = f"hung for {timeout_s:g} s and was stopped" if hung else _died(child.returncode)
    return Ended(results, f"{how} {step[2]}".rstrip() + (f": {said}" if said else ""), step[1], step[2])


def cores(threads: int, turn: int = 0) -> list[int]:
    """Those to be pinned to, of those this process may use; none where the system cannot pin."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    allowed = sorted(os.sched_getaffinity(0))
    return [allowed[(turn + index) % len(allowed)] for index in range(min(threads, len(allowed)))]


def packed(artefact: Artefact) -> dict[str, Any]:
    """For a job."""
    plain: dict[str, Any] = documents.as_json(artefact)
    return plain


def unpacked(fields: Mapping[str, Any]) -> Artefact:
    return documents.of_json(Artefact, fields)


def task(name: str) -> Callable[[dict[str, Any], Tell], None]:
    module, _, function = name.partition(":")
    found: Callable[[dict[str, Any], Tell], None] = getattr(importlib.import_module(module), function)
    return found


def _wait(child: subprocess.Popen[bytes], marker: Path, timeout_s: float, tick: Callable[[float], None] | None) -> bool:
    """Whether it hung."""
    last, moved = -1, time.monotonic()
    while not _ends(child, _MARKER_S):
        step, _, _, done = _marked(marker)
        if step != last:
            last, moved = step, time.monotonic()
            if tick is not None:
                tick(done)
        elif time.monotonic() - moved > timeout_s:
            return True
    return False


def _ends(child: subprocess.Popen[bytes], within_s: float) -> bool:
    """Whether it ends within so long. It is looked at and not reaped, where the system can: what it started is found by
    its number, which nobody else gets before `_kill` has reaped it."""
    if not hasattr(os, "waitid"):  # Windows, and macOS before Python 3.13
        try:
            child.wait(within_s)
        except subprocess.TimeoutExpired:
            return False
        return True
    until = time.monotonic() + within_s
    while True:
        try:
            if os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
                return True
        except ChildProcessError:  # this program ignores SIGCHLD, or reaps whatever ends
            child.wait()
            return True
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(_END_S, left))


def _marked(marker: Path) -> tuple[int, str, str, float]:
    try:
        step, name, doing, done = json.loads(marker.read_bytes())
        return int(step), str(name), str(doing), float(done)
    except (OSError, ValueError):  # not begun, or in the middle of being written
        return 0, "", "", 0.0


def _results(path: Path) -> list[dict[str, Any]]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            found.append(json.loads(line))
        except ValueError:  # it died in the middle of a line
            break
    return found


def _kill(child: subprocess.Popen[bytes]) -> None:
    """With what it started, which may still be there when it has ended: it leads a session of its own. One that was
    reaped has no number any more: it may be another's by now."""
    if child.returncode is None:
        with suppress(ProcessLookupError, PermissionError):  # all have ended
            if hasattr(os, "killpg"):
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
        child.wait()
    if child.stdin is not None:
        child.stdin.close()


def _died(code: int) -> str:
    if code >= 0:
        return f"the process ended with {code}"
    try:
        return f"the process was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"the process was killed by signal {-code}"


def _tail(path: Path) -> str:
    """The end of what it printed, on one line; of a traceback its last line."""
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    if "Traceback (most recent call last)" in text:
        text = text.splitlines()[-1]
    return " ".join(text[-QUOTED:].split())
