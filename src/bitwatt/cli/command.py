"""Meters the process tree of any command: nothing in it is counted, its exit code and signals stay its own."""

from __future__ import annotations

import _thread
import argparse
import contextlib
import ctypes
import os
import shlex
import shutil
import signal
import sys
import threading
from typing import Any

from bitwatt.cli.about import about_of
from bitwatt.cli.options import kept, written
from bitwatt.cli.settings import settings_of
from bitwatt.cli.sinks import told_briefly

#: Passed on when they are sent to us alone. Those that a terminal sends reach the command by themselves.
_PASSED = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGALRM")
    if hasattr(signal, name)
]
#: Python ignores them, and a command would inherit that.
_IGNORED = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]
_FROM_KERNEL = 0x80  # si_code of signals that a terminal sends
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def is_command(program: list[str]) -> bool:
    """Whether a command line after `--` is none of Python's: no `-m`, no script, folder or archive that it runs."""
    word = program[0] if program else "-"
    if word.startswith("-"):
        return False
    if os.path.exists(word) and not os.path.isdir(word):
        is_script = word.endswith((".py", ".pyw", ".pyz", ".zip"))
        return not is_script and os.path.dirname(word) != "" and os.access(word, os.X_OK)
    return not os.path.exists(word) and shutil.which(word) is not None


def is_nothing(program: list[str]) -> bool:
    """Whether it is neither a command nor a file."""
    word = program[0] if program else "-"
    return not word.startswith("-") and not os.path.lexists(word) and shutil.which(word) is None


def run(program: list[str], args: argparse.Namespace) -> int:
    """As a shell would: the command's exit code, or its end by the same signal."""
    from bitwatt.session import measure

    name = args.name or os.path.basename(program[0])
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [*_PASSED, signal.SIGCHLD])
    measured = measure(name, keep=not args.no_keep, store=args.store, command=shlex.join(program),
                       meter=not args.no_meter, settings=settings_of(args), **about_of(args), to=args.to)  # fmt: skip
    session = measured.__enter__()
    _adopt()  # not before: what sensors start is no part of the command
    session.counts = False
    session.remark("a command: its processes were metered, and nothing in them was counted")
    status, error = 127, None
    try:
        child = os.posix_spawnp(program[0], program, os.environ, setsigmask=mask, setsigdef=_IGNORED)
        status = _ended(child)
        if left := _left():
            session.remark(f"{left} of its processes outlived it: what they use from then on is not metered")
    except OSError as problem:
        error = problem
        print(f"bitwatt: {program[0]}: {problem.strerror}", file=sys.stderr)
    measured.__exit__(None, SystemExit(_said(status)) if status else None, None)
    _report(session, args)
    sys.stderr.write(told_briefly(session.receipts, quiet=args.quiet))
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if status < 0:
        _end_as(-status)
    return status if error is None else 127


def _ended(child: int) -> int:
    """Wait for it, passing on signals: its exit code, or minus the signal that ended it."""
    waits = {*_PASSED, signal.SIGCHLD}
    if hasattr(os, "waitid"):  # not on macOS
        with contextlib.suppress(RuntimeError):  # too many threads
            _thread.start_new_thread(_tell_of_end, (child, threading.get_ident()))
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        number, from_terminal = _next(waits)
        if number != signal.SIGCHLD and not from_terminal:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, number)


def _tell_of_end(child: int, waiting: int) -> None:
    """The system's own SIGCHLD may go to a thread that does not wait for it; one that is sent to a thread does not. It
    is waited for without a time limit: with one, Python makes up a signal where it is stopped (Ctrl-Z) for longer."""
    try:
        with contextlib.suppress(ChildProcessError):  # it was waited for already
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    finally:
        signal.pthread_kill(waiting, signal.SIGCHLD)


def _next(waits: set[int]) -> tuple[int, bool]:
    if hasattr(signal, "sigwaitinfo"):
        found: Any = signal.sigwaitinfo(waits)
        return found.si_signo, found.si_code == _FROM_KERNEL
    return int(signal.sigwait(waits)), False


def _adopt() -> None:
    """Processes that outlive their parent become ours instead of the system's, so that their use is seen."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _left() -> int:
    """Children that are there when the command has ended; those that have ended too are put to rest."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return len(file.read().split())
    return 0


def _said(status: int) -> int | str:
    return status if status > 0 else signal.Signals(-status).name


def _report(session: Any, args: argparse.Namespace) -> None:
    if session.run is None or args.quiet:
        return
    with contextlib.suppress(OSError, ValueError):  # closed, or nobody reads it
        sys.stdout.flush()
        sys.stderr.write("\n" + written(session.run, args, sys.stderr))
        if session.path is not None:
            sys.stderr.write(kept(session, args))
        sys.stderr.flush()


def _end_as(number: int) -> None:
    """By the same signal, so that whoever waits for us sees what he would without us. One core file is enough."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
