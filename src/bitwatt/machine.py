"""Describes where a run happens: host, devices, versions. Never raises; what it cannot tell is left out."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bitwatt import __version__, state
from bitwatt.records import Machine
from bitwatt.units import format_count

#: Import name -> distribution: libraries whose version can change what a program computes.
LIBRARIES = {
    "torch": "torch",
    "torchvision": "torchvision",
    "torchaudio": "torchaudio",
    "torchao": "torchao",
    "triton": "triton",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "accelerate": "accelerate",
    "diffusers": "diffusers",
    "peft": "peft",
    "timm": "timm",
    "lightning": "lightning",
    "pytorch_lightning": "pytorch-lightning",
    "bitsandbytes": "bitsandbytes",
    "flash_attn": "flash-attn",
    "xformers": "xformers",
    "deepspeed": "deepspeed",
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "xgboost": "xgboost",
    "lightgbm": "lightgbm",
    "catboost": "catboost",
    "jax": "jax",
    "tensorflow": "tensorflow",
    "onnxruntime": "onnxruntime",
}


def describe(before: Mapping[str, str] | None = None) -> Machine:
    """The host and its devices, and the version of every known library that the program has imported. `before` is what
    `float32` said when the run began."""
    facts = {name: _attempt(tell) for name, tell in _FACTS.items()}
    return Machine({name: text for name, text in facts.items() if text} | _versions() | _switched(before or {}))


def float32() -> dict[str, str]:
    """In which format torch computes products of float32, as its switches stand now; nothing where it is not imported.
    Asking starts no CUDA."""
    torch: Any = sys.modules.get("torch")
    backends = getattr(torch, "backends", None)
    if backends is None or "torch.backends.cudnn" not in sys.modules:  # it is being imported
        return {}
    found = {
        "float32 on cuda": _attempt(lambda: _on_cuda(backends)),
        "float32 on cpu": _attempt(lambda: _on_cpu(torch, backends)),
    }
    return {name: text for name, text in found.items() if text}


def tf32_families(facts: Mapping[str, str]) -> frozenset[str]:
    """Families of ops whose float32 products ran on TF32 tensor cores from beginning to end, by a machine's facts."""
    stages = [set(stage.split(", ")) for stage in facts.get("float32 on cuda", "").split(_THEN)]
    names = set.intersection(*stages)
    return frozenset(family for name, families in _TF32.items() if name in names for family in families)


#: What torch says of a switch -> families of ops that it holds for.
_TF32 = {"matmul tf32": ("matmul", "attention"), "conv tf32": ("conv",), "rnn tf32": ("rnn",)}
_THEN = "; then "
#: The first GPUs with TF32 have this compute capability.
_AMPERE = 8


def _on_cuda(backends: Any) -> str:
    """By the newer names of the switches, which refuse to be mixed with the older ones; else by the older."""
    cudnn = backends.cudnn
    if hasattr(backends.cuda.matmul, "fp32_precision"):
        said = {"matmul": backends.cuda.matmul, "conv": cudnn.conv, "rnn": cudnn.rnn}
        allowed = {name: one.fp32_precision == "tf32" for name, one in said.items()}
    else:
        allowed = {"matmul": backends.cuda.matmul.allow_tf32, "conv": cudnn.allow_tf32, "rnn": cudnn.allow_tf32}
    return ", ".join(f"{name} {'tf32' if one else 'fp32'}" for name, one in allowed.items())


def _on_cpu(torch: Any, backends: Any) -> str | None:
    """None where all are computed as they are written, which they are unless the program says otherwise."""
    if hasattr(backends.mkldnn, "matmul"):
        names = {"matmul": backends.mkldnn.matmul, "conv": backends.mkldnn.conv, "rnn": backends.mkldnn.rnn}
        said = {name: one.fp32_precision for name, one in names.items()}
    else:
        said = {"matmul": "bf16" if torch.get_float32_matmul_precision() == "medium" else "none"}
    formats = {name: "fp32" if format in ("none", "ieee") else format for name, format in said.items()}
    reduced = any(format != "fp32" for format in formats.values())
    return ", ".join(f"{name} {format}" for name, format in formats.items()) if reduced else None


def _switched(before: Mapping[str, str]) -> dict[str, str]:
    """The switches at the end, and at the beginning where they differed. GPUs without TF32 ignore them."""
    now, found = float32(), dict[str, str]()
    for name in {**before, **now}:
        last = now.get(name, _PLAIN)
        first = before.get(name, _PLAIN if before else last)  # torch may have been imported since
        found[name] = last if first == last else f"{first}{_THEN}{last}"
    if not _attempt(_has_tf32):
        found.pop("float32 on cuda", None)
    return found


_PLAIN = "all fp32"


def _has_tf32() -> str | None:
    torch: Any = sys.modules.get("torch")
    if torch is None or torch.version.hip or not torch.cuda.is_initialized():
        return None
    newest = all(torch.cuda.get_device_capability(i)[0] >= _AMPERE for i in range(torch.cuda.device_count()))
    return "yes" if newest else None


def _versions() -> dict[str, str]:
    """Python, bitwatt, and each known library already imported; of torch also the CUDA and cuDNN it was built for."""
    found: dict[str, str | None] = {"python": platform.python_version(), "bitwatt": __version__}
    for module, distribution in LIBRARIES.items():
        if module in sys.modules:
            found[distribution] = _version(distribution)
    torch = sys.modules.get("torch")
    if torch is not None:
        found["cuda"] = _attempt(lambda: torch.version.cuda)
        found["rocm"] = _attempt(lambda: torch.version.hip)
        found["cudnn"] = _attempt(lambda: _cudnn(torch))
    return {name: text for name, text in found.items() if text}


@functools.cache
def _version(distribution: str) -> str | None:
    return _attempt(lambda: version(distribution))


def _attempt(tell: Callable[[], str | None]) -> str | None:
    with contextlib.suppress(Exception):
        return tell()
    return None


@functools.cache
def _os() -> str:
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return f"{platform.system()} {platform.release()}"


@functools.cache
def _kernel() -> str:
    return f"{platform.system()} {platform.release()} {platform.machine()}"


@functools.cache
def _cpu() -> str | None:
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string")
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Processor", "cpu model"):
                return value.strip()
    return platform.processor() or platform.machine()


def _cores() -> str | None:
    there = os.cpu_count()
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    return str(there) if usable == there else f"{usable} usable of {there}"


@functools.cache
def _sockets() -> str | None:
    """Processors and their cores (threads of one are siblings), as the kernel sees them: a virtual machine has its
    own."""
    found = {
        tuple((topology / name).read_text().strip() for name in ("physical_package_id", "thread_siblings_list"))
        for topology in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology")
    }
    packages = len({package for package, _ in found})
    return f"{packages} x {len(found) // packages} cores" if packages else None


def _memory() -> str:
    return format_count(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "B")


def _gpus() -> str | None:
    """Asked of torch only where it has already initialised CUDA: doing that here would break forks made later."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    else:
        names = [
            line.partition(":")[2].strip()
            for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
            for line in file.read_text(errors="replace").splitlines()
            if line.startswith("Model:")
        ]
    counts = {name: names.count(name) for name in names}
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in counts.items())


def _driver() -> str | None:
    with contextlib.suppress(OSError):
        words = Path("/proc/driver/nvidia/version").read_text(errors="replace").split()
        return next(word for word in words if word[0].isdigit() and "." in word)
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        answer = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        return answer.splitlines()[0].strip() if answer else None
    return None


def _cudnn(torch: Any) -> str | None:
    """Only where CUDA is in use: asking a build without it would load the library."""
    number = torch.backends.cudnn.version() if torch.cuda.is_initialized() else None
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}" if number else None


def _output(*command: str) -> str | None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


_FACTS: dict[str, Callable[[], str | None]] = {
    "os": _os,
    "kernel": _kernel,
    "cpu": _cpu,
    "cores": _cores,
    "sockets": _sockets,
    "memory": _memory,
    "gpu": _gpus,
    "driver": _driver,
    "machine id": state.machine,
}
