"""What a model file would import, found without importing or running any of it.

Loading a pickle runs code that its writer chose. So a file is opened only when its user trusts it, and to decide that
they are told what is in it. The stream is walked with stand-ins in the place of everything it names: they can be
called, built and indexed like the real ones, and do nothing.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, ClassVar

from bitwatt.errors import BitwattError
from bitwatt.harmless import printable

#: Modules that no fitted model needs. What a file takes of them is named first.
SHELLS = {
    "os", "posix", "nt", "subprocess", "sys", "shutil", "socket", "importlib", "runpy", "pty", "ctypes", "code",
    "codeop", "webbrowser", "pip", "signal", "threading", "multiprocessing", "asyncio", "urllib", "http", "requests",
    "tempfile", "pathlib", "marshal", "types", "inspect", "pdb", "timeit", "cProfile", "profile", "builtins.eval",
    "builtins.exec", "builtins.compile", "builtins.open", "builtins.getattr", "builtins.setattr", "builtins.__import__",
    "builtins.globals", "builtins.vars", "builtins.apply", "__builtin__.eval", "__builtin__.exec",
    "operator.attrgetter", "operator.methodcaller", "_operator.attrgetter", "_operator.methodcaller", "torch.hub",
    "torch.load", "numpy.load",
    "joblib.load", "pickle", "_pickle", "dill", "cloudpickle",
}  # fmt: skip

#: How compressed files begin.
PACKED = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
    b"\x5d\x00": lzma.decompress,
}


class Inert:
    """Stands for whatever a pickle names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.state: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Inert:
        return Inert()

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None: ...

    def append(self, value: Any) -> None: ...

    def extend(self, values: Any) -> None: ...

    def add(self, value: Any) -> None: ...


class Dtype(Inert):
    """numpy's, of which the size of a value must be known."""

    def __init__(self, code: Any = "", *args: Any) -> None:
        super().__init__()
        self.code = code if isinstance(code, str) else ""


class Wrapped(Inert):
    """An array that joblib wrote as plain bytes behind its description, which are to be skipped."""


class Walk(pickle._Unpickler):  # the one in Python: the other cannot be watched as it goes
    """Through a stream, noting names. Nothing that the stream names is looked up."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self.file, self.names = file, dict[str, None]()

    def find_class(self, module: str, name: str) -> Any:
        self.names[f"{module}.{name}"] = None
        if module.startswith("joblib.numpy_pickle") and name == "NumpyArrayWrapper":
            return Wrapped
        return Dtype if (module, name) == ("numpy", "dtype") else Inert

    def get_extension(self, code: int) -> None:
        raise pickle.UnpicklingError("it uses the registry of extensions")

    def persistent_load(self, pid: Any) -> Any:
        return Inert()

    def load_build(self) -> None:
        state = self.stack.pop()  # type: ignore[attr-defined]
        built = self.stack[-1]  # type: ignore[attr-defined]
        if not isinstance(built, Inert):
            return
        built.state = state
        if isinstance(built, Wrapped):
            self.skip(state)

    dispatch[pickle.BUILD[0]] = load_build

    def skip(self, state: Any) -> None:
        """The bytes of an array, and the padding before them."""
        dtype, shape = state.get("dtype"), state.get("shape", ())
        code = dtype.code if isinstance(dtype, Dtype) else ""
        if code.startswith("O"):  # a pickle inside the pickle
            inner = Walk(self.file)
            inner.load()
            self.names |= inner.names
            return
        if not code[1:].isdigit():
            raise pickle.UnpicklingError(f"it has an array of {code or 'an unknown dtype'}")
        if state.get("numpy_array_alignment_bytes") is not None:
            self.file.read(self.file.read(1)[0])
        size = int(code[1:]) * (4 if code[0] == "U" else 1)
        for length in shape:
            size *= length
        self.file.seek(size, io.SEEK_CUR)


def contents(path: Path) -> list[str]:
    """What loading the file would import, as module.name; the suspicious first."""
    found: dict[str, None] = {}
    try:
        data = path.read_bytes()
        if not data:
            raise BitwattError("it is empty")
        for stream in _streams(data):
            while stream.read(1):  # a file may hold several, one after the other
                stream.seek(-1, io.SEEK_CUR)
                walk = Walk(stream)
                try:
                    walk.load()
                finally:
                    found |= walk.names
    except Exception as error:  # whatever is wrong with the bytes: they were written by anybody
        if not found:
            said = printable(f"{error}" or type(error).__name__)
            raise BitwattError(f"{path.name} is not a pickle, joblib or torch file that can be read: {said}") from error
        found["(the rest of the file could not be read)"] = None
    return sorted(found, key=lambda name: not suspicious(name))


def suspicious(name: str) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:length]) in SHELLS for length in range(1, len(parts) + 1))


def refuse(path: Path) -> BitwattError:
    """Why the file is not loaded, and what it would import."""
    names = [printable(name) for name in contents(path)]
    bad = [name for name in names if suspicious(name)]
    said = f"{path.name} was not loaded, since loading it runs code that its writer chose."
    if bad:
        said += f" SUSPICIOUS, no model needs them: {', '.join(bad[:12])}."
    rest = names[len(bad) :]
    packages = sorted({name.partition(".")[0] for name in rest})
    said += f" It would import {', '.join(rest[:12]) or 'nothing else'}"
    said += f" and {len(rest) - 12} more, of {', '.join(packages)}" if len(rest) > 12 else ""
    return BitwattError(f"{said}. If you trust who wrote it: --trust, or trust=True.")


def _streams(data: bytes) -> list[IO[bytes]]:
    if data.startswith(b"PK"):
        return _archived(data)
    for magic, unpack in PACKED.items():
        if data.startswith(magic):
            return [io.BytesIO(unpack(data))]
    if data[:1] == b"\x78" and not int.from_bytes(data[:2]) % 31:
        return [io.BytesIO(zlib.decompress(data))]
    if data.startswith(b"\x04\x22\x4d\x18"):
        raise BitwattError("it is packed with lz4, which cannot be looked into; save it with another compression")
    return [io.BytesIO(data)]


def _archived(data: bytes) -> list[IO[bytes]]:
    """Pickles in an archive of torch, also in archives within it."""
    found: list[IO[bytes]] = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".pkl"):
                found.append(io.BytesIO(archive.read(name)))
            elif name.endswith(".pt"):
                found += _archived(archive.read(name))
    return found
