"""The watches of this process: started for the first session that opens, stopped by the last that closes."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable

from bitwatt import backends, context
from bitwatt.backends.harvest import Harvest, Watch
from bitwatt.imports import when_imported


class Watchers:
    """Backends by the name of their framework, each watching from the moment the program has imported it."""

    def __init__(self) -> None:
        self.sessions = 0
        self.held: set[str] = set()
        self.watches: dict[str, Watch] = {}
        self.listening: dict[str, Callable[[], None]] = {}
        #: Framework -> why it cannot be watched.
        self.troubles: dict[str, str] = {}
        self.lock = threading.RLock()

    def open(self) -> None:
        with self.lock:
            if not self.sessions:  # each is tried again
                self.troubles.clear()
            self.sessions += 1
            for watch in self.watches.values():
                watch.arrive()
            self._listen(backends.FRAMEWORKS)

    def begin(self) -> None:
        """The session that was opened begins now."""
        for watch in list(self.watches.values()):
            watch.begin()

    def hold(self, *frameworks: str) -> None:
        """Watch these for as long as the process lives: the tasks of a worker are many, and short."""
        with self.lock:
            self.held.update(frameworks)
            self._listen(frameworks)

    def close(self) -> None:
        with self.lock:
            self.sessions -= 1
            for watch in self.watches.values():
                watch.leave()
            self._rest()

    def release(self) -> None:
        """Hold nothing any more."""
        with self.lock:
            self.held.clear()
            self._rest()

    def _rest(self) -> None:
        """Stop what nobody needs now."""
        if self.sessions:
            return
        for name in self.listening.keys() - self.held:
            self.listening.pop(name)()
        for name in reversed([name for name in self.watches if name not in self.held]):
            self.watches.pop(name).stop()

    def harvest(self, token: context.Token) -> list[Harvest]:
        return [watch.collect(token) for watch in list(self.watches.values())]

    def snapshot(self, token: context.Token) -> list[Harvest]:
        """The same without taking it, from those backends that can tell while others count."""
        return [watch.snapshot(token) for watch in list(self.watches.values()) if hasattr(watch, "snapshot")]

    def forget(self) -> None:
        """In a forked child: the parent reports, and sessions opened here are new ones."""
        for stop in self.listening.values():
            stop()
        while self.watches:
            _, watch = self.watches.popitem()
            watch.forget()
            watch.stop()
        self.listening.clear()
        self.held.clear()
        self.sessions = 0
        self.lock = threading.RLock()
        context.forget_all()

    def _listen(self, frameworks: Iterable[str]) -> None:
        for name in frameworks:
            if name not in self.listening:
                self.listening[name] = when_imported(name, self._starter(name))

    def _starter(self, framework: str) -> Callable[[], None]:
        def start() -> None:
            watch: Watch | None = None
            try:
                watch = backends.watch(framework)
                watch.start()
                for _ in range(self.sessions):  # those that were open before the framework was imported
                    watch.arrive()
            except Exception as error:
                if watch is not None:  # nothing of it may stay where it has been hung in
                    watch.forget()
                    watch.stop()
                self.troubles[framework] = f"{framework} cannot be watched: {type(error).__name__}: {error}"
                warnings.warn(f"bitwatt: {self.troubles[framework]}", stacklevel=2)
            else:
                self.watches[framework] = watch

        return start


WATCHERS = Watchers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WATCHERS.forget)
