"""Writes the output of the demo into README.md and docs/index.md, between the lines that mark its place.

Run `python docs/tables/demo.py` after the report or the example changes. Times and the run's id differ from run to run;
tests/test_docs.py compares the counts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md")
COMMAND = "bitwatt run examples/train_mnist_like.py"
PLACE = re.compile(r"(?<=<!-- demo: begin -->\n).*?(?=<!-- demo: end -->)", re.DOTALL)


def output() -> str:
    """What a terminal shows, up to the table of layers."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        done = subprocess.run(
            [sys.executable, "-m", *COMMAND.split()],
            cwd=folder,
            env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
    return done.stdout + done.stderr


def block(shown: str) -> str:
    kept = shown.partition("\nOps ")[0].rstrip()
    last = shown.rstrip().splitlines()[-1]
    return f"```console\n$ {COMMAND}\n{kept}\n[ops, precisions, the cost model and the machine follow]\n{last}\n```\n"


def main() -> None:
    text = block(output())
    for page in PAGES:
        page.write_text(PLACE.sub(lambda _: text, page.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"{page}: {text.count(chr(10))} lines")


if __name__ == "__main__":
    main()
