"""A command that goes on printing: what it has printed, without waiting for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence


class Stream:
    def __init__(self, command: Sequence[str], separator: bytes = b"\n") -> None:
        self._name, self._separator, self._rest = command[0], separator, b""
        # In a session of its own: Ctrl-C at the terminal is for the user's program, which ends before this.
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._owner = os.getpid()
        assert self._process.stdout is not None
        self._pipe = self._process.stdout
        os.set_blocking(self._pipe.fileno(), False)

    def pieces(self) -> list[bytes]:
        """The whole pieces since the last call. OSError when the command has ended."""
        if self._pipe.closed:
            return []
        if self._owner != os.getpid():
            raise OSError(f"{self._name} speaks to the process that forked this one")
        while True:
            try:
                got = os.read(self._pipe.fileno(), 1 << 16)
            except BlockingIOError:
                break
            if not got:
                if not self._rest:
                    raise OSError(f"{self._name} has ended")
                break
            self._rest += got
        *whole, self._rest = self._rest.split(self._separator)
        return whole

    def close(self) -> None:
        """Without a reader it dies of its next line, also where it runs as root and cannot be ended from here."""
        self._pipe.close()
        if self._owner != os.getpid():
            return
        try:
            self._process.terminate()
            self._process.wait(timeout=1)
        except (PermissionError, subprocess.TimeoutExpired):
            return
