"""Tag a kept run, or take tags away, to find it by.

bitwatt tag RUN good team=vision
bitwatt tag RUN --remove good
"""

from __future__ import annotations

import argparse

from bitwatt.cli.options import add_store_option


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="id, beginning of an id, name or path")
    parser.add_argument("tag", nargs="*", help="a word, or name=value")
    parser.add_argument("--remove", metavar="NAME", action="append", default=[], help="take this tag away")
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    from bitwatt.cli.listing import cell
    from bitwatt.errors import BitwattError
    from bitwatt.store.changes import tag

    if not args.tag and not args.remove:
        raise BitwattError("there is nothing to change; write: bitwatt tag RUN name=value, or --remove name")
    header = tag(args.run, args.tag, remove=args.remove, store=args.store)
    print(f"{header.id}  {cell(header, 'name')}  {cell(header, 'tags') or '(no tags)'}")
    return 0
