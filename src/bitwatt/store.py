"""Keeps runs: one versioned file per run, written atomically, its first line readable on its own."""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from bitwatt.dtypes import Precision
from bitwatt.errors import RunFileError, UnknownNameError
from bitwatt.folded import folded_json, folded_of
from bitwatt.ledger import Ledger, Row
from bitwatt.observed import observed_json, observed_of
from bitwatt.readings import metered_json, metered_of
from bitwatt.records import Axis, Layer, Machine, Op, Quantised, Rank, Replay, Run, TensorSpec
from bitwatt.served import requests_json, requests_of

FORMAT, VERSION, SUFFIX = "bitwatt.run", 4, ".run"
FOLDER = Path(".bitwatt")

_HEADER_LIMIT = 1 << 20  # a first line longer than this is not ours; reading on could swallow a whole foreign file

Json = dict[str, Any]

#: Version -> what turns a (header, body) of that version into one of the next. Append only; tests/data keeps a file of
#: every version. `body` is None when only the header is read.
MIGRATIONS: dict[int, Callable[[Json, Json | None], tuple[Json, Json | None]]] = {}


def _layers_as_objects(header: Json, body: Json | None) -> tuple[Json, Json | None]:
    """Version 2 writes layers as objects, since they have come to hold how their weights are written."""
    if body is None:
        return header, None
    names = ("kind", "weight_dtype", "parameters")
    layers = {scope: dict(zip(names, layer, strict=True)) for scope, layer in body["layers"].items()}
    return header, body | {"layers": layers}


MIGRATIONS[1] = _layers_as_objects


def _nothing_folded(header: Json, body: Json | None) -> tuple[Json, Json | None]:
    """Version 3 has rows in which many sizes of an op are folded, and says which rank of a job a run was."""
    return header, None if body is None else body | {"folded": []}


MIGRATIONS[2] = _nothing_folded


def _nothing_metered(header: Json, body: Json | None) -> tuple[Json, Json | None]:
    """Version 4 holds what a run used of the machine."""
    return header, None if body is None else body | {"meter": None}


MIGRATIONS[3] = _nothing_metered


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line of a run file tells."""

    path: Path
    id: str
    name: str
    started: str
    seconds: float
    command: str = ""
    status: str = "ok"
    notes: tuple[str, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    #: Coverage, totals and fingerprint as priced when the run was kept; empty where nobody gave them.
    summary: Mapping[str, Any] = field(default_factory=dict)
    rank: Rank | None = None


def save(
    run: Run, store: Path | str | None = None, *, summary: Mapping[str, Any] | None = None, sync: bool = True
) -> Path:
    """Write a run to `<store>/<id>.run`, completely or not at all. `summary` is kept in the header for listings.
    Without `sync` it survives the end of the process, but perhaps not a power cut."""
    folder = FOLDER if store is None else Path(store)
    if not run.id or Path(run.id).name != run.id:
        raise RunFileError(f"a run cannot be kept under the id {run.id!r}: it must be a plain file name")
    header: Json = {
        "format": FORMAT,
        "version": VERSION,
        "id": run.id,
        "name": run.name,
        "started": run.started,
        "seconds": run.seconds,
        "command": run.command,
        "status": run.status,
        "notes": list(run.notes),
        "machine": dict(run.machine.facts),
        "summary": dict(summary or {}),
    }
    if run.replay is not None:
        header["replay"] = asdict(run.replay)
    if run.rank is not None:
        header["rank"] = _rank_json(run.rank)
    content = _line(header) + b"\n" + zlib.compress(_line(_body(run)), 6)
    path, temporary = folder / f"{run.id}{SUFFIX}", folder / f".{run.id}.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RunFileError(f"the run could not be kept in {folder}: {error}; choose another folder") from error
    if sync:
        _sync(folder)
    return path


def load(which: str | Path | None = None, store: Path | str | None = None) -> Run:
    """A run by path, id, name (the newest of that name) or unique beginning of an id; by default the newest."""
    path = find(which, store)
    with _opened(path) as file:
        header = _header(file, path)
        try:
            reader = zlib.decompressobj()
            body = json.loads(reader.decompress(file.read()) + reader.flush())
            if not reader.eof or reader.unused_data:
                raise ValueError("the end does not fit")
        except (zlib.error, ValueError) as error:
            raise RunFileError(
                f"{path} is damaged: {error}. Its first line is intact (run {header.get('id')!r}), its ledger is lost"
            ) from error
    header, body = _migrated(header, body)
    try:
        return _run(header, body)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise RunFileError(f"{path} is not a run this bitwatt can read: {type(error).__name__}: {error}") from error


def headers(store: Path | str | None = None) -> tuple[list[Header], list[RunFileError]]:
    """Every run in a folder, newest first, from first lines alone; and one error for each file that is damaged."""
    found, damaged = [], []
    for path in (FOLDER if store is None else Path(store)).glob(f"*{SUFFIX}"):
        try:
            found.append(_read_header(path))
        except RunFileError as error:
            damaged.append(error)
    found.sort(key=lambda header: (header.started, header.id), reverse=True)
    return found, damaged


def runs(store: Path | str | None = None) -> list[Header]:
    """The runs in a folder, newest first."""
    return headers(store)[0]


def find(which: str | Path | None = None, store: Path | str | None = None) -> Path:
    """The file of a run, named as for `load`."""
    if which is not None and (isinstance(which, Path) or which.endswith(SUFFIX) or os.sep in which):
        return Path(which)
    folder = FOLDER if store is None else Path(store)
    kept = runs(folder)
    if which is None:
        if not kept:
            raise UnknownNameError(f"no run is kept in {folder}; make one with: bitwatt run script.py")
        return kept[0].path
    for match in (run for key in ("id", "name") for run in kept if getattr(run, key) == which):
        return match.path
    begun = [run for run in kept if run.id.startswith(which)]
    if len(begun) == 1:
        return begun[0].path
    if begun:
        raise UnknownNameError(f"{which!r} begins the ids of {len(begun)} runs: {', '.join(r.id for r in begun[:5])}")
    known = f"the newest are {', '.join(run.id for run in kept[:5])}" if kept else "none is kept there"
    raise UnknownNameError(f"no run in {folder} has the id or name {which!r}; {known}")


def _read_header(path: Path) -> Header:
    with _opened(path) as file:
        raw, _ = _migrated(_header(file, path), None)
    try:
        return Header(
            path, **{key: raw[key] for key in ("id", "name", "started", "seconds", "command", "status")},
            notes=tuple(raw["notes"]), **{key: raw[key] for key in ("machine", "summary")}, rank=_rank(raw.get("rank")),
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise RunFileError(f"{path} is damaged: its first line lacks {error}") from error


def _opened(path: Path) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise RunFileError(f"{path} cannot be read: {error.strerror or error}") from error


def _header(file: BinaryIO, path: Path) -> Json:
    """The first line, whatever readable version it is of."""
    line = file.readline(_HEADER_LIMIT)
    if not line:
        raise RunFileError(f"{path} is empty")
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        cut = line.startswith(b'{"format":"' + FORMAT.encode())
        raise RunFileError(f"{path} is truncated" if cut else f"{path} is not a bitwatt run file")
    version = header.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise RunFileError(
            f"{path} has format version {version}, this bitwatt reads up to {VERSION}; pip install --upgrade bitwatt"
        )
    if not line.endswith(b"\n"):
        raise RunFileError(f"{path} is truncated")
    return header


def _migrated(header: Json, body: Json | None) -> tuple[Json, Any]:
    while header["version"] < VERSION:
        version = header["version"]
        header, body = MIGRATIONS[version](header, body)
        header = header | {"version": version + 1}
    return header, body


def _body(run: Run) -> Json:
    ops: dict[Op, int] = {}

    def index(op: Op) -> int:
        return ops.setdefault(op, len(ops))

    rows = [[row.phase, row.scope, index(row.op), row.calls] for row in run.ledger if row.op.folded is None]
    folded = [
        [row.phase, row.scope, row.op.name, row.calls, folded_json(row.op.folded, index)]
        for row in run.ledger
        if row.op.folded is not None
    ]
    return {
        "ops": [
            [op.name, op.overload, [[name, _encode(value)] for name, value in op.args], _encode(op.out)] for op in ops
        ],
        "rows": rows,
        "folded": folded,
        "phase_seconds": dict(run.phase_seconds),
        "device_seconds": dict(run.device_seconds),
        "layers": {scope: _layer_json(layer) for scope, layer in run.layers.items()},
        "contents": [[ops[op], number] for op, number in run.rank.contents.items() if op in ops] if run.rank else [],
        "meter": None if run.meter is None else metered_json(run.meter),
        "requests": None if run.requests is None else requests_json(run.requests),
        "observed": None if run.observed is None else observed_json(run.observed),
    }


def _run(header: Json, body: Json) -> Run:
    ops = [
        Op(name, tuple((key, _decode(value)) for key, value in args), _decode(out), overload)
        for name, overload, args, out in body["ops"]
    ]
    rows = [Row(phase, scope, ops[index], calls) for phase, scope, index, calls in body["rows"]]
    rows += [
        Row(phase, scope, Op(name, folded=folded_of(fields, ops)), calls)
        for phase, scope, name, calls, fields in body["folded"]
    ]
    return Run(
        id=header["id"],
        name=header["name"],
        started=header["started"],
        seconds=header["seconds"],
        ledger=Ledger(rows),
        machine=Machine(header["machine"]),
        phase_seconds=body["phase_seconds"],
        device_seconds=body.get("device_seconds", {}),
        layers={scope: _layer(layer) for scope, layer in body["layers"].items()},
        command=header["command"],
        status=header["status"],
        notes=tuple(header["notes"]),
        replay=Replay(**header["replay"]) if header.get("replay") else None,
        meter=None if body["meter"] is None else metered_of(body["meter"]),
        requests=requests_of(body["requests"]) if body.get("requests") else None,
        observed=observed_of(body["observed"]) if body.get("observed") else None,
        rank=_rank(header.get("rank"), {ops[index]: number for index, number in body.get("contents", ())}),
    )


def _rank_json(rank: Rank) -> Json:
    """Fields that differ from those of a rank about which nothing is known."""
    blank = Rank(rank.rank, rank.world, rank.job)
    fields = asdict(replace(rank, contents={}))
    return {key: value for key, value in fields.items() if key in _ALWAYS or value != getattr(blank, key)}


_ALWAYS = ("rank", "world", "job")


def _rank(fields: Json | None, contents: Mapping[Op, int] | None = None) -> Rank | None:
    if fields is None:
        return None
    axes = tuple(Axis(**axis) for axis in fields.get("axes", ()))
    return Rank(**fields | {"axes": axes, "contents": contents or {}})


def _layer_json(layer: Layer) -> Json:
    """Fields that differ from those of a layer about which nothing is known."""
    blank = Layer(layer.kind)
    fields = {key: value for key, value in asdict(layer).items() if key == "kind" or value != getattr(blank, key)}
    for key in {"weights", "activations"} & set(fields):
        fields[key] = fields[key] | {"precision": list(fields[key]["precision"].values())}
    return fields


def _layer(fields: Json) -> Layer:
    decoded: Json = fields | {"shapes": _tuples(fields.get("shapes", ()))}
    for key in {"weights", "activations"} & set(fields):
        decoded[key] = Quantised(**fields[key] | {"precision": Precision(*fields[key]["precision"])})
    return Layer(**decoded)


def _encode(value: Any) -> Any:
    """JSON for one argument. Objects are free to mean tensors and odd floats, since no argument is a mapping."""
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, TensorSpec):
        spec: Json = {"shape": value.shape, "dtype": value.dtype}
        if value.nnz is not None:
            spec["nnz"] = value.nnz
        if value.parts is not None:
            spec["parts"] = value.parts
        if value.columnwise:
            spec["columnwise"] = True
        return spec
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return f"<{type(value).__name__}>"  # what the encoders write for an object that no rule reads


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_decode, value))
    if isinstance(value, dict):
        if "float" in value:
            return float(value["float"])
        parts = value.get("parts")
        ragged = None if parts is None else _tuples(parts)
        columnwise = value.get("columnwise", False)
        return TensorSpec(tuple(value["shape"]), value["dtype"], value.get("nnz"), ragged, columnwise)
    return value


def _tuples(rows: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in rows)


def _line(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def _sync(folder: Path) -> None:
    """Make the rename itself survive a power cut, where the system lets folders be synced."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
