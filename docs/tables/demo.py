"""Writes what commands print into README.md, docs/index.md and docs/quickstart.md, at the places marked for it.

Run `python docs/tables/demo.py` after the report or an example changes. Times and a run's id differ from run to run;
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
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "quickstart.md")
#: The name of a place -> the command whose output is shown there.
COMMANDS = {
    "demo": "bitwatt run examples/train_mnist_like.py",
    "torch": "bitwatt run --by phase first_torch.py",
    "sklearn": "bitwatt run --by phase first_sklearn.py",
}
PLACE = re.compile(r"(<!-- (\w+): begin -->\n).*?(?=<!-- \2: end -->)", re.DOTALL)
FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def output(command: str, files: dict[str, str]) -> str:
    """What a terminal shows, in a folder with the examples and the files of the page."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", *command.split()],
            cwd=folder,
            env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
    return done.stdout + done.stderr


def block(command: str, shown: str) -> str:
    """Of a whole report, all up to the table of layers and the last line."""
    kept, ops, _ = shown.rstrip().partition("\nOps ")
    last = shown.rstrip().splitlines()[-1]
    more = f"\n[ops, precisions, the cost model and the machine follow]\n{last}" if ops else ""
    return f"```console\n$ {command}\n{kept.rstrip()}{more}\n```\n"


def main() -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    files = {name: text for page in texts.values() for name, text in FILE.findall(page)}
    asked = sys.argv[1:] or list(COMMANDS)
    blocks = {name: block(COMMANDS[name], output(COMMANDS[name], files)) for name in asked}
    for page, text in texts.items():
        page.write_text(PLACE.sub(lambda m: m[1] + blocks.get(m[2], m[0].removeprefix(m[1])), text), encoding="utf-8")


if __name__ == "__main__":
    main()
