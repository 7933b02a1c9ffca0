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


def in_lines(text: str) -> str:
    """Several lines, each as `printable` makes it."""
    return "\n".join(map(printable, text.split("\n")))


def in_csv(text: str) -> str:
    """A spreadsheet computes what begins with one of these signs; behind an apostrophe it is text."""
    text = encodable(text)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else text


def in_printed_csv(text: str) -> str:
    """As `in_csv`, for a table that may go to a terminal: lines and tabs stay, what steers it does not."""
    return in_csv(text if text.isprintable() else "".join(c if c in "\t\n" else printable(c) for c in text))


def encodable(text: str) -> str:
    """Without halves of characters, which names of files may bring along."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
