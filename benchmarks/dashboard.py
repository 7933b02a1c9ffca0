"""The dashboard over a store of many runs: how long pages take and how large they are.

    python benchmarks/dashboard.py [--runs 10000] [--times 7]

Each page is asked for over a real connection; the least of several times counts, since others may use the machine.
"""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from bitwatt import store
from bitwatt.dashboard import application
from bitwatt.dashboard.serving import server_of
from bitwatt.fingerprint import summary
from store import made

PAGES = {
    "runs, the first page": "/",
    "runs, filtered and sorted by a metric": "/?q=name~vit+tag:team=vision+flops%3E1e12&sort=-metric.accuracy",
    "runs, the last page": "/?start=9950",
    "runs, 12 columns": "/?" + "&".join(f"column={name}" for name in (
        "started", "seconds", "flops", "bops", "energy_j", "metric.accuracy", "metric.loss", "param.lr", "tag:team",
        "gpu", "commit", "command")),
    "one run of 200 layers": "/runs/deep-0",
    "two of them compared": "/compare?run=deep-0&run=deep-1",
    "trends by version": "/trends",
    "trends by run": "/trends?each=run",
    "jobs": "/ranks",
    "a job of 64 ranks": "/ranks/job-1?name=spread",
    "live": "/live",
    "api: 50 runs": "/api/runs",
    "api: 1,000 runs": "/api/runs?limit=1000",
}  # fmt: skip


def asked(port: int, path: str) -> tuple[float, float, int, int]:
    """Seconds until the whole answer is there, of the processor, bytes, and bytes packed."""
    sizes, began, cpu = [], time.perf_counter(), time.process_time()
    for packed in ("identity", "gzip"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        connection.request("GET", path, headers={"Accept-Encoding": packed})
        answer = connection.getresponse()
        sizes.append(len(answer.read()))
        connection.close()
        assert answer.status == 200, path
        if packed == "identity":
            spent, used = time.perf_counter() - began, time.process_time() - cpu
    return spent, used, sizes[0], sizes[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=7)
    args = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from showcase import job_runs, training_run

    with tempfile.TemporaryDirectory() as text:
        os.environ["XDG_CACHE_HOME"] = text
        folder = Path(text) / "store"
        made(folder, args.runs)
        deep = [training_run(layers=50, id=f"deep-{i}", name="deep", started=f"2026-01-0{i + 1}T00:00:00.000+00:00")
                for i in range(2)]  # fmt: skip
        for run in [*deep, *(replace(one, started="2026-01-03T00:00:00.000+00:00") for one in job_runs(64))]:
            store.save(run, folder, summary=summary(run), sync=False)
        listener = socket.create_server(("127.0.0.1", 0))
        server = server_of(application(folder))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        port = listener.getsockname()[1]
        print(f"{'':<40}{'first':>9}{'least':>9}{'CPU':>9}{'bytes':>12}{'packed':>11}")
        for title, path in PAGES.items():
            found = [asked(port, path) for _ in range(args.times)]
            least, used = min(one[0] for one in found), min(one[1] for one in found)
            print(
                f"{title:<40}{found[0][0]:>7.3f} s{least:>7.3f} s{used:>7.3f} s{found[0][2]:>12,}{found[0][3]:>11,}",
                flush=True,
            )
        server.should_exit = True
        thread.join(10)


if __name__ == "__main__":
    main()
