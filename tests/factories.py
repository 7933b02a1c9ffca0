"""Synthetic runs: a few toy rules under a private namespace, and a small model's training written as a ledger."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bitwatt.dtypes import dtype
from bitwatt.formulas.linalg import matmul
from bitwatt.ledger import Ledger, Row
from bitwatt.readings import Device, Energy, Metered, PhaseEnergy
from bitwatt.records import Layer, Machine, Op, Run, TensorSpec, Work
from bitwatt.registry import free, rule


@rule("toy.mm", family="matmul")
def mm(a: TensorSpec, b: TensorSpec, **_: Any) -> Work:
    """m x k by k x n: m·n·k multiply-accumulates."""
    (m, k), n = a.shape, b.shape[1]
    return matmul(m, k, n, a, b)


@rule("toy.bmm", family="matmul")
def bmm(a: TensorSpec, b: TensorSpec, **_: Any) -> Work:
    """A batch of products."""
    (batch, m, k), n = a.shape, b.shape[2]
    return matmul(m, k, n, a, b, batch=batch)


@rule("toy.causal_attention", family="attention")
def causal_attention(q: TensorSpec, **_: Any) -> Work:
    """Two products over the pairs a causal mask leaves, the masked pairs apart, and one product done twice."""
    heads, s, d = q.shape
    hidden = heads * d * (s * (s - 1) // 2)
    scores, values = (
        matmul(s, d, s, q, q, batch=heads, masked=hidden),
        matmul(s, s, d, q, q, batch=heads, masked=hidden),
    )
    return scores + values + matmul(s, d, s, q, q, batch=heads, recomputed=True)


@rule("toy.add", family="pointwise")
def add(a: TensorSpec, **_: Any) -> Work:
    """One addition for each element."""
    return Work.of(a.precision, add=a.numel)


@rule("toy.tokenize", family="text")
def tokenize(characters: int, **_: Any) -> Work:
    """One step for each character."""
    return Work.of(dtype("uint8").precision, text=characters)


@rule("toy.broken")
def broken(**_: Any) -> Work:
    raise KeyError("a size nobody sent")


free("toy.view", reason="a view moves nothing")


def spec(*shape: int, dtype: str = "float32") -> TensorSpec:
    return TensorSpec(shape, dtype)


def mm_op(m: int, k: int, n: int, dtype: str = "float32") -> Op:
    return Op(
        "toy.mm",
        (("a", spec(m, k, dtype=dtype)), ("b", spec(k, n, dtype=dtype))),
        (spec(m, n, dtype=dtype),),
    )


def add_op(*shape: int, dtype: str = "float32") -> Op:
    return Op("toy.add", (("a", spec(*shape, dtype=dtype)),), (spec(*shape, dtype=dtype),))


def make_run(rows: Iterable[Row] = (), **fields: Any) -> Run:
    defaults: dict[str, Any] = {
        "id": "20260102-030405-abc123",
        "name": "toy",
        "started": "2026-01-02T03:04:05.678+00:00",
        "seconds": 1.5,
        "machine": Machine({"os": "Debian GNU/Linux 12", "cpu": "A Processor", "cores": "8", "torch": "2.13.0"}),
        "command": "train.py --epochs 3",
    }
    return Run(ledger=Ledger(rows), **{**defaults, **fields})


def transformer_run(layers: int = 12, width: int = 768, steps: int = 3, batch: int = 512, **fields: Any) -> Run:
    """A training run of a small transformer: tokenizer, forward, loss, backward, optimizer, and an evaluation."""
    rows, kinds = [], dict[str, Layer]()
    for i in range(layers):
        block = f"transformer.h.{i}"
        kinds |= {block: Layer("Block"), f"{block}.attn": Layer("Attention"), f"{block}.mlp": Layer("MLP")}
        for name, n, kind in (("attn.qkv", 3 * width, "bfloat16"), ("attn.out", width, "bfloat16"),
                               ("mlp.up", 4 * width, "bfloat16"), ("mlp.down", width, "float32")):  # fmt: skip
            scope = f"{block}.{name}"
            kinds[scope] = Layer("Linear", kind, width * n)
            rows.append(Row("forward", scope, mm_op(batch, width, n, kind), steps))
            rows.append(Row("backward", scope, mm_op(batch, n, width, kind), steps))
            rows.append(Row("backward", scope, mm_op(n, batch, width, kind), steps))
            rows.append(Row("evaluate/inference", scope, mm_op(batch, width, n, kind), 1))
        rows.append(Row("forward", f"{block}.ln", add_op(batch, width), 2 * steps))
        rows.append(Row("backward/recompute", f"{block}.ln", add_op(batch, width), steps))
        kinds[f"{block}.ln"] = Layer("LayerNorm", "float32", 2 * width)
    rows += [
        Row("preprocess", "", Op("toy.tokenize", (("characters", 12_345),)), steps),
        Row("forward", "lm_head", mm_op(batch, width, 5000), steps),
        Row("forward", "lm_head", Op("toy.view", (("a", spec(batch, 5000)),), (spec(batch * 5000),)), steps),
        Row("loss", "", add_op(batch, 5000), 2 * steps),
        Row("optimizer", "", add_op(layers * 12 * width * width), 7 * steps),
    ]
    kinds["lm_head"] = Layer("Linear", "float32", width * 5000)
    seconds = {"preprocess": 0.002, "forward": 1.1, "loss": 0.03, "backward": 2.3, "backward/recompute": 0.2}
    seconds |= {"optimizer": 0.4, "evaluate/inference": 0.35}
    defaults: dict[str, Any] = {
        "name": "tiny-transformer",
        "seconds": 4.412,
        "phase_seconds": seconds,
        "layers": kinds,
        "notes": ("2 of 3 steps were replayed",),
    }
    return make_run(rows, **{**defaults, **fields})


def metered(**fields: Any) -> Metered:
    """Twelve seconds on one GPU and one processor, five of them idle; a second processor whose counter was lost."""
    gpu = Device("gpu:GPU-1", "gpu", "A GPU", 700.0, 0.1)
    cpu, other = (Device(f"cpu:{i}", "cpu", f"package {i}", 400.0, 0.001) for i in range(2))
    phases = {
        "forward": PhaseEnergy({"gpu:GPU-1": 900.0, "cpu:0": 100.0}, "apportioned", 1.1, 1.0),
        "evaluate/inference": PhaseEnergy({"gpu:GPU-1": 600.0, "cpu:0": 60.0}, "measured", 0.35),
    }
    defaults: dict[str, Any] = {
        "seconds": 12.0,
        "energy": (
            Energy(
                gpu, 3000.0, "measured", "NVML", 12.0, 250.0, 610.0, 75.0, 5.0, 375.0, "118 W in its idle intervals"
            ),
            Energy(cpu, 600.0, "measured", "RAPL", 12.0, 50.0, 64.0),
            Energy(other, None, "measured", "RAPL", note="vanished"),
        ),
        "phases": phases,
        "remainder_j": {"gpu:GPU-1": 1500.0, "cpu:0": 440.0},
        "usage": {"cpu_seconds": 9.5, "idle_seconds": 5.0, "memory_bytes_peak": 2e9, "host.steal_seconds": 0.5},
        "series": {"gpu:GPU-1": tuple((float(i), 100.0 + 40 * i) for i in range(1, 13))},
        "overhead_s": 0.004,
        "notes": ("GPU energy is shared out by host time",),
    }
    return Metered(**{**defaults, **fields})
