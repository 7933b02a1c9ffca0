"""Notebooks: `%load_ext bitwatt`, then `%%bitwatt` above a cell measures it and shows the report under it."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any, NoReturn

from bitwatt.errors import BitwattError
from bitwatt.records import Run


class HtmlReport:
    """A run as a notebook shows it: html where there is a browser, text in a terminal."""

    def __init__(self, run: Run, *, by: str | None = None, cost_model: str = "flops") -> None:
        self.run, self._options = run, {"by": by, "cost_model": cost_model}

    def _repr_html_(self) -> str:
        from bitwatt.reports.html import fragment

        return fragment(self.run, by=self._options["by"], cost_model=self._options["cost_model"] or "flops")

    def __repr__(self) -> str:
        from bitwatt.reports import report

        return report(self.run, by=self._options["by"], cost_model=self._options["cost_model"] or "flops")


class _Parser(argparse.ArgumentParser):
    """A faulty option is an error of the cell, not the end of the kernel."""

    def error(self, message: str) -> NoReturn:
        raise BitwattError(f"{message}\n{self.format_usage()}")


def _options(line: str) -> argparse.Namespace:
    from bitwatt.pricing import find_model
    from bitwatt.reports.tables import TABLES

    parser = _Parser(prog="%%bitwatt", add_help=False, allow_abbrev=False)
    parser.add_argument("--name", default="cell")
    parser.add_argument("--by")
    parser.add_argument("--cost-model", default="flops")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("-o", dest="variable", default="_run", metavar="NAME")
    try:
        options = parser.parse_args(shlex.split(line))
    except ValueError as error:  # a quotation that does not end
        raise BitwattError(str(error)) from error
    find_model(options.cost_model)
    if options.by is not None and options.by not in TABLES:
        raise BitwattError(f"--by is one of {', '.join(TABLES)}, not {options.by!r}")
    return options


def measured_cell(shell: Any, line: str, cell: str) -> None:
    """%%bitwatt [--name N] [--by phase|scope|op] [--cost-model M] [--strict] [--keep] [-o VARIABLE]

    Runs the cell, shows the report, and binds the run to `_run` or the variable named by -o.
    """
    from IPython.core.error import UsageError
    from IPython.display import display

    from bitwatt.session import measure

    try:
        options = _options(line)
    except BitwattError as wrong:  # before the cell runs, and without a traceback of ours
        raise UsageError(f"%%bitwatt: {wrong}") from wrong
    with measure(options.name, keep=options.keep, strict=options.strict, command="%%bitwatt") as session:
        result = shell.run_cell(cell)
        error = result.error_before_exec or result.error_in_exec
        if error is not None and sys.exc_info()[0] is None:
            session.close(error)  # the shell has shown it already; the run should know
    if session.run is not None:
        shell.user_ns[options.variable] = session.run
        display(HtmlReport(session.run, by=options.by, cost_model=options.cost_model))


def load_ipython_extension(ipython: Any) -> None:
    def bitwatt(line: str, cell: str) -> None:
        measured_cell(ipython, line, cell)

    bitwatt.__doc__ = measured_cell.__doc__
    ipython.register_magic_function(bitwatt, magic_kind="cell", magic_name="bitwatt")
