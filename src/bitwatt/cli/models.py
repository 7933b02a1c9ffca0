"""List the cost models: what each takes a unit of work to be worth, and whose convention that is."""

from __future__ import annotations

import argparse
import sys
import textwrap


def configure(parser: argparse.ArgumentParser) -> None:
    pass


def main(args: argparse.Namespace) -> int:
    from bitwatt.pricing import cost_models
    from bitwatt.reports.text import WIDTH, fitting

    for name, model in sorted(cost_models().items()):
        lines = [f"{name} ({model.unit})"]
        for text in (model.about, f"Source: {model.source}"):
            lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")
        print(fitting("\n".join(lines), sys.stdout.encoding))
    return 0
