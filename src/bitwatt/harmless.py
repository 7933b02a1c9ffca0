"""Names, tags and notes are whatever somebody wrote: made harmless before a terminal or a spreadsheet reads them."""

from __future__ import annotations

import unicodedata

#: Kinds of characters that steer a terminal, or turn the direction of a text: control, format, surrogates, private.
_STEERING = frozenset(["Cc", "Cf", "Cs", "Co"])


def on_terminal(text: str) -> str:
    """In one line, without anything that a terminal would obey."""
    return text if text.isascii() and text.isprintable() else printable(" ".join(text.split()))


def printable(text: str) -> str:
    """As it is laid out, but for what a terminal would obey."""
    if text.isprintable():
        return text
    return "".join("?" if unicodedata.category(c) in _STEERING else c for c in text)


def in_csv(text: str) -> str:
    """A spreadsheet computes what begins with one of these signs; behind an apostrophe it is text."""
    text = encodable(text)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else text


def encodable(text: str) -> str:
    """Without halves of characters, which names of files may bring along."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
