"""Run a program, count what it computes and meter what it uses; its output, exit code and signals stay its own.

  bitwatt run train.py --epochs 3
  bitwatt run --name baseline -m my.package --config small
  bitwatt run torchrun --nproc-per-node 8 train.py      (or accelerate launch: every rank, joined)
  bitwatt run -- make data                              (any command: metered, nothing in it is counted)

bitwatt's options stand before the script; everything after it belongs to the script. The run is kept in .bitwatt/ and
a report is printed to stderr when the program ends, also by an exception, an exit code or Ctrl-C.
"""

from __future__ import annotations

import argparse
import atexit
import builtins
import io
import os
import re
import runpy
import shlex
import signal
import sys
import types
import zipfile
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from importlib.machinery import SourceFileLoader
from typing import Any, NoReturn, TextIO

from bitwatt.cli.about import VALUED, about_of, add_about_options
from bitwatt.cli.options import add_report_options, add_store_option, check_report_options, kept, written
from bitwatt.cli.settings import FLAGS, add_settings_options, settings_of
from bitwatt.cli.sinks import add_sink_option, told_briefly

#: As in session.measure, which a help text must not import.
EXACTNESS = ("auto", "always", "sample")
_STDIN = "<stdin>"
_VALUED = ("--name", "--store", "--format", "--by", "--cost-model", "--exactness", "--to", *VALUED,
           *(f"--{name.replace('_', '-')}" for name in FLAGS))  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "bitwatt run [options] (script.py | -m module | -- command) [arguments ...]"
    parser.add_argument("--name", help="what to call the run (default: the script's name)")
    add_store_option(parser)
    parser.add_argument(
        "--exactness", choices=EXACTNESS, default="auto",
        help="auto: steps that are known are credited instead of counted; always: every step is counted; "
        "sample: what varies is sampled, and an interval stated",
    )  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="exit with 2 if an op was called that no rule covers")
    add_sink_option(parser)
    add_report_options(parser)
    parser.add_argument("--quiet", action="store_true", help="print no report")
    parser.add_argument("--no-keep", action="store_true", help="do not keep the run")
    parser.add_argument("--no-meter", action="store_true", help="read no sensors: only count")
    parser.add_argument("--nvtx", action="store_true", help="mark phases for NVIDIA's tools, where CUDA is in use")
    add_about_options(parser)
    add_settings_options(parser)


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """bitwatt's own options, and the program: a script, `-m module` or, after `--`, any command, with its arguments."""
    i = 0
    while i < len(arguments):
        word = arguments[i]
        if word == "--":
            return arguments[:i], arguments[i + 1 :]
        if word == "-m" or not word.startswith("-") or word == "-":
            return arguments[:i], arguments[i:]
        if word.startswith("-m"):
            return arguments[:i], ["-m", word[2:], *arguments[i + 1 :]]
        i += 2 if word in _VALUED else 1
    return arguments, []


def main(args: argparse.Namespace) -> int:
    from pathlib import Path

    from bitwatt import revision
    from bitwatt.cli import command, launchers
    from bitwatt.cli.launchers import launcher
    from bitwatt.errors import BitwattError
    from bitwatt.session import measure

    check_report_options(args)
    program: list[str] = args.program
    module = program[1:2] if program[:1] == ["-m"] else None
    if not program or module == []:
        raise BitwattError("there is no script to run; write: bitwatt run script.py, or bitwatt run -m module")
    if args.after_dashes and command.is_command(program) and launcher(program) is None:
        return command.run(program, args)
    if args.after_dashes and command.is_nothing(program):
        raise BitwattError(
            f"there is no command called {program[0]!r}, and no script; after -- stands what a shell runs"
        )
    if (found := launcher(program)) is not None:
        return launchers.run(*found, args.options, args)
    script = os.path.splitext(os.path.basename(os.path.abspath(program[0])))[0] if program[0] != "-" else "stdin"
    name = args.name or (module[0] if module else script)
    code = None if module or _is_package(program[0]) else _compiled(program[0])
    if module is None and program[0] != "-":
        revision.script.append(Path(os.path.abspath(program[0])))
    closing = _Closing(args, measure(name, keep=not args.no_keep, store=args.store, strict=args.strict,
                                     exactness=args.exactness, command=shlex.join(program),
                                     meter=not args.no_meter, settings=settings_of(args), nvtx=args.nvtx, to=args.to,
                                     **about_of(args)))  # fmt: skip
    # Registered before the program registers anything, so it comes last: after the program's threads have ended and
    # its own exit handlers have run.
    atexit.register(closing)
    _close_when_killed(closing)
    try:
        _execute(program, code)
    except BaseException as error:
        closing.error = error
        _hide_frames()
        raise
    finally:
        if closing.session.delivery is not None:
            closing.session.delivery.prepare()
    return 0


class _Closing:
    """Ends the measurement as the process ends: keeps the run and prints the report. Only in the process that began."""

    def __init__(self, args: argparse.Namespace, measured: Any) -> None:
        self.args, self.measured, self.process, self.folder = args, measured, os.getpid(), os.getcwd()
        self.error: BaseException | None = None
        self.done = False
        self.began = datetime.now(UTC)
        self.session = measured.__enter__()

    def __call__(self) -> None:
        if os.getpid() != self.process or self.done:
            return
        self.done = True
        from bitwatt.errors import MissingRuleError

        with suppress(Exception):  # so that the report follows what the program printed
            sys.stdout.flush()
        stream, refused = sys.__stderr__, ""
        try:
            self.measured.__exit__(type(self.error), self.error, None)
        except MissingRuleError as error:
            refused = str(error)
        except Exception as error:
            _say(stream, f"bitwatt: the run could not be closed: {type(error).__name__}: {error}\n")
        if self.session.run is not None and not self.args.quiet:
            try:
                _say(stream, self._report(stream or io.StringIO()))
            except Exception as error:
                _say(stream, f"bitwatt: the report failed: {type(error).__name__}: {error}\n{self._where()}")
        _say(stream, told_briefly(self.session.receipts, quiet=self.args.quiet))
        if refused:
            _say(stream, f"bitwatt: {refused}\n")
            if self.error is None or _is_success(self.error):
                _leave(2)
        if isinstance(self.error, KeyboardInterrupt):
            _remember_interrupt()

    def _report(self, stream: TextIO) -> str:
        """Of several ranks the first speaks for all; a program that started ranks tells of them after itself."""
        from bitwatt.cli.launchers import told, told_by_first

        run, store = self.session.run, None if self.session.path is None else self.session.root
        if run.rank is not None and store is not None:
            return told_by_first(store, run) + self._where() if run.rank.rank == 0 else ""
        ranks = told(store, self.began) if store is not None else ""
        return "\n" + written(run, self.args, stream) + self._where() + ranks

    def _where(self) -> str:
        if self.session.path is None:
            return ""
        return kept(self.session, self.args, self.folder)


def _execute(program: list[str], code: types.CodeType | None) -> None:
    """As the interpreter would: in a new __main__, with the program's own argv and path."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __annotations__={})
    sys.modules["__main__"] = main
    if code is None and program[0] == "-m":
        sys.argv = ["-m", *program[2:]]
        _set_path(os.getcwd())
        runpy._run_module_as_main(program[1])  # type: ignore[attr-defined]  # what `python -m` itself calls
        return
    sys.argv = list(program)
    if code is None:
        sys.path[0] = os.path.abspath(program[0])
        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]  # as for a folder or an archive
        return
    path = code.co_filename
    _set_path("" if path == _STDIN else os.path.dirname(os.path.realpath(program[0])))
    main.__dict__.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    exec(code, main.__dict__)


def _close_when_killed(closing: _Closing) -> None:
    """A scheduler's SIGTERM and os._exit end the process without its exit handlers: the run is kept all the same."""

    def end(signum: int, _: Any) -> None:
        closing.error = SystemExit(signal.Signals(signum).name)
        closing()
        signal.signal(signum, signal.SIG_DFL)
        os.kill(os.getpid(), signum)

    leave = os._exit

    def watched_exit(status: int) -> NoReturn:
        closing.error = SystemExit(status)
        closing()
        leave(status)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end)
    os._exit = watched_exit


def _is_package(path: str) -> bool:
    """A folder or an archive with a __main__.py in it."""
    return os.path.isdir(path) or (os.path.isfile(path) and zipfile.is_zipfile(path))


def _set_path(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = folder  # in place of where the bitwatt command itself lies


def _compiled(script: str) -> types.CodeType:
    from bitwatt.errors import BitwattError

    path = os.path.abspath(script) if script != "-" else _STDIN
    try:
        with io.open_code(path) if path != _STDIN else nullcontext(sys.stdin) as file:
            source = file.read()
    except OSError as error:
        raise BitwattError(
            f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}{_meant(script)}"
        ) from error
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        _hide_frames()
        raise


def _meant(script: str) -> str:
    """What one who wrote an interpreter in place of a script should write."""
    is_python = re.fullmatch(r"(python|pypy)[\d.]*", script) is not None
    return f"; leave out `{script}`: bitwatt run script.py" if is_python else ""


def _hide_frames() -> None:
    """Let the interpreter report the exception under way as if the program had been started by it."""
    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: types.TracebackType | None) -> None:
        trimmed = _trimmed(trace)
        shown(kind, error.with_traceback(trimmed), trimmed)

    sys.excepthook = hook


def _trimmed(trace: types.TracebackType | None) -> types.TracebackType | None:
    """Without what is above the program, and without the watchers' frames in between, unless the fault is theirs."""
    frames = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    starts = [i for i, frame in enumerate(frames) if frame.tb_frame.f_code in (_execute.__code__, _compiled.__code__)]
    frames = frames[starts[0] + 1 :] if starts else frames
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    ours = [frame.tb_frame.f_code.co_filename.startswith(home) for frame in frames]
    kept = None
    for frame, own in zip(reversed(frames), reversed(ours), strict=True):
        if not own or ours[-1]:
            kept = types.TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _remember_interrupt() -> None:
    """Python ends by SIGINT if the last code it ran from text raised KeyboardInterrupt. Closing imports modules whose
    dataclasses and named tuples run code from text, so the last to do so has to be this."""
    with suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")


def _is_success(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and not error.code


def _say(stream: TextIO | None, text: str) -> None:
    with suppress(OSError, ValueError):  # closed, or nobody reads it
        if stream is not None:
            stream.write(text)
            stream.flush()


def _leave(status: int) -> None:
    """An exit handler cannot change the exit status but by leaving at once; everything else has been done."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    if "logging" in sys.modules:
        sys.modules["logging"].shutdown()
    os._exit(status)
