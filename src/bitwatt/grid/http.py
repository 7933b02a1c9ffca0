"""One GET request for JSON: what can go wrong is said in words, without the token, and nothing is tried twice."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from bitwatt.config import Settings
from bitwatt.grid.record import UnavailableError

_LONGEST = 8_000_000
#: Host -> until when (monotonic) it asked to be left alone.
_quiet: dict[str, float] = {}
_lock = threading.Lock()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the token to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def get(
    settings: Settings, base: str, path: str, query: Mapping[str, str] | None = None, headers: Mapping[str, str] = {}
) -> Any:
    """The answer of `base/path?query`, parsed; None where it is empty."""
    url = f"{(settings.grid_url or base).rstrip('/')}/{path.lstrip('/')}"
    host = urllib.parse.urlsplit(url)
    if host.scheme not in ("http", "https"):
        raise UnavailableError(f"{url} is no http address")
    if (wait := _quiet.get(host.netloc, 0.0) - time.monotonic()) > 0:
        raise UnavailableError(f"{host.netloc} asked to wait (HTTP 429); {wait:.0f} s are left")
    full = f"{url}?{urllib.parse.urlencode(query)}" if query else url
    request = urllib.request.Request(full, headers={"Accept": "application/json", "User-Agent": "bitwatt", **headers})
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=settings.grid_timeout_s) as answer:
            body = answer.read(_LONGEST + 1)
    except urllib.error.HTTPError as error:
        raise UnavailableError(_refused(error, host.netloc)) from None
    except (OSError, ValueError) as error:  # too late, no route, no such host, a broken line
        why = getattr(error, "reason", error)
        if isinstance(why, TimeoutError):
            raise UnavailableError(f"{host.netloc} did not answer in time") from None
        raise UnavailableError(f"{host.netloc} cannot be reached ({why})") from None
    if not body.strip():
        return None
    if len(body) > _LONGEST:
        raise UnavailableError(f"{host.netloc} answered with more than {_LONGEST} bytes")
    try:
        return json.loads(body)
    except ValueError:
        raise UnavailableError(f"{host.netloc} answered with something that is no JSON") from None


def _refused(error: urllib.error.HTTPError, host: str) -> str:
    if error.code in (401, 403):
        return f"{host} refuses the token or what it asks for (HTTP {error.code})"
    if error.code == 429:
        wait = _seconds(error.headers.get("Retry-After"))
        with _lock:
            _quiet[host] = time.monotonic() + wait
        return f"{host} allows no more requests now (HTTP 429); it asks to wait {wait:.0f} s"
    return f"{host} answers HTTP {error.code}"


def _seconds(text: str | None) -> float:
    """Retry-After holds seconds or a date; a minute where it says nothing, a day at most."""
    try:
        wait = float(text or 60)
    except ValueError:
        try:
            wait = parsedate_to_datetime(text or "").timestamp() - time.time()
        except (TypeError, ValueError):
            wait = 60.0
    return min(max(wait, 0.0), 86400.0)


def secret(settings: Settings, variable: str) -> str:
    """The token (or password) out of the environment variable that the settings name, else the usual one."""
    name = settings.grid_token_env or variable
    found = os.environ.get(name, "").strip()
    if not found:
        raise UnavailableError(f"the environment variable {name} holds no token")
    return found


def zone(settings: Settings, example: str) -> str:
    if not settings.grid_zone:
        raise UnavailableError(f"grid.zone is not set, such as {example!r}")
    return settings.grid_zone
