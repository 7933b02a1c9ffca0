"""A command that goes on printing: what it has printed, without waiting for it.

It is no child of this process: a program may wait for all of its children, and is told when one ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress

#: Starts the command, says its number, and ends: whoever looks after orphans has it then.
SHELL = ("/bin/sh", "-c", '"$@" 2>/dev/null & echo $! >&2', "sh")


class Stream:
    def __init__(self, command: Sequence[str], separator: bytes = b"\n") -> None:
        self._name, self._separator, self._rest = command[0], separator, b""
        # In a session of its own: Ctrl-C at the terminal is for the user's program, which ends before this.
        starter = subprocess.Popen(
            [*SHELL, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        assert starter.stdout is not None
        assert starter.stderr is not None
        with starter.stderr as said:
            self.pid = int(said.read())
        starter.wait()
        self._handle: int | None = None  # a number alone may be another process's by the time it is used
        with suppress(OSError, AttributeError):
            self._handle = os.pidfd_open(self.pid)
        self._owner = os.getpid()
        self._pipe = starter.stdout
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
        handle, self._handle = self._handle, None
        if handle is not None:
            if self._owner == os.getpid():
                with suppress(OSError):
                    signal.pidfd_send_signal(handle, signal.SIGTERM)
            os.close(handle)
