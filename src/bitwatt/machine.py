"""Describes where a run happens: host, devices, versions. Never raises; what it cannot tell is left out."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

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
    "jax": "jax",
    "tensorflow": "tensorflow",
    "onnxruntime": "onnxruntime",
}


def describe() -> Machine:
    """The host and its devices, and the version of every known library that the program has imported."""
    facts = {name: _attempt(tell) for name, tell in _FACTS.items()}
    return Machine({name: text for name, text in facts.items() if text} | _versions())


def _versions() -> dict[str, str]:
    """Python, bitwatt, and each known library already imported; of torch also the CUDA and cuDNN it was built for."""
    found: dict[str, str | None] = {"python": platform.python_version(), "bitwatt": _version("bitwatt")}
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
    "memory": _memory,
    "gpu": _gpus,
    "driver": _driver,
}
