"""The torch module itself, as it was trained: what everything else is held against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bitwatt.deploy.records import Artefact, Case, Loaded, Precision, UnfitError

FILE, EXPORTED = "model.pt", "model.pt2"


class Module:
    """A module in this process, on its device. Results come back to the host, so a call ends when they are there."""

    def __init__(self, model: Any, device: str, call: Any = None) -> None:
        import torch

        from bitwatt.deploy.given.modules import first
        from bitwatt.deploy.given.rows import on_host

        self.torch, self.first, self.on_host = torch, first, on_host
        self.device = torch.device(device)
        self.model = model
        self.call = model if call is None else call
        weight = next((one.dtype for one in model.parameters() if one.is_floating_point()), torch.float32)
        self.dtype = weight

    def predict(self, rows: Any) -> Any:
        given = rows if isinstance(rows, tuple) else (rows,)
        with self.torch.inference_mode():
            return self.on_host(self.first(self.call(*[self.placed(part) for part in given])))

    def placed(self, part: Any) -> Any:
        part = part if self.torch.is_tensor(part) else self.torch.from_numpy(part)
        return part.to(self.device, self.dtype) if part.is_floating_point() else part.to(self.device)


class TorchEager:
    name, baseline, order = "torch-eager", "native", 0

    def applies(self, case: Case) -> bool:
        return case.framework == "torch"

    def build(self, case: Case, folder: Path) -> Artefact:
        return keep(case, case.model, folder, self.name, formats(case.model))

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Module(loaded(artefact, threads), artefact.options["device"])


RUNTIME = TorchEager


def formats(model: Any) -> Precision:
    """By what the weights are."""
    names = {"torch.float32": "fp32", "torch.float64": "fp64", "torch.float16": "fp16", "torch.bfloat16": "bf16"}
    found = {names.get(str(one.dtype), str(one.dtype)) for one in model.parameters() if one.is_floating_point()} or {
        "fp32"
    }
    return Precision(found.pop() if len(found) == 1 else "mixed", evidence="formats of the parameters")


def keep(
    case: Case, model: Any, folder: Path, name: str, precision: Precision, *packages: str, **told: Any
) -> Artefact:
    """A module as a file."""
    import torch

    from bitwatt.deploy.given import modules, trust
    from bitwatt.deploy.making import saving

    program = modules.PROGRAMS.get(model)
    file = FILE if program is None else EXPORTED
    path = folder / file
    scripted = isinstance(model, torch.jit.ScriptModule)
    if program is not None:
        torch.export.save(program, path)
    elif modules.is_exported(model):
        raise UnfitError("is an exported program, whose numbers have their formats: give the module itself")
    elif scripted:
        torch.jit.save(model, str(path))
    else:
        torch.save(model, path)
        if any(one.startswith(("__main__.", "__mp_main__.")) for one in trust.contents(path, trusted=True)):
            import cloudpickle  # the module's class is in the user's script, which no other process can import

            torch.save(model, path, pickle_module=cloudpickle)
    needed = saving.modules(path)
    return Artefact(
        name, name, str(folder), (file,), case.method, saving.size(folder, (file,)), precision,
        ("torch", *packages, *needed), saving.versions("torch", *packages, *needed),
        options={"device": case.options.get("device", "cpu"), "homes": saving.homes(needed), "scripted": scripted},
        **told,
    )  # fmt: skip


def loaded(artefact: Artefact, threads: int) -> Any:
    import torch

    from bitwatt.deploy.given.modules import of_program, ready
    from bitwatt.deploy.making import saving

    torch.set_num_threads(threads)
    saving.reach(artefact.options)
    path = Path(artefact.folder) / artefact.files[0]
    device = artefact.options["device"]
    if artefact.files[0] == EXPORTED:
        return of_program(path).to(device)
    if artefact.options["scripted"]:
        return torch.jit.load(str(path), map_location=device)
    return ready(torch.load(path, weights_only=False, map_location=device)).to(device)
