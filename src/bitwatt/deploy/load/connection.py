"""One caller of an HTTP endpoint: a connection that is kept open, and an answer or what went wrong."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from bitwatt.errors import BitwattError

_PIECE = 1 << 16
#: What stays as it is in a path; letters that are not ASCII are written as %XX.
_SAFE = "/%?=&:@+,;!$'()*~[]|^{}"
#: A body that is longer is no prediction.
_MOST = 1 << 28


@dataclass(frozen=True, slots=True)
class Address:
    secure: bool
    host: str
    port: int
    path: str


def address(url: str) -> Address:
    """Raises for what is no URL of http or https."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except (ValueError, AttributeError) as error:
        raise BitwattError(f"{url!r} is no URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BitwattError(f"{url!r} is no URL of an endpoint: write http://host:port/path")
    if parts.username or parts.password:
        raise BitwattError("the URL holds a name or a password: give an Authorization header instead")
    if any(ord(letter) <= 32 or ord(letter) == 127 for letter in url.strip()):
        raise BitwattError(f"{url!r} holds spaces or control characters: write %20 for a space")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    secure = parts.scheme == "https"
    return Address(secure, parts.hostname, port or (443 if secure else 80), quote(path, safe=_SAFE))


class Endpoint:
    """The target of a load. Requests are sent as they are, one body after another."""

    remote = True

    def __init__(
        self, where: Address, method: str, bodies: Sequence[bytes | None], headers: Mapping[str, str], limit_s: float
    ) -> None:
        self.limit_s = limit_s
        self._where, self._method, self._bodies, self._headers = where, method, bodies, headers

    def caller(self) -> Callable[[int], str]:
        return _Caller(self._where, self._method, self._bodies, self._headers, self.limit_s)


class _Caller:
    def __init__(
        self, where: Address, method: str, bodies: Sequence[bytes | None], headers: Mapping[str, str], limit_s: float
    ) -> None:
        self._where, self._method, self._bodies, self._headers = where, method, bodies, headers
        self._limit_s = limit_s
        self._line: http.client.HTTPConnection | None = None

    def __call__(self, number: int) -> str:
        """ "" for an answer of 200 to 299 that came whole and in time."""
        until = time.monotonic() + self._limit_s
        used = self._line is not None
        try:
            try:
                return self._ask(number, until)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self._hang_up()
                if not used:
                    raise
                return self._ask(number, until)  # a server may end a connection that lay idle; a new one will tell
        except TimeoutError:
            self._hang_up()
            return f"no answer within {self._limit_s:g} s"
        except (OSError, http.client.HTTPException, ValueError) as error:  # a ValueError is of a name it cannot write
            self._hang_up()
            return f"{type(error).__name__}: {error}"[:200]

    def _ask(self, number: int, until: float) -> str:
        if self._line is None:
            self._line = self._connected(until)
        line = self._line
        _allow(line, until)
        line.request(self._method, self._where.path, self._bodies[number % len(self._bodies)], dict(self._headers))
        _allow(line, until)
        answer = line.getresponse()
        read = 0
        while answer.length != 0 and (piece := answer.read1(_PIECE)):  # read would wait for all of a piece
            read += len(piece)
            if read > _MOST:
                raise OSError("the answer does not end")
            _allow(line, until)
        if answer.length:  # fewer bytes than were announced
            raise OSError("the answer was cut short")
        answer.close()  # the connection stays open
        if answer.will_close:
            self._hang_up()
        return "" if 200 <= answer.status < 300 else f"HTTP {answer.status} {answer.reason}"[:200]

    def _connected(self, until: float) -> http.client.HTTPConnection:
        left = max(0.001, until - time.monotonic())
        where = self._where
        kind = http.client.HTTPSConnection if where.secure else http.client.HTTPConnection
        line = kind(where.host, where.port, timeout=left)
        line.connect()
        return line

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


def _allow(line: http.client.HTTPConnection, until: float) -> None:
    """A server that sends a byte now and then must not get more time by it."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if line.sock is not None:
        line.sock.settimeout(left)
