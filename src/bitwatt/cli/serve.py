"""Show the kept runs in a browser: a dashboard that reads the store and changes nothing.

  bitwatt serve --open
  bitwatt serve --store s3://bucket/runs --port 9000
  bitwatt serve --host 0.0.0.0                      (others may look: a token is asked for)

Pages: runs (filter, sort, choose columns), one run, comparisons, trends of model versions, ranks of jobs, and runs as
they happen. It listens on this machine only, unless --host says otherwise; then whoever opens it needs a token, which
is printed where --token or BITWATT_TOKEN give none.
"""

from __future__ import annotations

import argparse

from bitwatt.cli.options import add_store_option


def configure(parser: argparse.ArgumentParser) -> None:
    add_store_option(parser)
    parser.add_argument("--host", metavar="HOST", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, default=8765, help="port, 0 for any (default: 8765)")
    parser.add_argument("--token", metavar="TEXT", help="ask for it; without one, one is made where it is needed")
    parser.add_argument("--prefix", metavar="PATH", default="", help="path that a proxy serves it under: /bitwatt")
    parser.add_argument("--open", action="store_true", help="open it in the browser of this machine")


def main(args: argparse.Namespace) -> int:
    from bitwatt.dashboard.serving import serve

    serve(args.store, host=args.host, port=args.port, token=args.token, prefix=args.prefix, browse=args.open)
    return 0
