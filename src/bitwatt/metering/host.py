"""One poller for the machine: whoever holds a lock reads levels and appends them to a small file; others read that.

The kernel gives the lock back when its holder dies, so that the next to try has it. Nothing here raises: a file that
is stale, cut or not ours costs its content, and without a folder every process polls for itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from bitwatt.metering.board import Key

try:
    import fcntl
except ImportError:  # Windows: each process for itself
    fcntl = None  # type: ignore[assignment]

#: Bytes after which the file begins anew; the one before is kept beside it.
ROTATE = 256 * 1024


def folder() -> Path | None:
    """A folder of this user's that lasts as long as the machine runs."""
    there = os.environ.get("XDG_RUNTIME_DIR")
    user = os.getuid() if hasattr(os, "getuid") else 0
    choices = [Path(there) / "bitwatt"] if there else []
    with suppress(OSError):  # it raises where nothing can be written
        choices.append(Path(tempfile.gettempdir()) / f"bitwatt-{user}")
    for path in choices:
        with suppress(OSError):
            path.mkdir(mode=0o700, exist_ok=True)
            found = path.lstat()
            mine = not hasattr(os, "getuid") or found.st_uid == user
            if stat.S_ISDIR(found.st_mode) and mine and os.access(path, os.W_OK):
                return path
    return None


def _boot() -> str:
    """Clocks that count from the start of the machine, and device numbers, mean nothing after the next one."""
    with suppress(OSError):
        return hashlib.sha256(Path("/proc/sys/kernel/random/boot_id").read_bytes()).hexdigest()[:8]
    return "0"


class Host:
    """This process's place at the shared file: its writer, a reader, or on its own."""

    def __init__(self, where: Path | None) -> None:
        self.where = where if fcntl is not None else None
        name = _boot()
        self._lock_path = where / f"meter-{name}.lock" if where else None
        self._ticks_path = where / f"ticks-{name}.jsonl" if where else None
        self._lock: int | None = None
        self._out: int | None = None
        self._in: int | None = None
        self._inode = 0
        self._rest = b""

    @property
    def polls(self) -> bool:
        """Whether this process reads the levels of the machine itself."""
        return self._lock is not None or self.where is None

    def try_hold(self) -> bool:
        """Take the lock if nobody has it."""
        if self._lock is not None or self.where is None or self._lock_path is None:
            return self.polls
        descriptor = None
        try:
            descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if descriptor is not None:
                os.close(descriptor)
            return False
        except OSError:
            if descriptor is not None:
                os.close(descriptor)
            self.where = None
            return True
        self._lock = descriptor
        self._close_in()
        return True

    def tell(self, now: float, levels: dict[Key, float]) -> None:
        """Append one tick, if this process is the poller."""
        if self._lock is None or self._ticks_path is None:
            return
        line = json.dumps({"t": now, "r": [[*key, value] for key, value in levels.items()]}, separators=(",", ":"))
        try:
            if self._out is None:
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
                self._out = os.open(self._ticks_path, flags, 0o600)
                line = "\n" + line  # the one before may have died in the middle of a line
            os.write(self._out, line.encode() + b"\n")
            if os.fstat(self._out).st_size > ROTATE:
                os.replace(self._ticks_path, self._ticks_path.with_suffix(".old"))
                os.close(self._out)
                self._out = None
        except (OSError, ValueError):  # no room: it is tried again with the next tick
            _close(self._out)
            self._out = None

    def hear(self, since: float) -> list[tuple[float, dict[Key, float]]]:
        """The ticks that another process appended after `since` and since the last call."""
        found = []
        while lines := self._lines():
            for line in lines:
                tick = _tick(line)
                if tick is not None and tick[0] > since:
                    found.append(tick)
        return found

    def _lines(self) -> list[bytes]:
        if self._ticks_path is None:
            return []
        try:
            if self._in is None:
                self._in = os.open(self._ticks_path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
                self._inode, self._rest = os.fstat(self._in).st_ino, b""
            data = os.read(self._in, 1 << 16)
            if not data:
                if os.stat(self._ticks_path).st_ino != self._inode:  # it has been rotated
                    self._close_in()
                    return self._lines()
                return []
        except OSError:
            self._close_in()
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines or [b""]

    def release(self) -> None:
        """No session is open any more."""
        _close(self._out)
        _close(self._lock)
        self._out = self._lock = None
        self._close_in()

    #: In a forked child: what is closed there stays the parent's, since nothing is unlocked.
    forget = release

    def _close_in(self) -> None:
        _close(self._in)
        self._in, self._rest = None, b""


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        with suppress(OSError):
            os.close(descriptor)


def _tick(line: bytes) -> tuple[float, dict[Key, float]] | None:
    try:
        document: Any = json.loads(line)
        levels = {(str(device), str(quantity)): float(value) for device, quantity, value in document["r"]}
        return float(document["t"]), levels
    except (ValueError, TypeError, KeyError):
        return None
