"""The form that asks for the token, where the server is not on its own machine only."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from bitwatt.dashboard.frame import framed
from bitwatt.dashboard.guard import COOKIE, LOGIN, equal, pass_of
from bitwatt.dashboard.prefix import address
from bitwatt.reports.html.layout import Parts

if TYPE_CHECKING:
    from fastapi import Request, Response

#: Bytes of a form that are read, and seconds that a wrong token takes.
_LONGEST, _PENALTY = 4096, 0.5
_KEPT_S = 30 * 86_400


def login_page(wrong: bool = False) -> str:
    told = '<p class="alert" role="alert">That is not the token.</p>' if wrong else ""
    form = (
        f'<form class="login" method="post" action="{address(LOGIN)}">{told}'
        '<label for="token">Token</label>'
        '<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>'
        '<button type="submit">Open</button></form>'
        '<p class="note">It was printed where <code>bitwatt serve</code> was started.</p>'
    )
    return framed(Parts("Token", "<h1>Token</h1>", [("login", "Who is there?", form)]), at=None)


async def logged_in(request: Request, token: str) -> Response:
    """The cookie is for this site only, and scripts cannot read it."""
    from fastapi.responses import HTMLResponse, RedirectResponse

    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST:
            return HTMLResponse(login_page(wrong=True), status_code=413)
    given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0]
    if not equal(given.strip(), token):
        await asyncio.sleep(_PENALTY)
        return HTMLResponse(login_page(wrong=True), status_code=401)
    answer = RedirectResponse(address("/"), status_code=303)
    encrypted = request.url.scheme == "https"
    place = address("") or "/"
    passed = pass_of(token)
    answer.set_cookie(COOKIE, passed, _KEPT_S, path=place, httponly=True, samesite="strict", secure=encrypted)
    return answer
