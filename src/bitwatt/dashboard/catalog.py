"""A store as the pages read it: looked at now and then, runs found in the index by their ids, pages kept for a while.
No word of a request ever becomes a path."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace

from bitwatt.config import Settings, settings_here
from bitwatt.errors import UnknownNameError
from bitwatt.records import Run
from bitwatt.store import Header, Store, absolute, load
from bitwatt.store.index import Index

#: A look at the store is at least so many seconds after the one before, and takes at most this share of a core.
LEAST_S, SHARE = 1.0, 1 / 20
#: Letters of pages that are kept.
_KEPT = 30_000_000
#: Letters of a text on a page, and notes.
TEXT, _NOTES = 2_000, 100


class Catalog:
    """May be used from several threads."""

    def __init__(self, store: Store = None) -> None:
        self.index = Index(store)
        self.where = str(absolute(self.index.place.root))
        self.settings = settings_here() or Settings()
        self.pages = Shelf(_KEPT)
        self._lock = threading.Lock()
        self._next = 0.0

    @property
    def pause(self) -> float:
        """Seconds until the next look is due."""
        return max(self._next - time.monotonic(), 0.05)

    def look(self) -> Index:
        """The index, as of a moment ago. Whoever comes while somebody looks waits for that look."""
        with self._lock:
            if time.monotonic() >= self._next:
                began, spent = time.monotonic(), time.thread_time()
                self.index.refresh()
                spent = time.thread_time() - spent
                now = time.monotonic()
                least = max(LEAST_S, self.index.place.interval / 3)  # object storage bills every listing
                # What stood still used nothing: it is left alone for as long, not for twenty times as long.
                self._next = now + max(least, spent / SHARE, now - began)
        return self.index

    def header(self, id: str) -> Header:
        # A space, so that an id that begins with a sign is no other sign; of ids that begin so, the exact one is first.
        for found in self.look().select([f"id= {id}"], sort="id", limit=1):
            if found.id == id:
                return found
        raise UnknownNameError(f"no run here has the id {id!r}; it may have been removed")

    def run(self, id: str) -> Run:
        return load(self.header(id).path)

    def close(self) -> None:
        self.index.close()


def legible(run: Run) -> Run:
    """Of texts, as much as a page has room for: a name may be a megabyte long."""
    notes = tuple(map(_cut, run.notes[:_NOTES]))
    return replace(run, name=_cut(run.name), command=_cut(run.command), status=_cut(run.status), notes=notes)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[: TEXT - 1]}…"


class Shelf:
    """Texts that were made lately, up to a size."""

    def __init__(self, size: int) -> None:
        self._size, self._room = size, size
        self._texts: OrderedDict[Hashable, str] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], str]) -> str:
        with self._lock:
            if key in self._texts:
                self._texts.move_to_end(key)
                return self._texts[key]
        text = make()
        with self._lock:
            if key not in self._texts and len(text) <= self._size:
                self._texts[key] = text
                self._room -= len(text)
                while self._room < 0:
                    self._room += len(self._texts.popitem(last=False)[1])
        return text
