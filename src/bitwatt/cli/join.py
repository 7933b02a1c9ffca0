"""Join the runs of all ranks of a job into one run that holds the calls of all, and keep it beside them.

  bitwatt join                   the newest job
  bitwatt join my-training       by name, the job's id or the id of any of its ranks

The joined run can be reported, listed and re-priced like any other. To see who did what, and who held up whom, nothing
need be joined: bitwatt report --ranks.
"""

from __future__ import annotations

import argparse

from bitwatt.cli.options import add_store_option


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", nargs="?", help="name, id of the job or of one of its runs (default: the newest)")
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    from bitwatt.fingerprint import summary
    from bitwatt.jobs import join, whole
    from bitwatt.store import save

    run = whole(join(args.job, args.store))
    path = save(run, args.store, summary=summary(run))
    print(f"{run.notes[0]}; kept in {path}")
    return 0
