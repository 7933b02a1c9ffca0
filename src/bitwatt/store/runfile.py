"""What a run file holds: a header, one line of JSON that is readable on its own, and a compressed body."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bitwatt.about import About, about_json, about_of, series_json, with_series
from bitwatt.dtypes import Precision
from bitwatt.errors import RunFileError
from bitwatt.folded import folded_json, folded_of
from bitwatt.ledger import Ledger, Row
from bitwatt.observed import observed_json, observed_of
from bitwatt.readings import metered_json, metered_of
from bitwatt.records import Axis, Layer, Machine, Op, Quantised, Rank, Replay, Run, TensorSpec
from bitwatt.served import requests_json, requests_of
from bitwatt.store import migrations
from bitwatt.store.migrations import FORMAT, Json, migrated
from bitwatt.store.places import HEAD, Where

#: Of a header that would be too long, texts are cut to these lengths, one after the other, until it fits.
_CUTS, _ITEMS = (10_000, 1_000, 100), 1_000


@dataclass(frozen=True, slots=True)
class Header:
    """What the first line of a run file tells."""

    path: Where
    id: str
    name: str
    started: str
    seconds: float
    command: str = ""
    status: str = "ok"
    notes: tuple[str, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)
    #: Coverage, totals and so on as priced when the run was kept (fingerprint.summary); empty where nobody gave them.
    summary: Mapping[str, Any] = field(default_factory=dict)
    rank: Rank | None = None
    about: About = field(default_factory=About)

    def total(self, model: str) -> int | None:
        """FLOPs, BOPs, MACs or bytes as priced when the run was kept."""
        found = self.summary.get("totals", {}).get(model)
        return found if isinstance(found, int) else None


def written(run: Run, summary: Mapping[str, Any] | None = None) -> bytes:
    """A run as a file."""
    header: Json = {
        "format": FORMAT,
        "version": migrations.VERSION,
        "id": run.id,
        "name": run.name,
        "started": run.started,
        "seconds": run.seconds,
        "command": run.command,
        "status": run.status,
        "notes": list(run.notes),
        "machine": dict(run.machine.facts),
        "summary": dict(summary or {}),
        "about": about_json(run.about),
    }
    if run.replay is not None:
        header["replay"] = asdict(run.replay)
    if run.rank is not None:
        header["rank"] = rank_json(run.rank)
    return first_line(header) + zlib.compress(_line(_body(run)), 6)


def first_line(header: Json) -> bytes:
    line = _line(header) + b"\n"
    for cut in _CUTS:
        if len(line) <= HEAD:
            break
        told = ("name", "command", "status", "notes", "machine", "about")
        line = _line(header | {key: _shortened(header[key], cut) for key in told}) + b"\n"
    return line


def _shortened(value: Any, cut: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= cut else value[: cut - 1] + "…"
    if isinstance(value, list):
        return [_shortened(one, cut) for one in value[:_ITEMS]]
    if isinstance(value, dict):
        return {key: _shortened(one, cut) for key, one in list(value.items())[:_ITEMS]}
    return value


def raw_header(line: bytes, where: Where) -> Json:
    """The first line as JSON, whatever readable version it is of."""
    if not line:
        raise RunFileError(f"{where} is empty")
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        cut = line.startswith(b'{"format":"' + FORMAT.encode())
        raise RunFileError(f"{where} is truncated" if cut else f"{where} is not a bitwatt run file")
    version, known = header.get("version"), migrations.VERSION
    if not isinstance(version, int) or not 1 <= version <= known:
        raise RunFileError(
            f"{where} has format version {version}, this bitwatt reads up to {known}; pip install --upgrade bitwatt"
        )
    if not line.endswith(b"\n"):
        raise RunFileError(f"{where} is truncated")
    return header


def header_of(line: bytes, where: Where) -> Header:
    raw = raw_header(line, where)
    try:
        raw, _ = migrated(raw, None)
        _check(raw)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RunFileError(f"{where} is damaged: its first line lacks or spoils {error}") from error
    return as_header(raw, where)


def _check(raw: Json) -> None:
    """What listings compute with must be numbers, else one file would spoil the list."""
    summary, about, rank = raw["summary"], raw["about"], raw.get("rank")
    for key in ("totals", "coverage", "by_phase"):
        _are((int,), summary.get(key, {}), key)
    for key in ("energy_j", "grams", "cost", "memory_bytes", "device_memory_bytes", "parameters"):
        _are((int, float), {key: summary.get(key, 0)}, key)
    for key in ("tags", "git"):
        _are((str,), about.get(key, {}), key)
    for name, told in about.get("metrics", {}).items():
        _are((int, float, dict, type(None)), told, name)
    _are((str,), raw["machine"], "machine")
    if rank is not None:
        _are((int,), {key: rank[key] for key in ("rank", "world")}, "rank")
        _are((str,), {"job": rank["job"]}, "job")


def _are(kinds: tuple[type, ...], values: Mapping[str, Any], key: str) -> None:
    if not all(isinstance(value, kinds) and not isinstance(value, bool) for value in values.values()):
        raise TypeError(key)


def as_header(raw: Mapping[str, Any], where: Where, *, odd: bool = True) -> Header:
    """Of the current version's JSON. What is not of its kind would break listings later, so it is damage."""
    try:
        texts = {key: _is(str, raw[key], key) for key in ("id", "name", "started", "command", "status")}
        return Header(
            where,
            **texts,
            seconds=float(raw["seconds"]),
            notes=tuple(map(str, raw["notes"])),
            machine=_is(dict, raw["machine"], "machine"),
            summary=_is(dict, raw["summary"], "summary"),
            rank=_rank(raw.get("rank")),
            about=about_of(_is(dict, raw["about"], "about"), odd=odd),
        )
    except KeyError as error:
        raise RunFileError(f"{where} is damaged: its first line lacks or spoils {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise RunFileError(f"{where} is damaged: {error}") from error


def _is(kind: type, value: Any, key: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"its {key} is a {type(value).__name__}")
    return value


def unpacked(content: bytes, where: Where) -> tuple[Json, Json]:
    """Header and body of a whole file, of the current version."""
    line, newline, packed = content.partition(b"\n")
    header = raw_header(line + newline, where)
    try:
        reader = zlib.decompressobj()
        body = json.loads(reader.decompress(packed) + reader.flush())
        if not reader.eof or reader.unused_data:
            raise ValueError("the end does not fit")
    except (zlib.error, ValueError) as error:
        raise RunFileError(
            f"{where} is damaged: {error}. Its first line is intact (run {header.get('id')!r}), its ledger is lost"
        ) from error
    try:
        return migrated(header, body)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFileError(f"{where} is not a run this bitwatt can read: {type(error).__name__}: {error}") from error


def packed(header: Json, body: Json) -> bytes:
    return first_line(header) + zlib.compress(_line(body), 6)


def run_of(content: bytes, where: Where) -> Run:
    header, body = unpacked(content, where)
    try:
        return _run(header, body)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise RunFileError(f"{where} is not a run this bitwatt can read: {type(error).__name__}: {error}") from error


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
        "metrics": series_json(run.about),
        **({} if run.deployment is None else {"deployment": dict(run.deployment)}),
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
        about=with_series(about_of(header["about"]), body["metrics"]),
        deployment=_is(dict, body["deployment"], "deployment") if body.get("deployment") else None,
        rank=_rank(header.get("rank"), {ops[index]: number for index, number in body.get("contents", ())}),
    )


def rank_json(rank: Rank) -> Json:
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
    if layer == blank:  # those of estimators
        return {"kind": layer.kind}
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
