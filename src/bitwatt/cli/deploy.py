"""Compare ways to deploy a trained model (native, ONNX, INT8, ...) and say which to take.

  bitwatt deploy model.joblib --data test.npz --trust
  bitwatt deploy model.joblib --data test.csv --target label --train train.csv --batch 1,64 --slo "p99<20ms" --trust
  bitwatt deploy --from artifacts --max-loss 0.5%             (tells the results again, without measuring)
  bitwatt deploy --check artifacts                            (do they still hold? exit 1 if not)
  bitwatt deploy --url http://localhost:8000/predict --data test.npz --slo "p95<50ms"

Every scenario is timed in fresh processes, all of them in random order in each block; ratios have intervals, and "no
difference shown" is a result. Written to --out: hardware_tradeoffs.csv, hardware_tradeoffs_summary.json, .html, the raw
times and the study; and a run is kept in the store.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitwatt.cli.options import add_store_option

if TYPE_CHECKING:
    from bitwatt.deploy.telling.findings import Findings
    from bitwatt.deploy.telling.rules import Rules

FORMATS = ("text", "markdown", "json", "html")
#: Columns of a terminal that are made use of.
_WIDEST = 160


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", nargs="?", metavar="MODEL", help="a joblib or pickle file, a torch file, or package.module:function")
    add("--data", metavar="FILE", help="rows to try it on: npz, npy, csv, parquet or pt")
    add("--target", metavar="NAME", help="the column or array of the data that holds what is right (default: y)")
    add("--train", metavar="FILE", help="rows it was trained on, for calibration and drift")
    add("--trust", action="store_true", help="open the model file, which runs code that is in it")
    add("--scenarios", metavar="A,B", default="", help="only these (default: all that apply)")
    add("--batch", metavar="N,N", default="1,32,256", help="rows in a call (default: 1,32,256)")
    add("--threads", metavar="N,N", default="1", help="threads of the runtimes (default: 1)")
    add("--metric", metavar="NAME", help="what quality is: a scorer of scikit-learn (default: accuracy or r2)")
    add("--method", metavar="NAME", help="what is asked of the model: predict_proba or predict")
    add("--device", metavar="DEVICE", default="", help="where torch runs, such as cuda (default: cpu)")
    hurry = parser.add_mutually_exclusive_group()
    hurry.add_argument("--quick", action="store_true", help="for a first look: a minute or two on a quiet machine")
    hurry.add_argument("--thorough", action="store_true", help="more processes and longer ones, for small differences")
    add("--slo", metavar="SLO", default="", help='what must hold under load, such as "p99<20ms"')
    add("--rates", metavar="N,N", default="", help="requests a second to try (default: chosen by what it can do)")
    add("--callers", metavar="N,N", default="", help="callers at once to try")
    add("--no-load", action="store_true", help="put no load on them")
    add("--max-loss", metavar="SHARE", default="1%", help="quality that may be lost (default: 1%%)")
    add("--min-gain", metavar="SHARE", default="20%", help="latency that must be gained to convert (default: 20%%)")
    add("--out", metavar="DIR", type=Path, help="where results go (default: artifacts; with --from: nowhere)")
    add("--format", metavar="FORMAT", default="text", help="text, markdown, json or html")
    add("--name", metavar="NAME", default="", help="what the run is called (default: the model's file)")
    add_store_option(parser)
    add("--no-keep", action="store_true", help="keep no run in the store")
    add("--from", metavar="DIR", dest="results", type=Path, help="tell the results of a folder again; nothing is run")
    add("--check", metavar="DIR", type=Path, help="say whether the results of a folder still hold; exit 1 if not")
    add("--url", metavar="URL", help="put load on an HTTP endpoint instead")
    add("--body", metavar="JSON", help='what is sent there (default: {"inputs": "$rows"})')
    add("--header", metavar="NAME: VALUE", action="append", default=[], help="sent along; may be repeated")


def main(args: argparse.Namespace) -> int:
    from bitwatt.errors import BitwattError, UnknownNameError

    if args.format not in FORMATS:
        raise UnknownNameError(f"--format is one of {', '.join(FORMATS)}, not {args.format!r}")
    ways = [name for name in ("results", "check", "url") if getattr(args, name) is not None]
    if len(ways) > 1:
        raise BitwattError("--from, --check and --url: choose one")
    if args.check is not None:
        return _check(args)
    if args.url is not None:
        return _url(args)
    try:
        findings = _read(args) if args.results is not None else _measured(args)
    except ModuleNotFoundError as error:
        from bitwatt.deploy.lab import HOW_TO_GET, NEEDED

        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        raise BitwattError(f"{HOW_TO_GET} ({error.name} is missing)") from error
    except KeyboardInterrupt as stop:
        return _interrupted(stop, args)
    _tell(findings, args)
    return 0


def _interrupted(stop: KeyboardInterrupt, args: argparse.Namespace) -> int:
    """What was measured until then is written, and can be told."""
    from bitwatt.deploy.lab import Interrupted

    told = "interrupted; nothing was measured yet, nothing was written"
    if isinstance(stop, Interrupted):
        folder = args.out or Path("artifacts")
        _written(stop.findings, folder)
        told = f"{stop}; what was measured until then is in {folder}: bitwatt deploy --from {folder} tells it"
    print(f"bitwatt: {told}", file=sys.stderr)
    cause = stop.__cause__ or stop
    return 128 + (signal.SIGTERM if isinstance(cause, TerminatedError) else signal.SIGINT)


class TerminatedError(KeyboardInterrupt):
    """By SIGTERM, which ends a study as Ctrl-C does."""


@contextmanager
def _terminable() -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise TerminatedError

    if threading.current_thread() is not threading.main_thread():  # where signals cannot be set
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _rules(args: argparse.Namespace) -> Rules:
    from bitwatt.deploy.lab import share
    from bitwatt.deploy.telling.rules import Rules

    found = {name: share(_quantity(getattr(args, name), name), name) for name in ("max_loss", "min_gain")}
    return Rules(max_loss=found["max_loss"], min_gain=found["min_gain"])


def _quantity(text: str, name: str) -> float:
    from bitwatt.errors import BitwattError
    from bitwatt.units import parse

    try:
        value, unit = parse(text)
    except ValueError as error:
        raise BitwattError(f"--{name.replace('_', '-')}: {error}") from error
    if unit:
        raise BitwattError(f"--{name.replace('_', '-')} {text}: a share, such as 1% or 0.01")
    return float(value)


def _numbers(text: str, option: str, kind: type = int) -> tuple[Any, ...]:
    from bitwatt.errors import BitwattError

    try:
        return tuple(kind(word) for word in text.split(",") if word.strip())
    except ValueError as error:
        raise BitwattError(f"--{option} {text}: numbers with commas between, such as 1,32") from error


def _read(args: argparse.Namespace) -> Findings:
    from bitwatt.deploy.telling.findings import read

    findings = read(args.results, _rules(args))
    if args.out is not None:
        _written(findings, args.out)
    return findings


def _written(findings: Findings, folder: Path) -> str:
    written = findings.save(folder)
    return f"written to {folder}: {', '.join(path.name for path in written)}"


def _measured(args: argparse.Namespace) -> Findings:
    from bitwatt.cli.progress import Bar
    from bitwatt.deploy.lab import compare
    from bitwatt.errors import BitwattError

    if args.model is None or args.data is None:
        raise BitwattError("which model, and which rows? bitwatt deploy MODEL --data ROWS")
    rules, folder = _rules(args), args.out or Path("artifacts")
    with _terminable(), Bar(sys.stderr) as bar:
        findings = compare(
            args.model, args.data, train=args.train, trust=args.trust, target=args.target, method=args.method,
            metric=args.metric, device=args.device, name=args.name, quick=args.quick, thorough=args.thorough,
            scenarios=[name.strip() for name in args.scenarios.split(",") if name.strip()],
            batches=_numbers(args.batch, "batch"), threads=_numbers(args.threads, "threads"), loaded=not args.no_load,
            slo=args.slo, rates=_numbers(args.rates, "rates", float), callers=_numbers(args.callers, "callers"),
            max_loss=rules.max_loss, min_gain=rules.min_gain, folder=folder, progress=bar,
        )  # fmt: skip
    told = _written(findings, folder)
    if not args.no_keep:
        from bitwatt.deploy.telling.kept import keep

        run, _ = keep(findings, args.store, name=args.name, command=_command(), folder=folder)
        told += f"; kept as run {run.id}"
    print(told, file=sys.stderr)
    return findings


def _command() -> str:
    import shlex

    return shlex.join(["bitwatt", *sys.argv[1:]])


def _tell(findings: Findings, args: argparse.Namespace) -> None:
    import json
    import shutil

    from bitwatt.reports.text import WIDTH, fitting, wants_color

    if args.format == "json":
        print(json.dumps(findings.summary(), indent=2, allow_nan=False))
    elif args.format == "text":
        width = min(shutil.get_terminal_size((WIDTH, 24)).columns, _WIDEST)
        text = findings.text(width, wants_color(sys.stdout))
        sys.stdout.write(fitting(text, sys.stdout.encoding))
    else:
        sys.stdout.write(findings.markdown() if args.format == "markdown" else findings.page())


def _check(args: argparse.Namespace) -> int:
    import json

    from bitwatt.deploy.documents import as_json
    from bitwatt.deploy.telling import stale
    from bitwatt.deploy.telling.findings import read_study
    from bitwatt.deploy.telling.tables import MARKS
    from bitwatt.harmless import on_terminal
    from bitwatt.reports.text import fitting

    found = stale.check(read_study(args.check), model=args.model, data=args.data)
    stale_now = stale.is_stale(found)
    if args.format == "json":
        print(json.dumps({"holds": not stale_now, "checked": as_json(found)}, indent=2))
    else:
        lines = ["stale: measure again" if stale_now else "the results still hold"]
        lines += [f"{MARKS[one.passed]} {one.name}: {on_terminal(one.told)}" for one in found]
        print(fitting("\n".join(lines), sys.stdout.encoding))
    return 1 if stale_now else 0


def _url(args: argparse.Namespace) -> int:
    from bitwatt.cli.progress import Bar
    from bitwatt.deploy import load, plans
    from bitwatt.deploy.telling.endpoints import rows_of, told
    from bitwatt.errors import BitwattError
    from bitwatt.reports.text import fitting

    headers = {}
    for text in args.header:
        name, sign, value = text.partition(":")
        if not sign or not name.strip():
            raise BitwattError(f"--header {text}: write it as Name: value")
        headers[name.strip()] = value.strip()
    plan = plans.plan(quick=args.quick, thorough=args.thorough)
    batch = _numbers(args.batch, "batch")[0] if args.batch else 1
    with Bar(sys.stderr) as bar:
        found = load.http(
            args.url, rows=rows_of(args.data, args.target, args.trust), body=args.body, headers=headers, batch=batch,
            rates=_numbers(args.rates, "rates", float), callers=_numbers(args.callers, "callers"), slo=args.slo,
            seconds=plan.load_seconds, progress=bar,
        )  # fmt: skip
    sys.stdout.write(fitting(told(args.url, found, args.format), sys.stdout.encoding))
    answered = any(point.requests > point.failed for point in found.points)
    if not answered:
        print(f"bitwatt: {args.url} answered no request", file=sys.stderr)
    return 0 if answered and (not args.slo or found.highest_rate) else 1
