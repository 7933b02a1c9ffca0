"""bitwatt counts what AI programs compute (FLOPs, bit-operations, bytes), by phase and layer, without changing them."""

from __future__ import annotations

import argparse
import importlib
import os
import sys

from bitwatt.errors import BitwattError

#: Each is a module here: its docstring is the help, `configure` adds its options, `main` does it.
VERBS = (
    "run", "report", "estimate", "join", "compare", "check", "deploy", "what-if", "ls", "tag", "rm",
    "sql", "export", "baseline", "machines", "serve", "explain", "models", "doctor",
)  # fmt: skip


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from bitwatt import __version__

        print(f"bitwatt {__version__}")
        parser.exit()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bitwatt", description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    verbs = parser.add_subparsers(dest="verb", metavar="verb", required=True)
    for name in VERBS:
        module = importlib.import_module(f"bitwatt.cli.{name.replace('-', '_')}")
        summary, *_ = (module.__doc__ or "").split("\n")
        verb = verbs.add_parser(
            name,
            help=summary,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.configure(verb)
        verb.set_defaults(main=module.main)
    arguments = sys.argv[1:] if argv is None else list(argv)
    program: list[str] = []
    options: list[str] = []
    dashes = False
    if arguments[:1] == ["run"]:  # what follows the script is the script's, whatever it looks like
        from bitwatt.cli.run import split

        options, program = split(arguments[1:])
        dashes = arguments[1 + len(options) : 2 + len(options)] == ["--"]
        arguments = ["run", *options]
    args, unknown = parser.parse_known_args(_sorted(arguments))
    if unknown:
        verbs.choices[args.verb].error(f"unrecognized arguments: {' '.join(unknown)}")  # with the usage of that verb
    args.program, args.options, args.after_dashes = program, options, dashes
    try:
        status: int = args.main(args)
        if args.verb != "run":  # there it is the script's own
            sys.stdout.flush()
        return status
    except BitwattError as error:
        return _told(str(error))
    except BrokenPipeError:
        if args.verb == "run":
            raise  # the script's own, to end as it would without bitwatt
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: nothing more to say
        return 1
    except OSError as error:
        if args.verb == "run":
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        return _told(f"{where}{error.strerror or error}")


def _told(error: str) -> int:
    """Names of runs and files may stand in it."""
    from bitwatt.harmless import in_lines

    print(f"bitwatt: {in_lines(error)}", file=sys.stderr)
    return 2


def _sorted(arguments: list[str]) -> list[str]:
    """argparse takes the -flops of `--sort -flops` for an option."""
    if "--sort" not in arguments[:-1]:
        return arguments
    at = arguments.index("--sort")
    return [*arguments[:at], f"--sort={arguments[at + 1]}", *arguments[at + 2 :]]
