"""What floppy-tracker says of measured fits. Run by truth_page.py in a process of its own.

    python benchmarks/accuracy/truth_floppy.py FILE FOLDER      # FOLDER holds floppy-tracker; a line of JSON a fit

It is called as its documentation shows. It never raises out of a fit: where it has no formula it prints a warning and
reports 0, so what it printed is kept beside its answer.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from estimators import make

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def answer(row: dict[str, Any]) -> dict[str, Any]:
    from floppy import FLOPpyTracker

    estimator, X, y = make(row)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            tracker = FLOPpyTracker(run_name="truth")
            tracker.run(model=estimator)
            estimator.fit(X) if y is None else estimator.fit(X, y)
            flops = int(tracker.report().model_backward_flop)
            tracker.stop()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    said = " ".join(_COLOURS.sub("", printed.getvalue()).split())
    found = re.search(r"Failed to estimate fit FLOPs - (.*)", said)
    return {"error": found.group(1)} if found else {"flops": flops}


def main() -> None:
    file, folder = sys.argv[1:]
    sys.path.append(folder)  # behind everything else: the libraries are this environment's
    warnings.simplefilter("ignore")
    for line in Path(file).read_text().splitlines():
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
