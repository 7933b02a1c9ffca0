"""Parts of a page that different scripts write: each lies between its own two markers."""

from __future__ import annotations


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def part(page: str, name: str) -> str:
    """What lies between the markers of `name`; nothing where the page has none."""
    begin, end = _markers(name)
    return page.partition(begin)[2].partition(end)[0].strip("\n") if begin in page else ""


def framed(name: str, text: str) -> str:
    begin, end = _markers(name)
    text = text.strip("\n")
    return f"{begin}\n\n{text}\n\n{end}\n"


def replaced(page: str, name: str, text: str) -> str:
    """The page with another text between the markers of `name`."""
    begin, end = _markers(name)
    before, found, rest = page.partition(begin)
    if not found:
        raise ValueError(f"the page has no part {name!r}")
    return before + framed(name, text) + rest.partition(end)[2].removeprefix("\n")
