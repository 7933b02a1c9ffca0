"""Count with the fpcount instrument what measured fits execute, anew. Run under it by truth_page.py --fpcount.

    FPCOUNT_OUT=BUILD DIR/fpcount python benchmarks/accuracy/truth_measure.py FROM TO

Rows of FROM are measured and appended to TO one by one, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from estimators import METHODS, arguments, called, make, weights


def measured(row: dict[str, Any]) -> dict[str, Any]:
    import fpcount  # the instrument puts it on the path

    estimator, X, y = make(row)
    np.random.seed(0)  # for those that draw and were given no seed
    given = (X,) if y is None else (X, y)
    more = {"sample_weight": weights(row, X)} if "weights" in row else {}
    found = {"fit": fpcount.measure(estimator.fit, *given, **more)[1]}
    for method in METHODS:
        if method in row:
            found[method] = fpcount.measure(called, estimator, method, *arguments(estimator, method, X, y))[1]
    counts = {name: {"f64": n.f64, "f32": n.f32, "compares": n.compares} for name, n in found.items()}
    return row | counts


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    warnings.simplefilter("ignore")
    done = len(target.read_text().splitlines()) if target.exists() else 0
    for line in source.read_text().splitlines()[done:]:
        with target.open("a") as file:
            file.write(json.dumps(measured(json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
