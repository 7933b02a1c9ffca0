"""What stands before every page: who may ask, for what, and what a browser may do with the answer."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bitwatt.dashboard.prefix import PREFIX, address, below

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "bitwatt"
LOGIN = "/login"
#: Only our own files are loaded, nothing inline runs, and nobody may frame a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """An ASGI middleware. Refusals are plain text: whoever gets one has not shown who he is."""

    def __init__(self, app: ASGIApp, *, token: str | None, loopback: bool, prefix: str = "") -> None:
        self.app, self.token, self.loopback, self.prefix = app, token, loopback, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        is_head = scope["method"] == "HEAD"
        prefix = self.prefix or scope.get("root_path", "")  # the latter where it is mounted in another application
        scope = {**scope, "path": below(scope["path"], prefix), "root_path": ""}
        if is_head:
            scope["method"] = "GET"
        PREFIX.set(prefix)
        answer = _Answer(send, without_body=is_head)
        path, is_login = scope["path"], scope["path"] == LOGIN and self.token is not None
        # A name of another host that leads here is how a web page would reach a server that trusts its machine. One
        # that asks for a token trusts nobody, and may stand behind a proxy that passes on its own name.
        if self.loopback and self.token is None and not is_loopback(host_of(headers.get(b"host", ""))):
            return await answer.refuse(421, "this server answers to localhost only")
        if scope["method"] != "GET" and not (is_login and scope["method"] == "POST"):
            return await answer.refuse(405, "this server only tells: GET", [(b"allow", b"GET, HEAD")])
        if not (is_login or path.startswith("/static/") or self._may(headers)):
            if path.startswith("/api/"):
                return await answer.refuse(401, "a token is needed", [(b"www-authenticate", b"Bearer")])
            return await answer.refuse(303, "", [(b"location", address(LOGIN).encode())])
        await self.app(scope, receive, answer)

    def _may(self, headers: dict[bytes, str]) -> bool:
        if self.token is None:
            return True
        kind, _, given = headers.get(b"authorization", "").partition(" ")
        if kind.lower() == "bearer" and equal(given.strip(), self.token):
            return True
        return equal(_cookie(headers.get(b"cookie", "")), pass_of(self.token))


class _Answer:
    """Sends what the app sends, with our headers; of a HEAD nothing else, and ends it there, also if it is a stream."""

    def __init__(self, send: Send, *, without_body: bool = False) -> None:
        self._send, self._without_body, self._ended = send, without_body, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {name.lower() for name, _ in message["headers"]}
            added = {**HEADERS, **({} if b"cache-control" in given else {"cache-control": "private, no-cache"})}
            message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in added.items())]
        elif self._without_body:
            if self._ended:
                return
            self._ended = True
            message = {"type": "http.response.body", "body": b""}
        await self._send(message)

    async def refuse(self, status: int, why: str, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        told = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *(headers or [])]
        await self({"type": "http.response.start", "status": status, "headers": told})
        await self({"type": "http.response.body", "body": why.encode()})


def host_of(header: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return (urlsplit(f"//{header}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own, that nobody else can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def equal(given: str, expected: str) -> bool:
    """In a time that does not tell how much of it was right."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode())


def pass_of(token: str) -> str:
    """What the cookie holds: made of the token, which cannot be found from it."""
    return hmac.new(token.encode(), b"bitwatt dashboard", hashlib.sha256).hexdigest()


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
