"""Server-sent events: one task looks for all who listen, and only while somebody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from bitwatt.errors import BitwattError

#: Listeners at once; seconds after which a silent line is kept open by a comment.
MOST, KEEP_S = 200, 15.0


class Stream:
    """`look` gives what there is now, as text of one line, and `pause` the seconds until the next look."""

    def __init__(self, look: Callable[[], str], pause: Callable[[], float]) -> None:
        self._look, self._pause = look, pause
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._last = ""

    @property
    def is_full(self) -> bool:
        return len(self._listeners) >= MOST

    async def events(self) -> AsyncIterator[str]:
        queue: asyncio.Queue[str | None] = asyncio.Queue(1)
        self._listeners.add(queue)
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._run())
            elif self._last:
                queue.put_nowait(self._last)
            yield "retry: 2000\n\n"
            while True:
                try:
                    text = await asyncio.wait_for(queue.get(), KEEP_S)
                except TimeoutError:
                    yield ": nothing new\n\n"
                    continue
                if text is None:
                    return
                yield f"data: {text}\n\n"
        finally:
            self._listeners.discard(queue)

    async def _run(self) -> None:
        self._last = ""
        while self._listeners:
            with suppress(BitwattError, OSError):  # the store cannot be read just now
                text = await asyncio.to_thread(self._look)
                if text != self._last:
                    self._last = text
                    self._tell(text)
            await asyncio.sleep(self._pause())

    def _tell(self, text: str | None) -> None:
        for queue in self._listeners:
            if queue.full():  # a slow listener gets the newest
                queue.get_nowait()
            queue.put_nowait(text)

    async def close(self) -> None:
        """Let go of all who listen."""
        self._tell(None)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
