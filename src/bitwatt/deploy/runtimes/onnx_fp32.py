"""onnxruntime, in float32: the reference for what quantising loses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bitwatt.deploy.records import Artefact, Case, Loaded

FILE = "model.onnx"


class Session:
    """A graph in this process. It imports onnxruntime and numpy, as serving would."""

    def __init__(self, artefact: Artefact, threads: int) -> None:
        import onnxruntime

        from bitwatt.deploy.making import feeding

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 3
        path = str(Path(artefact.folder) / FILE)
        self.session = onnxruntime.InferenceSession(
            path, options, providers=providers(artefact.options.get("device", "cpu"))
        )
        self.feed, self.shaped = feeding.fed(artefact.options["feeds"]), feeding.shaped
        self.tail = artefact.options["tail"]
        self.outputs = [self.session.get_outputs()[0].name]

    def predict(self, rows: Any) -> Any:
        return self.shaped(self.session.run(self.outputs, self.feed(rows))[0], self.tail)


class OnnxFp32:
    name, baseline, order = "onnx-fp32", "onnx", 10

    def applies(self, case: Case) -> bool:
        return True

    def build(self, case: Case, folder: Path) -> Artefact:
        made = converted(case)
        return keep(case, made.model, folder, self.name, made.feeds, made.tail, made.notes)

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        return Session(artefact, threads)


RUNTIME = OnnxFp32


def providers(device: str) -> list[str]:
    """Where it runs; on the CPU where this build of onnxruntime knows no other device."""
    import onnxruntime

    asked = ["CUDAExecutionProvider"] if device.startswith("cuda") else []
    return [one for one in (*asked, "CPUExecutionProvider") if one in onnxruntime.get_available_providers()]


def converted(case: Case) -> Any:
    if case.framework == "torch":
        from bitwatt.deploy.making import exporting

        return exporting.export(case)
    from bitwatt.deploy.making import converting

    return converting.convert(case)


def keep(
    case: Case, model: Any, folder: Path, name: str, feeds: Any, tail: Any, notes: tuple[str, ...] = (), asked: str = ""
) -> Artefact:
    """A graph as a file, with what the runtime makes of it. Without one integer node it is not ranked as INT8."""
    import onnx

    from bitwatt.deploy.making import boosters, integers, saving

    onnx.save(model, folder / FILE)
    device = case.options.get("device", "cpu")
    precision = integers.inspect(folder / FILE, asked, device)
    noted = (*notes, precision.note) if precision.note else notes
    converters = ("skl2onnx", *boosters.converters(case.model)) if case.framework == "sklearn" else ("torch",)
    if device != "cpu" and len(providers(device)) == 1:
        device, noted = "cpu", (*noted, "runs on the CPU: this onnxruntime has no kernels for CUDA")
    return Artefact(
        name, name, str(folder), (FILE,), case.method, saving.size(folder, (FILE,)), precision,
        ("numpy", "onnxruntime"),
        saving.versions("onnxruntime", "numpy", "onnx", *converters),
        "onnx-fp32" if asked == "int8" and not precision.integer_nodes else "",
        {"feeds": feeds, "tail": tail, "device": device}, noted,
    )  # fmt: skip
