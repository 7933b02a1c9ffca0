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
import math
import pickle
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
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
PACKED: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
    b"\x5d\x00": lzma.LZMAFile,
}
#: Of what is packed, so much is unpacked to be looked into, for so long, while nobody has said that it is trusted.
LOOKED, PATIENCE_S = 32 << 20, 20.0


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

    def __init__(self, file: Bounded) -> None:
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
        self.file.skip(size)


class Bounded:
    """A stream of which no more is read than is told, for no longer: a small file may unpack to a very large one."""

    def __init__(self, file: Any, most: int = LOOKED, seconds: float = PATIENCE_S) -> None:
        self._file, self._left, self._seconds = file, most, seconds
        self._until, self._back = time.monotonic() + seconds, b""

    def read(self, size: int = -1) -> bytes:
        held, self._back = (self._back, b"") if size < 0 else (self._back[:size], self._back[size:])
        if 0 <= size <= len(held):
            return held
        return held + self._spent(self._file.read(min(size - len(held) if size >= 0 else LOOKED, self._left + 1)))

    def readline(self) -> bytes:
        held, self._back = self._back, b""
        return held + self._spent(self._file.readline(self._left + 1))

    def peeked(self) -> bytes:
        """The next byte, which is read again."""
        self._back = self.read(1)
        return self._back

    def skip(self, size: int) -> None:
        while size > 0 and (read := len(self.read(min(size, 1 << 20)))):
            size -= read

    def _spent(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise pickle.UnpicklingError(f"it holds more than the {LOOKED >> 20} MiB that are looked into")
        if time.monotonic() > self._until:
            raise pickle.UnpicklingError(f"it takes more than {self._seconds:g} s to look into")
        return data


class Whole(Bounded):
    """Of a file that is as large as it looks, and may be read to its end."""

    def skip(self, size: int) -> None:
        size -= len(self.read(min(size, len(self._back))))
        self._file.seek(size, io.SEEK_CUR)


def contents(path: Path, *, trusted: bool = False) -> list[str]:
    """What loading the file would import, as module.name; the suspicious first. Of one that is not trusted no more is
    unpacked than a bounded part, which is not kept."""
    found: dict[str, None] = {}
    try:
        if not path.stat().st_size:
            raise BitwattError("it is empty")
        with path.open("rb") as file:
            for stream in _streams(file, trusted):
                while stream.peeked():  # a file may hold several, one after the other
                    walk = Walk(stream)
                    try:
                        walk.load()
                    finally:
                        found |= walk.names
    except Exception as error:  # whatever is wrong with the bytes: they were written by anybody
        said = printable(f"{type(error).__name__}: {error}".rstrip(": "))
        if not found:
            raise BitwattError(f"{path.name} is not a pickle, joblib or torch file that can be read: {said}") from error
        found[f"(the rest of the file could not be read: {said})"] = None
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


def _streams(file: IO[bytes], trusted: bool) -> Iterator[Bounded]:
    most, seconds = (sys.maxsize - 1, math.inf) if trusted else (LOOKED, PATIENCE_S)
    head = file.read(8)
    file.seek(0)
    if head.startswith(b"PK"):
        yield from _archived(file, most, seconds)
        return
    for magic, opened in PACKED.items():
        if head.startswith(magic):
            yield Bounded(opened(file), most, seconds)
            return
    if head[:1] == b"\x78" and not int.from_bytes(head[:2]) % 31:
        yield Bounded(Inflated(file), most, seconds)
    elif head.startswith(b"\x04\x22\x4d\x18"):
        raise BitwattError("it is packed with lz4, which cannot be looked into; save it with another compression")
    else:
        yield Whole(file, sys.maxsize - 1, seconds)


def _archived(file: IO[bytes], most: int, seconds: float, depth: int = 0) -> Iterator[Bounded]:
    """Pickles in an archive of torch, also in archives within it."""
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if name.endswith(".pkl"):
                with archive.open(name) as inner:
                    yield Bounded(inner, most, seconds)
            elif name.endswith(".pt") and depth < 2:
                with archive.open(name) as inner:
                    yield from _archived(io.BytesIO(Bounded(inner, most, seconds).read()), most, seconds, depth + 1)


class Inflated(io.RawIOBase):
    """zlib's stream, which has no file of its own in the library."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._inflate, self._held = file, zlib.decompressobj(), b""

    def read(self, size: int = -1) -> bytes:
        parts, wanted = [], sys.maxsize if size < 0 else size
        while wanted > 0 and (data := self._more(min(wanted, 1 << 20))):
            parts.append(data)
            wanted -= len(data)
        return b"".join(parts)

    def readline(self, size: int | None = -1) -> bytes:
        line = bytearray()
        while not line.endswith(b"\n") and (size is None or size < 0 or len(line) < size) and (one := self.read(1)):
            line += one
        return bytes(line)

    def _more(self, most: int) -> bytes:
        while True:
            given = self._inflate.unconsumed_tail or self._file.read(1 << 16)
            data = self._inflate.decompress(given, most)
            if data or not given or self._inflate.eof:
                return data
