"""Measures what is asked for, then writes docs/paper.md and its figures.

    python -m examples.paper                     everything that a CPU can measure, anew
    python -m examples.paper --only figure2      one part; the others as they were measured last
    python -m examples.paper --render            nothing; only the page and the figures

What needs a GPU is measured by `python -m examples.paper.gpu`, on a machine that has one.
"""

from __future__ import annotations

import argparse
import json
import time

from examples.paper.page import MEASURED, PARTS, TARGET, draw, measured, on_gpu, page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PARTS, help="may be given several times")
    parser.add_argument("--render", action="store_true")
    chosen = parser.parse_args()
    data = measured()
    for name in () if chosen.render else chosen.only or PARTS:
        began = time.perf_counter()
        data[name] = PARTS[name].measure()
        MEASURED.write_text(json.dumps(data, indent=1, sort_keys=False) + "\n")
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    draw(data, on_gpu())
    TARGET.write_text(page(data, on_gpu()), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(TARGET.parents[1])}")


if __name__ == "__main__":
    main()
