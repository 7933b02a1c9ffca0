"""A store as the pages read it: looked at now and then, runs found in the index by their ids, pages kept for a while.
No word of a request ever becomes a path."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple

from bitwatt.config import Settings, settings_here
from bitwatt.errors import UnknownNameError
from bitwatt.records import Run
from bitwatt.store import Header, Store, absolute, load
from bitwatt.store.index import Index, Progress

#: A look at the store is at least so many seconds after the one before, and takes at most this share of the time.
LEAST_S, SHARE = 1.0, 1 / 20
#: Letters of pages that are kept.
_KEPT = 30_000_000


class Known(NamedTuple):
    """Header and run are of one moment: a run that is under way is written again and again."""

    header: Header
    run: Run


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

    def look(self, progress: Progress | None = None) -> Index:
        """The index, as of a moment ago. Whoever comes while somebody looks waits for that look."""
        with self._lock:
            if time.monotonic() >= self._next:
                began = time.monotonic()
                self.index.refresh(progress)
                spent = time.monotonic() - began
                least = max(LEAST_S, self.index.place.interval / 3)  # object storage bills every listing
                self._next = time.monotonic() + max(least, spent / SHARE)
        return self.index

    def header(self, id: str) -> Header:
        # A space, so that an id that begins with a sign is no other sign; of ids that begin so, the exact one is first.
        for found in self.look().select([f"id= {id}"], sort="id", limit=1):
            if found.id == id:
                return found
        raise UnknownNameError(f"no run here has the id {id!r}; it may have been removed")

    def known(self, id: str) -> Known:
        header = self.header(id)
        return Known(header, load(header.path))

    def close(self) -> None:
        self.index.close()


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
