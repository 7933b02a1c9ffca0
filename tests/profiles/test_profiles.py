"""Traces of other tools: a real one of torch.profiler is made here, those of a GPU were recorded on an H200."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

import bitwatt
from bitwatt.errors import BitwattError
from bitwatt.ledger import Row
from bitwatt.profiles import read
from bitwatt.profiles.profile import union
from factories import make_run, mm_op

DATA = Path(__file__).parents[1] / "data"
#: c = a @ b of 256 x 256 in two kernels, then d = c + a, as ncu counted: 2 x 16,777,216 and 2 x 16,384 (packed halves)
#: in the product, 262,144 + 2 x 65,536 where its four parts are added up, 2 x 65,536 in the addition.
EXECUTED = 2 * 16_777_216 + 2 * 16_384 + 262_144 + 2 * 65_536 + 2 * 65_536


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, path = torch.nn.Linear(64, 64), tmp_path_factory.mktemp("trace") / "trace.json"
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        for _ in range(3):
            with record_function("my step"):
                model(torch.randn(32, 64)).sum().backward()
                optimizer.step()
    profiled.export_chrome_trace(str(path))
    return path


def test_a_trace_of_torch_profiler_tells_ops_and_what_was_marked(trace: Path) -> None:
    found = read(trace)
    assert (found.source, found.kernels, found.kernel_s, found.busy_s) == ("torch.profiler", 0, None, None)
    events = [one for one in json.loads(trace.read_text())["traceEvents"] if one.get("cat") == "cpu_op"]
    # what ops take without those they call adds up to the outermost ones: of each thread, what they cover
    threads: dict[int, list[tuple[float, float]]] = {}
    for one in events:
        threads.setdefault(one["tid"], []).append((one["ts"] / 1e6, (one["ts"] + one["dur"]) / 1e6))
    covered = sum(union(spans) for spans in threads.values())
    assert sum(found.by_op.values()) == pytest.approx(covered, rel=0.02, abs=2e-6)
    assert {"aten::addmm", "aten::mm"} <= set(found.by_op)
    assert {"my step", "Optimizer.step#SGD.step", "backward"} <= set(found.by_phase)
    assert found.span_s is not None
    assert 0 < found.by_phase["backward"] < found.by_phase["my step"] <= found.span_s


def test_a_packed_trace_reads_the_same(trace: Path, tmp_path: Path) -> None:
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    assert read(packed) == read(trace)


def test_kernel_time_of_a_gpu_is_the_sum_of_its_kernels() -> None:
    found = read(DATA / "torch-trace-h200.json")
    listed = json.loads((DATA / "torch-trace-h200.json").read_text())["traceEvents"]
    microseconds = sum(one["dur"] for one in listed if one["cat"] == "kernel")
    assert found.kernels == 20
    assert found.kernel_s == pytest.approx(microseconds / 1e6)
    assert found.busy_s == pytest.approx(found.kernel_s, rel=1e-6)  # one after the other
    assert sum(found.by_kernel.values()) == pytest.approx(found.kernel_s)


@pytest.mark.parametrize("name", ["ncu-long.csv", "ncu-wide.csv"])
def test_counters_of_ncu_are_summed_over_kernels_in_both_layouts(name: str) -> None:
    found = read(DATA / name)
    assert (found.kernels, found.flops, found.tensor_flops, found.capability) == (3, EXECUTED, 0, "9.0")
    assert found.dram_bytes == pytest.approx(553_472 + 1_068_800 + 529_920, rel=0.01)  # measured twice
    assert found.kernel_s == pytest.approx(16e-6, rel=0.02)


def test_units_and_metrics_that_are_not_there(tmp_path: Path) -> None:
    head = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    file = tmp_path / "some.csv"
    rows = ['"0","k","dram__bytes_read.sum","Mbyte","1.5"', '"0","k","dram__bytes_write.sum","Kbyte","500"']
    file.write_text(head + "\n".join([*rows, '"1","k","dram__bytes.sum","byte","n/a"', '"1","k","x","%","7"']))
    found = read(file)
    assert found.dram_bytes == 2e6
    assert (found.flops, found.kernel_s) == (None, None)  # not asked for: unknown, not 0


def test_a_run_beside_counters_shows_both_and_their_ratio() -> None:
    run = make_run([Row("forward", "", mm_op(256, 256, 256), 1)])
    text = bitwatt.report(run, beside=DATA / "ncu-long.csv")
    ours = bitwatt.totals(run, "flops:executed@sm90").total
    assert "Beside Nsight Compute: 3 GPU kernels" in text
    told = " ".join(text.split())
    assert f"FLOPs executed, flops:executed@sm90: 34.1 MFLOP there, {ours / 1e6:.1f} MFLOP here" in told
    document = json.loads(bitwatt.report(run, beside=DATA / "ncu-long.csv", format="json"))["beside"]
    moved = document["compared"]["DRAM bytes, bytes of calls"]
    assert moved == {"theirs": pytest.approx(2.15e6, rel=0.01), "ours": 3 * 256 * 256 * 4}


def test_a_trace_beside_a_run_in_every_format(trace: Path) -> None:
    run = make_run([Row("forward", "", mm_op(32, 64, 64), 3)])
    for format in ("text", "markdown", "html"):
        assert "Beside torch.profiler" in bitwatt.report(run, beside=trace, format=format)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("hello", "neither"),
        ('{"traceEvents": []}', "no event"),
        ('{"a": 1}', "damaged"),
        ("{", "damaged"),
        ("==PROF== no Kernel Name", "no kernel was profiled"),
        ('{"traceEvents": [], "otherData": {"format": "bitwatt.trace"}}', "written by bitwatt"),
    ],
)
def test_what_is_no_trace_is_told(content: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    file.write_text(content)
    with pytest.raises(BitwattError, match=says):
        read(file)
    with pytest.raises(BitwattError, match="cannot be read"):
        read(tmp_path / "nothing.json")


def test_a_packed_trace_that_is_damaged_is_told(trace: Path, tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(trace.read_bytes()))
    packed[len(packed) // 2 : len(packed) // 2 + 40] = b"\xff" * 40
    (tmp_path / "bad.json.gz").write_bytes(packed)
    with pytest.raises(BitwattError, match="damaged"):
        read(tmp_path / "bad.json.gz")
