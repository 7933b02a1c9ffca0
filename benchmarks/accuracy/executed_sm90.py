"""Measure on a GPU what kernels execute, by Nsight Compute's counters, and print the truth beside flops:executed@sm90.

    python benchmarks/accuracy/executed_sm90.py --out DIR        # needs ncu and a CUDA build of torch; about 6 minutes

The script starts itself under `ncu`. Before each measured phase it launches a marker kernel (torch.cuda._sleep):
NVTX push/pop ranges are per thread and the autograd engine launches backward kernels from its own threads.

Executed operations are counted as in shared/truth/h200_counters.json: tensor-core operations plus 2·FMA + ADD + MUL of
the CUDA cores, an instruction on packed halves counting as one. MUFU (ex2, rcp, rsq, sqrt) is no FMA pipe
instruction and is not counted.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

SIMT = {
    f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum": weight
    for name, weight in {
        "fadd": 1, "fmul": 1, "ffma": 2, "hadd": 1, "hmul": 1, "hfma": 2
    }.items()
}  # fmt: skip
TENSOR = [f"sm__ops_path_tensor_src_{path}.sum" for path in ("bf16_dst_fp32", "fp16", "tf32_dst_fp32")]
MARKER = "spin_kernel"
UNARY = """exp log1p tanh sigmoid erf sin sqrt rsqrt reciprocal square expm1 log log2 cos tan pow3 pow2.5 abs
F.gelu F.silu F.relu F.elu F.softplus F.mish F.hardswish F.leaky_relu F.logsigmoid F.selu F.hardsigmoid F.relu6"""


def programs() -> list[Any]:
    """What is measured, the most telling first: the run may be cut short by its time limit."""
    from programs import Program, network, op, optimizer

    wide = "x = randn(512, 1000)"
    found = []
    for name in UNARY.split():
        source = "x = positive(512, 1000)" if name in {"log", "log2", "log1p", "sqrt", "rsqrt", "pow2.5"} else wide
        call = f"{name}(x)" if "." in name and not name.startswith("pow") else f"torch.{name}(x)"
        if name.startswith("pow"):
            call = f"torch.pow(x, {name[3:]})"
        found.append(op(name, source, call))
    found += [
        op("gelu tanh", wide, "F.gelu(x, approximate='tanh')"),
        op("add", wide + "; w = randn(512, 1000)", "x + w"),
        op("mul", wide + "; w = randn(512, 1000)", "x * w"),
        op("div", wide + "; w = positive(512, 1000)", "x / w"),
        op("add alpha", wide + "; w = randn(512, 1000)", "torch.add(x, w, alpha=0.3)"),
        op("mul scalar", wide, "x * 0.3"),
        op("div scalar", wide, "x / 0.3"),
        op("addcmul", wide + "; w = randn(512, 1000)", "torch.addcmul(x, w, w, value=0.5)"),
        op("dropout", wide, "F.dropout(x, 0.1)"),
        op("sum", wide, "x.sum()"),
        op("sum 1", wide, "x.sum(1)"),
        op("sum 0", wide, "x.sum(0)"),
        op("mean", wide, "x.mean()"),
        op("var", wide, "x.var(1)"),
        op("norm", wide, "x.norm()"),
        op("cumsum", wide, "x.cumsum(1)"),
        op("logsumexp", wide, "x.logsumexp(1)"),
        op("softmax middle", "x = randn(16, 100, 64)", "x.softmax(1)"),
    ]
    for rows, width in ((512, 1000), (1024, 33278), (2048, 128), (512, 77), (1024, 1025)):
        found += [
            op(f"{name} {rows}x{width}", f"x = randn({rows}, {width})", call)
            for name, call in (("softmax", "x.softmax(-1)"), ("log_softmax", "x.log_softmax(-1)"))
        ]
    for rows, width in ((2048, 256), (512, 1000), (1024, 768), (300, 2048), (1024, 77)):
        shape = f"x = randn({rows}, {width}); w = randn({width}); b = randn({width})"
        found += [
            op(f"layer_norm {rows}x{width}", shape, f"F.layer_norm(x, ({width},), w, b)"),
            op(f"rms_norm {rows}x{width}", shape, f"F.rms_norm(x, ({width},), w)"),
        ]
    for shape in ("32, 64, 32, 32", "8, 256, 8, 8", "64, 16, 10, 10"):
        channels = shape.split(", ")[1]
        norm = f"x = randn({shape}); w = randn({channels}); b = randn({channels}); r = b.detach() ** 2 + 1; a = r * 0"
        found += [
            op(f"batch_norm {shape}", norm, "F.batch_norm(x, a, r, w, b, True)"),
            op(f"batch_norm eval {shape}", norm, "F.batch_norm(x, a, r, w, b, False)"),
            op(f"group_norm {shape}", norm, "F.group_norm(x, 8, w, b)"),
        ]
    loss = "x = randn(512, 1000); t = const(512, 1000)"
    found += [
        op("cross_entropy", "x = randn(512, 1000); t = ints(1000, 512)", "F.cross_entropy(x, t)"),
        op("mse_loss", loss, "F.mse_loss(x, t)"),
        op("l1_loss", loss, "F.l1_loss(x, t)"),
        op("smooth_l1", loss, "F.smooth_l1_loss(x, t)"),
        op("bce", "x = positive(512, 1000); t = positive(512, 1000).detach()", "F.binary_cross_entropy(x, t)"),
        op("bce_with_logits", loss + ".sigmoid()", "F.binary_cross_entropy_with_logits(x, t)"),
        op("kl_div", "x = randn(512, 1000); t = const(512, 1000).softmax(1)", "F.kl_div(x, t)"),
        op("embedding", "w = randn(5000, 256); i = ints(5000, 16, 128)", "F.embedding(i, w)"),
        op("max_pool2d", "x = randn(16, 32, 32, 32)", "F.max_pool2d(x, 2)"),
        op("avg_pool2d", "x = randn(16, 32, 32, 32)", "F.avg_pool2d(x, 2)"),
        op("avg_pool2d 3,1,1", "x = randn(16, 32, 32, 32)", "F.avg_pool2d(x, 3, 1, 1)"),
        op("adaptive_avg_pool2d", "x = randn(16, 32, 32, 32)", "F.adaptive_avg_pool2d(x, 1)"),
        op("interpolate", "x = randn(16, 32, 16, 16)", "F.interpolate(x, scale_factor=2, mode='bilinear')"),
    ]
    for kind in (
        "SGD(ps, 0.1)", "SGD(ps, 0.1, momentum=0.9)", "Adam(ps)", "AdamW(ps)", "AdamW(ps, foreach=False)",
        "AdamW(ps, fused=True)", "RMSprop(ps)", "Adagrad(ps)", "Adadelta(ps)", "Adamax(ps)", "NAdam(ps)", "RAdam(ps)",
    ):  # fmt: skip
        found.append(optimizer(f"optimizer {kind}", kind, "(1000, 1000)", "(333, 77)", "(1000,)"))
    sizes = ((512, 512, 512), (1024, 1024, 1024), (1000, 1000, 1000), (64, 784, 512), (64, 512, 10), (1024, 256, 768))
    sizes += ((1024, 256, 1024), (1024, 1024, 256), (333, 77, 129), (2048, 2048, 2048), (16, 4096, 4096))
    for m, k, n in sizes:
        made = f"x = randn({m}, {k}); w = randn({n}, {k}); b = randn({n})"
        half = f"x = randn({m}, {k}, dtype=torch.bfloat16); w = randn({n}, {k}, dtype=torch.bfloat16)"
        half += f"; b = randn({n}, dtype=torch.bfloat16)"
        found += [
            op(f"linear fp32 {m}x{k}x{n}", made, "F.linear(x, w, b)"),
            op(f"linear tf32 {m}x{k}x{n}", "tf32(); " + made, "F.linear(x, w, b)"),
            op(f"linear bf16 {m}x{k}x{n}", half, "F.linear(x, w, b)"),
        ]
    found += [op("bmm fp32", "x = randn(32, 128, 64); w = randn(32, 64, 128)", "x @ w")]
    found += [op("linear fp16", half.replace("bfloat16", "float16"), "F.linear(x, w, b)")]
    for heads, length, dim, extra in (
        (4, 128, 64, ""), (8, 256, 64, ""), (4, 100, 32, ""), (4, 1024, 64, ", is_causal=True"),
        (4, 256, 64, ", is_causal=True"), (4, 128, 64, ", attn_mask=m"), (4, 128, 64, ", dropout_p=0.1"),
    ):  # fmt: skip
        for dtype in ("float32", "bfloat16"):
            make = f"randn(4, {heads}, {length}, {dim}, dtype=torch.{dtype})"
            setup = f"q = {make}; k = {make}; v = {make}; m = torch.zeros({length}, {length}, dtype=torch.{dtype}, "
            setup += "device=q.device)"
            call = f"F.scaled_dot_product_attention(q, k, v{extra})"
            found.append(op(f"sdpa {dtype} 4x{heads}x{length}x{dim}{extra}", setup, call))
    for shape, weight, extra in (
        ("32, 64, 32, 32", "64, 64, 3, 3", "padding=1"), ("32, 64, 32, 32", "128, 64, 3, 3", "padding=1, stride=2"),
        ("32, 3, 32, 32", "64, 3, 3, 3", "padding=1"), ("32, 64, 32, 32", "128, 64, 1, 1", "stride=2"),
        ("32, 512, 4, 4", "512, 512, 3, 3", "padding=1"), ("1, 64, 32, 32", "64, 64, 3, 3", "padding=1"),
        ("8, 32, 30, 30", "48, 32, 5, 5", ""), ("16, 64, 28, 28", "64, 1, 3, 3", "padding=1, groups=64"),
        ("8, 3, 64, 64", "96, 3, 16, 16", "stride=16"),
    ):  # fmt: skip
        for mode in ("fp32", "tf32", "bf16"):
            dtype = ", dtype=torch.bfloat16" if mode == "bf16" else ""
            setup = f"tf32({mode == 'tf32'}); x = randn({shape}{dtype}); w = randn({weight}{dtype})"
            found.append(op(f"conv2d {mode} {shape} by {weight} {extra}", setup, f"F.conv2d(x, w, {extra})"))
    found += [
        op(f"{kind} {layers}", f"m = on(nn.{kind}(128, 256, {layers})); x = randn(32, 16, 128)", "m(x)[0]")
        for kind, layers in (("LSTM", 1), ("LSTM", 2), ("GRU", 1))
    ]
    ce = "F.cross_entropy(y, t)"
    mlp = "m = on(nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)))"
    lm = "m = on(EncoderLM(33278, 256, 4, 4, 1024)); x = ints(33278, 8, 128); t = ints(33278, 8, 128)"
    images = "x = const({0}, 3, 32, 32); t = ints(10, {0})"
    found += [
        network("mlp fp32", mlp + "; x = const(64, 784); t = ints(10, 64)", ce, "Adam(m.parameters())"),
        network("lm-8 fp32", lm, "F.cross_entropy(y.flatten(0, 1), t.flatten())", "AdamW(m.parameters())"),
        network("lm-8 tf32", "tf32(); " + lm, "F.cross_entropy(y.flatten(0, 1), t.flatten())", "AdamW(m.parameters())"),
    ]
    for batch, mode in ((1, False), (32, True)):
        setup = f"tf32({mode}); m = on(ResNet18()); " + images.format(batch)
        found.append(network(f"resnet-{batch} tf32={mode}", setup, ce, "SGD(m.parameters(), 0.1, momentum=0.9)"))
    half = network("mlp bf16 autocast", mlp + "; x = const(64, 784); t = ints(10, 64)", ce, "Adam(m.parameters())")
    autocast = {phase: f"with torch.autocast('cuda', torch.bfloat16): {text}" for phase, text in half.phases.items()}
    found.append(Program(half.name, half.setup, half.phases | {k: autocast[k] for k in ("forward", "loss")}))
    setup = "m = on(ViT(32, 4, 192, 3, 2)); " + images.format(32)
    found.append(network("vit fp32", setup, ce, "AdamW(m.parameters(), fused=True)"))
    setup = "m = on(LSTMClassifier(64, 128)); x = const(16, 32, 64); t = ints(10, 16)"
    found.append(network("lstm fp32", setup, ce, "Adam(m.parameters())"))
    networks = [program for program in found if "optimizer" in program.phases and "forward" in program.phases]
    first = [program for program in networks if program.name.startswith(("resnet-32", "mlp fp32"))]
    rest = [program for program in networks if program not in first]
    return first + [program for program in found if program not in networks] + rest


def child(out: Path, seconds: float) -> None:
    """Under ncu: run every program once to warm up, then with the profiler on for its measured phases."""
    import torch
    from programs import execute

    runtime: Any = torch.cuda.cudart()
    torch.cuda._sleep(10)
    started = time.monotonic()
    with (out / "ranges.jsonl").open("w") as ranges:

        def note(**row: Any) -> None:
            ranges.write(json.dumps(row) + "\n")
            ranges.flush()

        for index, program in enumerate(programs()):
            if time.monotonic() - started > seconds:
                note(skipped=index, why=f"{seconds:.0f} s are over")
                break

            def profile(phase: str, run: Callable[[], None], index: int = index) -> None:
                torch.cuda.synchronize()
                note(program=index, phase=phase)  # before the marker: the n-th noted phase owns the n-th marker
                runtime.cudaProfilerStart()
                torch.cuda._sleep(10)
                try:
                    run()
                    torch.cuda.synchronize()
                finally:
                    runtime.cudaProfilerStop()

            try:
                execute(program, lambda _, run: run(), "cuda")
                torch.cuda.synchronize()
                execute(program, profile, "cuda")
            except Exception:
                note(failed=index, why=traceback.format_exc(limit=2)[-600:])


def known_metrics(ncu: str) -> list[str]:
    """The wanted metrics that this ncu and chip offer; all of the CUDA-core ones where it does not tell."""
    try:
        listing = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, timeout=120).stdout
    except (OSError, subprocess.SubprocessError):
        listing = ""
    offered = set(re.findall(r"\b(?:smsp?|sm)__\w+", listing))
    tensor = {metric for metric in TENSOR if metric.removesuffix(".sum") in offered}
    simt = [metric for metric in SIMT if not offered or metric.removesuffix(".sum") in offered]
    return (simt or list(SIMT)) + sorted(tensor or (set(TENSOR) if not offered else set()))


def profile(out: Path, seconds: float, limit: float) -> None:
    ncu = shutil.which("ncu") or next(map(str, Path("/usr/local").glob("cuda*/bin/ncu")), "ncu")
    metrics = known_metrics(ncu)
    print("metrics:", *metrics, sep="\n  ", flush=True)
    command = [ncu, "--force-overwrite", "-o", str(out / "report"), "--profile-from-start", "off"]
    command += ["--target-processes", "all", "--clock-control", "none", "--cache-control", "none"]
    command += ["--metrics", ",".join(metrics), sys.executable, __file__, "--child", "--out", str(out)]
    command += ["--seconds", str(seconds)]
    with (out / "ncu.log").open("w") as log:
        try:
            subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=limit)
        except subprocess.TimeoutExpired:
            print("ncu was stopped at its time limit; its report may be incomplete", flush=True)
    print((out / "ncu.log").read_text()[-1500:], flush=True)
    done = subprocess.run(
        [ncu, "--import", str(out / "report.ncu-rep"), "--csv", "--page", "raw", "--print-units", "base"],
        capture_output=True,
        text=True,
    )
    (out / "raw.csv").write_text(done.stdout)
    if done.returncode:
        print("ncu --import:", done.returncode, done.stderr[-500:], done.stdout[-500:], flush=True)


def parse(text: str) -> list[list[dict[str, Any]]]:
    """ncu's raw page -> for each marker, the kernels launched after it: name and metrics."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), 0)
    ranges: list[list[dict[str, Any]]] = []
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        if not (row.get("ID") or "").isdigit():
            continue  # the line of units
        if MARKER in row["Kernel Name"]:
            ranges.append([])
        elif ranges:
            ranges[-1].append({"kernel": row["Kernel Name"], **{k: number(v) for k, v in row.items() if "__" in k}})
    return ranges


def number(text: str | None) -> float:
    try:
        return float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0


def summarise(out: Path) -> list[dict[str, Any]]:
    measured = parse((out / "raw.csv").read_text())
    noted = [json.loads(line) for line in (out / "ranges.jsonl").read_text().splitlines()]
    for row in noted:
        if "why" in row:
            print(row, flush=True)
    noted = [row for row in noted if "phase" in row]
    if len(noted) != len(measured):
        print(f"{len(noted)} phases noted, {len(measured)} markers found: the tail is dropped", flush=True)
    listed, rows = programs(), []
    for row, kernels in zip(noted, measured, strict=False):
        sums: dict[str, float] = {}
        names: dict[str, float] = {}
        for kernel in kernels:
            simt = sum(kernel.get(metric, 0) * weight for metric, weight in SIMT.items())
            tensor = sum(kernel.get(metric, 0) for metric in TENSOR)
            for metric in (*SIMT, *TENSOR):
                if value := kernel.get(metric, 0):
                    key = metric.replace("smsp__sass_thread_inst_executed_op_", "").replace("_pred_on.sum", "")
                    key = key.replace("sm__ops_path_tensor_src_", "tensor ").removesuffix(".sum")
                    sums[key] = sums.get(key, 0) + value
            short = re.sub(r"\s+", " ", kernel["kernel"])[:90]
            names[short] = names.get(short, 0) + simt + tensor
            sums["simt"] = sums.get("simt", 0) + simt
            sums["tensor"] = sums.get("tensor", 0) + tensor
        facts = listed[row["program"]].facts() | {"phase": row["phase"]}
        rows.append(facts | {"executed": sums.get("simt", 0) + sums.get("tensor", 0), "by": sums, "kernels": names})
    return rows


def compare(rows: list[dict[str, Any]], device: str) -> None:
    """Adds to each row the ops behind it and what the model says, and prints truth beside model."""
    from programs import Program, find_bitwatt, ledger_of

    priced: dict[str, tuple[dict[str, int], Any]] = {}
    able = find_bitwatt()
    for row in rows:
        name = row["name"]
        if able and name not in priced:
            try:
                from bitwatt.pricing import totals

                ledger = ledger_of(Program(name, row["setup"], row["phases"]), device)
                priced[name] = ({}, ledger)
                priced[name] = (totals(ledger, "flops:executed@sm90").by("phase"), ledger)  # type: ignore[assignment]
            except Exception as error:
                print(f"{name}: not priced: {type(error).__name__}: {str(error)[:200]}", flush=True)
        model, ledger = priced.get(name, ({}, ()))
        row["model"] = model.get(row["phase"])
        row["ops"] = [[repr(line.op), line.calls] for line in ledger if line.phase == row["phase"]]
        row.pop("phases") if row["phase"] != "forward" else None
        off = f"{100 * (row['model'] / row['executed'] - 1):+8.1f} %" if row["model"] and row["executed"] else ""
        print(f"{name[:60]:60} {row['phase']:9} {row['executed']:16.0f} {row['model'] or 0:16d} {off}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "executed_sm90")))
    parser.add_argument("--seconds", type=float, default=380, help="start no further program after so long")
    parser.add_argument("--limit", type=float, default=460, help="stop ncu after so long")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--parse", action="store_true", help="read an earlier raw.csv in --out, run nothing under ncu")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.child:
        child(options.out, options.seconds)
        return
    if not options.parse:
        profile(options.out, options.seconds, options.limit)
    rows = summarise(options.out)
    (options.out / "executed_sm90.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    compare(rows, "cuda")
    (options.out / "executed_sm90.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
