"""Where the dashboard hangs: behind a proxy, or in an application of others, its addresses begin with a path."""

from __future__ import annotations

from contextvars import ContextVar

from bitwatt.errors import BitwattError

#: Of the request that is being answered.
PREFIX: ContextVar[str] = ContextVar("prefix", default="")


def address(path: str) -> str:
    """An address of ours as the browser has to ask for it."""
    return PREFIX.get() + path


def plain_prefix(text: str) -> str:
    """As written by people: bitwatt, /bitwatt or /bitwatt/."""
    steps = [step for step in text.split("/") if step]
    if not all(step.isascii() and step.replace("-", "").replace("_", "").replace(".", "").isalnum() for step in steps):
        raise BitwattError(f"--prefix {text}: a path of letters, digits, - and _, such as /bitwatt")
    return "".join(f"/{step}" for step in steps)


def below(path: str, prefix: str) -> str:
    """The rest of a path. Some proxies leave the prefix in it and some take it away: both are understood."""
    return path[len(prefix) :] or "/" if prefix and (path == prefix or path.startswith(f"{prefix}/")) else path
