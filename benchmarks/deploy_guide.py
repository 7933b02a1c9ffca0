"""Runs the commands that the deployment guides show, and puts what they print in the place of what stands there.

    python benchmarks/deploy_guide.py [--only deployment.md]

It takes some minutes, on a machine that should have nothing else to do. What is left out of an output is marked by a
line of dots there, and left out again.
"""

from __future__ import annotations

import argparse
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

GUIDES = Path(__file__).parents[1] / "docs" / "guides"
DOTS = "..."
BLOCK = re.compile(r"(?<=```console\n)\$ (bitwatt deploy [^\n]*)\n(.*?)(?=```)", re.DOTALL)
#: Parts of a report, by the line that they begin with.
TITLES = ("Not ranked", "Selection", "Quantisation", "Production checklist", "note: ")


def perceptron() -> None:
    """An MLPClassifier 784-512-512-10, and rows of the kind it was trained on."""
    import joblib
    import numpy as np
    from sklearn.datasets import make_classification
    from sklearn.neural_network import MLPClassifier

    X, y = make_classification(
        3000, 784, n_informative=60, n_classes=10, n_clusters_per_class=1, class_sep=2.0, random_state=0
    )
    X = X.astype(np.float32)
    joblib.dump(MLPClassifier((512, 512), max_iter=6, random_state=0).fit(X[:2000], y[:2000]), "mlp784.joblib")
    np.savez("train784.npz", X=X[:2000], y=y[:2000])
    np.savez("test784.npz", X=X[2000:], y=y[2000:])


def digits() -> None:
    runpy.run_path(str(GUIDES.parents[1] / "examples" / "deployment_choice.py"), run_name="__main__")


PAGES: dict[str, Callable[[], None]] = {"deployment.md": perceptron, "deployment-choice.md": digits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PAGES)
    asked = parser.parse_args()
    for name in [asked.only] if asked.only else PAGES:
        page = GUIDES / name
        text = page.read_text(encoding="utf-8")
        first = BLOCK.search(text)
        assert first is not None, f"{name} shows no command"
        text = text[: first.start(2)] + shortened(told(first[1], PAGES[name]), first[2]) + text[first.end(2) :]
        page.write_text(text, encoding="utf-8")


def told(command: str, make: Callable[[], None]) -> str:
    """What the command prints, in a folder where its files are."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            make()
            words = [sys.executable, "-m", *shlex.split(command), "--store", str(Path(folder) / "store")]
            ended = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        finally:
            os.chdir(before)
    return ended.stdout


def shortened(output: str, shown: str) -> str:
    """Without the parts that `shown` leaves out, with dots in their place."""
    if DOTS not in shown.splitlines():
        return output
    there, kept, left_out = set(parts(shown)), [], False
    for title, lines in parts(output).items():
        if title in there:
            kept += [*([DOTS, ""] if left_out else []), *lines]
        left_out = title not in there
    return "\n".join([*kept, *([DOTS] if left_out else [])]) + "\n"


def parts(output: str) -> dict[str, list[str]]:
    """Lines by the title they stand under: what comes before the first has none, a table has its batch size."""
    found: dict[str, list[str]] = {"": []}
    title = ""
    for line in output.splitlines():
        begun = next((one for one in TITLES if line.startswith(one)), None)
        table = re.match(r"batch \d+", line)
        if table is not None or (begun and begun != title):
            title = table[0] if table is not None else begun or ""
            found.setdefault(title, [])
        if line != DOTS:
            found[title].append(line)
    return found


if __name__ == "__main__":
    main()
