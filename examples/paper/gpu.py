"""Everything that needs a GPU, in one command: counts on both devices, joules and seconds by network and precision.

    PYTHONPATH=src python -m examples.paper.gpu [--seconds 4] [--out examples/paper/measured_h200.json]

Takes about five minutes on an H200. It needs torch, and nvidia-ml-py for the energy counter; nothing is downloaded.
Counts come from one step that bitwatt measures. Time and energy come from steps that run without it, between two
readings of the GPU's own counter, with the device synchronised before each.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from examples.paper.models import MLP, ResNet, Setting, Transformer, program
from examples.paper.narrow import LAYERS, narrowed

import bitwatt
from bitwatt.fingerprint import fingerprint
from bitwatt.impact.work import executed
from bitwatt.pricing import entries_of
from bitwatt.records import Run

TARGET = Path(__file__).parent / "measured_h200.json"
#: What a step is priced by. `tf32` is `bops:executed` with 19 bits for products on TF32 tensor cores.
MODELS = ("flops", "bops", "bops:executed", "bops:aligned", "bops:product", "bops:hawks2021", "bops:paper", "bytes")
TRAINING = ("float32", "tf32", "float16", "bfloat16")
INFERENCE = (*TRAINING, *LAYERS)
#: Large enough that the GPU waits little for the host: but for the transformer in 16 bits and fewer.
LARGE: dict[str, Setting] = {
    "mlp": MLP(8192, (4096, 4096)), "resnet": ResNet(256), "transformer": Transformer(64, 128, 32000, 1024),
}  # fmt: skip
TINY: dict[str, Setting] = {
    "mlp": MLP(32, (128, 128)), "resnet": ResNet(2, 8), "transformer": Transformer(1, 32, 256, 256, 128, 1),
}  # fmt: skip
#: On both devices, in the settings of the page.
COMPARED: dict[str, Setting] = {
    "mlp": MLP(), "resnet": ResNet(), "transformer": Transformer(2, 64, 50257, 256),
}  # fmt: skip
Counter = Callable[[], float | None]


def counter(device: str) -> Counter:
    """Joules since the driver was loaded, of the GPU that torch uses; None without one."""
    if device != "cuda":
        return lambda: None
    import pynvml

    pynvml.nvmlInit()
    uuid = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
    handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)

    def read() -> float:
        torch.cuda.synchronize()
        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1e3

    return read


@contextlib.contextmanager
def tf32(on: bool) -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = on
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, allow_tf32=on):
            yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def training_step(setting: Setting, precision: str, device: str) -> Callable[[], None]:
    autocast = getattr(torch, precision) if precision in ("float16", "bfloat16") else None
    return program(setting, device, autocast=autocast).step


def inference_step(setting: Setting, precision: str, device: str) -> Callable[[], None]:
    """All of the model in the precision; INT8, FP8 and INT4 replace layers of a bfloat16 model."""
    plain = {"float32": torch.float32, "tf32": torch.float32, "float16": torch.float16}
    dtype = plain.get(precision, torch.bfloat16)
    model = setting.model().to(device, dtype).eval()
    x, _ = setting.batch_on(device, dtype)
    if precision in LAYERS and not narrowed(model.requires_grad_(False), precision):
        raise RuntimeError("no layer fits the kernel")

    def step() -> None:
        with torch.inference_mode():
            model(x)

    return step


def counted(step: Callable[[], None]) -> Run:
    with bitwatt.measure("paper", keep=False, meter=False) as session:
        step()
    assert session.run is not None
    return session.run


def amounts(run: Run, on_tf32: bool) -> dict[str, int]:
    found = {model: bitwatt.totals(run, model).total for model in MODELS}
    families = ("matmul", "conv", "attention", "rnn") if on_tf32 else ()
    products = sum(
        row.flops for row in executed(entries_of(run.ledger, run.layers), tf32=families) if row.format == "tf32"
    )
    return found | {"tf32": found["bops:executed"] - (32 - 19) * products}


def point(step: Callable[[], None], seconds: float, read: Counter, device: str) -> dict[str, Any]:
    """Steps for so long, after a warm-up; joules and seconds of all of them."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(5):
        step()
    wait()
    began = time.monotonic()
    step()
    wait()
    each = max(1, min(200, int(0.2 / max(time.monotonic() - began, 1e-6))))  # a look at the clock each 0.2 s
    steps, before, began = 0, read(), time.monotonic()
    while time.monotonic() - began < seconds:
        for _ in range(each):
            step()
        steps += each
        wait()
    spent, after = time.monotonic() - began, read()
    return {"steps": steps, "seconds": spent, "joules": None if before is None or after is None else after - before}


def points(settings: dict[str, Setting], seconds: float, read: Counter, device: str) -> Iterator[dict[str, Any]]:
    modes = (("training", TRAINING, training_step), ("inference", INFERENCE, inference_step))
    for mode, precisions, make in modes:
        for name, setting in settings.items():
            for precision in precisions:
                if precision in LAYERS and name == "resnet":
                    continue  # its work is convolutions, which these kernels are not for
                about = {"network": name, "setting": str(setting), "mode": mode, "precision": precision}
                torch.manual_seed(0)
                try:
                    with tf32(precision == "tf32"):
                        step = make(setting, precision, device)
                        step()
                        found = amounts(counted(step), precision == "tf32")
                        yield about | {"counts": found, **point(step, seconds, read, device)}
                except (RuntimeError, AttributeError, ValueError) as error:  # "where it runs"
                    yield about | {"skipped": " ".join(str(error).split())[:160]}
                if device == "cuda":
                    torch.cuda.empty_cache()


def compared(settings: dict[str, Setting], devices: tuple[str, ...]) -> dict[str, Any]:
    """Counts by phase and the fingerprint of one training step on each device."""
    found: dict[str, Any] = {}
    for name, setting in settings.items():
        found[name] = {}
        for device in devices:
            torch.manual_seed(0)
            step = program(setting, device).step
            step()
            seen = fingerprint(counted(step))
            found[name][device] = {"flops": seen.flops, "bops": seen.bops, "digest": seen.digest}
    return found


def idle(read: Counter, seconds: float) -> float | None:
    """Watts of the device while this process holds it and does nothing."""
    before, began = read(), time.monotonic()
    time.sleep(seconds)
    after = read()
    return None if before is None or after is None else (after - before) / (time.monotonic() - began)


def measure(device: str, seconds: float, *, tiny: bool = False) -> dict[str, Any]:
    read = counter(device)
    devices = ("cpu", "cuda") if device == "cuda" else ("cpu",)
    torch.zeros(1, device=device)
    result: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
        "torch": torch.__version__,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seconds_each": seconds,
        "idle_w": idle(read, seconds),
        "points": [],
    }
    for one in points(TINY if tiny else LARGE, seconds, read, device):
        result["points"].append(one)
        if "skipped" in one:
            said = f"skipped: {one['skipped'][:70]}"
        else:
            said = f"{one['steps'] / one['seconds']:.1f} steps/s, {one['joules']} J"
        print(f"{one['network']:<12}{one['mode']:<10}{one['precision']:<13}{said}", flush=True)
    result["devices"] = compared(TINY if tiny else COMPARED, devices)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--out", type=Path, default=TARGET)
    parser.add_argument("--tiny", action="store_true", help="small networks on this processor, without energy: a trial")
    chosen = parser.parse_args()
    found = measure("cpu" if chosen.tiny else "cuda", chosen.seconds, tiny=chosen.tiny)
    chosen.out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"wrote {chosen.out}")


if __name__ == "__main__":
    main()
