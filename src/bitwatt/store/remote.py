"""Object storage (s3://, gs://, memory:// and whatever else fsspec knows) as a place for runs."""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from bitwatt.errors import BitwattError
from bitwatt.store.places import HEAD, SUFFIX, File, Where

#: A write there shows when it is complete. Elsewhere a file is written under another name and renamed.
_WHOLE = frozenset(["s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oci", "oss", "memory"])
#: Most first lines end here; the rest of a longer one is asked for.
_GUESS = 1 << 14
#: First lines that are asked for at once.
_BATCH = 256
_PACKAGES = {"s3": "bitwatt[remote]", "s3a": "bitwatt[remote]", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs"}


class Remote:
    interval = 30.0  # every write sends the whole file

    def __init__(self, url: str) -> None:
        self.root: Where = url
        self._url = url
        self._protocol = url.partition("://")[0]
        try:
            core: Any = importlib.import_module("fsspec.core")
        except ImportError:
            raise BitwattError(f"{url} needs fsspec; pip install 'bitwatt[remote]'") from None
        try:
            self._fs, path = core.url_to_fs(url)
        except ImportError as error:
            package = _PACKAGES.get(self._protocol, "")
            hint = f"; pip install '{package}'" if package else ""
            raise BitwattError(f"{url} cannot be opened: {error}{hint}") from None
        except ValueError as error:
            raise BitwattError(f"{url} cannot be opened: {error}") from None
        self._path = str(path).rstrip("/")

    def files(self, folder: str = "", suffix: str = SUFFIX) -> list[File]:
        under = f"{self._path}/{folder}".rstrip("/")
        with _as_os_errors():
            self._fs.invalidate_cache(under)
            try:
                listed = self._fs.ls(under, detail=True)
            except FileNotFoundError:
                return []
        return [
            File(name, _stamp(entry))
            for entry in listed
            if entry.get("type") == "file"
            and (name := str(entry["name"]).rpartition("/")[2]).endswith(suffix)
            and not name.startswith(".")
        ]

    def heads(self, names: Iterable[str]) -> Iterator[tuple[str, bytes | OSError]]:
        rest = iter(names)
        while batch := list(islice(rest, _BATCH)):
            with _as_os_errors():
                found = self._fs.cat_ranges([self._at(name) for name in batch], 0, _GUESS, on_error="return")
            for name, content in zip(batch, found, strict=True):
                yield name, self._first_line(name, content)

    def _first_line(self, name: str, content: Any) -> bytes | OSError:
        if isinstance(content, BaseException):
            return content if isinstance(content, OSError) else _os_error(content)
        if b"\n" not in content and len(content) >= _GUESS:
            try:
                with _as_os_errors():
                    content = self._fs.cat_file(self._at(name), start=0, end=HEAD)
            except OSError as error:
                return error
        line, newline, _ = bytes(content).partition(b"\n")
        return line + newline

    def read(self, name: str) -> bytes:
        with _as_os_errors():
            return bytes(self._fs.cat_file(self._at(name)))

    def write(self, name: str, content: bytes, *, sync: bool = True) -> None:
        with _as_os_errors():
            if self._protocol in _WHOLE:
                self._fs.pipe_file(self._at(name), content)
                return
            folder, _, last = self._at(name).rpartition("/")
            temporary = f"{folder}/.{last}.{secrets.token_hex(4)}.tmp"
            self._fs.makedirs(folder, exist_ok=True)
            self._fs.pipe_file(temporary, content)
            self._fs.mv(temporary, self._at(name))

    def delete(self, name: str) -> None:
        with _as_os_errors():
            self._fs.rm_file(self._at(name))

    def where(self, name: str) -> Where:
        return f"{self._url}/{name}"

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}"


def _stamp(entry: dict[str, Any]) -> str:
    keys = ("ETag", "etag", "generation", "LastModified", "mtime", "updated", "created")
    told = [str(entry[key]) for key in keys if entry.get(key) is not None]
    return ":".join((*told[:2], str(entry.get("size"))))


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Each service has errors of its own; whoever keeps runs knows one."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise _os_error(error) from error


def _os_error(error: BaseException) -> OSError:
    return OSError(f"{type(error).__name__}: {error}")
