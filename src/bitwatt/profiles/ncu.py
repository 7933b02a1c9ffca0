"""CSV of Nsight Compute (`ncu --csv`), a line for each metric, or for each kernel with `--page raw`: operations,
bytes of device memory, time of kernels. Counted as in flops:executed: 2·FMA + ADD + MUL and tensor-core operations, an
instruction on packed halves being one."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from bitwatt.profiles.profile import Profile

_SASS = re.compile(r"^smsp?__sass_thread_inst_executed_op_([hfd])(add|mul|fma)_pred_on\.sum$")
_TENSOR = re.compile(r"^sm__ops_path_tensor_src_\w+\.sum$")
_WEIGHT = {"add": 1, "mul": 1, "fma": 2}
_DRAM = "dram__bytes.sum"
_DRAM_PARTS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
_TIME = ("gpu__time_duration.sum", "gpu__time_duration.avg")
_KERNEL = "Kernel Name"
#: What ncu calls units. Operations and instructions come as they are, or with a prefix.
_UNITS = {
    "": 1.0, "inst": 1.0, "byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12,
    "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1.0, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0,
}  # fmt: skip

Values = dict[str, float]


def is_one(data: bytes) -> bool:
    return _KERNEL.encode() in data


def profile(data: bytes) -> Profile:
    kernels, capability = _kernels(data.decode("utf-8", "replace"))
    by_kernel: dict[str, float] = {}
    seconds: list[float] = []
    for name, values in kernels:
        spent = next((values[metric] for metric in _TIME if metric in values), None)
        if spent is not None:
            seconds.append(spent)
            by_kernel[name] = by_kernel.get(name, 0.0) + spent
    sass = [n * _WEIGHT[found[2]] for _, values in kernels for m, n in values.items() if (found := _SASS.match(m))]
    tensor = [n for _, values in kernels for metric, n in values.items() if _TENSOR.match(metric)]
    moved = [sum(values[m] for m in _moved(values)) for _, values in kernels if _moved(values)]
    return Profile(
        "Nsight Compute",
        kernels=len(kernels),
        kernel_s=sum(seconds) if seconds else None,
        by_kernel=by_kernel,
        flops=sum(sass) + sum(tensor) if sass or tensor else None,
        tensor_flops=sum(tensor) if tensor else None,
        dram_bytes=sum(moved) if moved else None,
        capability=capability,
    )


def _moved(values: Values) -> list[str]:
    return [_DRAM] if _DRAM in values else [metric for metric in _DRAM_PARTS if metric in values]


def _kernels(text: str) -> tuple[list[tuple[str, Values]], str]:
    """Each launch with its metrics in base units, and the compute capability."""
    lines = [line for line in text.splitlines() if not line.startswith("==")]
    first = next((i for i, line in enumerate(lines) if _KERNEL in line), None)
    if first is None:
        raise ValueError(f"it has no line with {_KERNEL!r}: no kernel was profiled")
    rows = csv.DictReader(lines[first:])
    head = rows.fieldnames or []
    found = _long(rows) if "Metric Name" in head else _wide(rows)
    launches: dict[str, tuple[str, Values]] = {}
    capability = ""
    for key, name, cc, metric, value in found:
        launches.setdefault(key, (name, {}))[1][metric] = value
        capability = capability or cc
    return list(launches.values()), capability


def _long(rows: csv.DictReader[str]) -> Iterator[tuple[str, str, str, str, float]]:
    for row in rows:
        if (value := _number(row["Metric Value"], row["Metric Unit"])) is not None:
            yield f"{row.get('Process ID')}.{row['ID']}", row[_KERNEL], row.get("CC") or "", row["Metric Name"], value


def _wide(rows: csv.DictReader[str]) -> Iterator[tuple[str, str, str, str, float]]:
    """The line under the names holds the units."""
    units: dict[str, str] | None = None
    for row in rows:
        if units is None:
            units = {name: unit or "" for name, unit in row.items() if name}
            continue
        for metric in row:
            if metric and "__" in metric and (value := _number(row[metric], units[metric])) is not None:
                yield f"{row.get('Process ID')}.{row['ID']}", row[_KERNEL], row.get("CC") or "", metric, value


def _number(text: str | None, unit: str | None) -> float | None:
    """None for what is no number (n/a), or in a unit that nothing here needs."""
    scale = _UNITS.get((unit or "").lower())
    try:
        return None if scale is None or not text else float(text.replace(",", "")) * scale
    except ValueError:
        return None
