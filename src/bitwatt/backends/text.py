"""What tokenizer backends share: texts, characters and tokens summed by phase, since hardly two calls are alike."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from bitwatt.backends.harvest import Harvest
from bitwatt.context import Context, Token, current, phase_path
from bitwatt.ledger import Ledger
from bitwatt.records import Op

PHASE = "preprocess"
#: Where torch is watched, once it is.
TORCH = "bitwatt.backends.torch.watch"


class TextWatch:
    """Patches methods that turn text into tokens. A subclass says which, and how to measure a call."""

    op = ""
    has_workers = False

    def __init__(self) -> None:
        self.on = True
        self.sums: dict[tuple[Context, str], list[int]] = {}
        self.seconds: dict[Context, float] = {}
        self._undo: list[Callable[[], None]] = []

    def patch(self, owner: Any, method: str, measure: Callable[[Any, Any], tuple[int, int, int]]) -> None:
        """Let `measure(first argument, result)` give (texts, characters, tokens) after each call of owner.method."""
        original = owner.__dict__[method]

        def watched(tokenizer: Any, text: Any, *args: Any, **kwargs: Any) -> Any:
            context = current()
            if not self.on or context is None:
                return original(tokenizer, text, *args, **kwargs)
            torch_state = _torch_state()
            frame = torch_state.push(PHASE, type(tokenizer).__name__) if torch_state else None
            began = time.perf_counter()
            try:
                result = original(tokenizer, text, *args, **kwargs)
            finally:
                if torch_state:
                    torch_state.pop(frame)
                else:
                    self.seconds[context] = self.seconds.get(context, 0.0) + time.perf_counter() - began
            sums = self.sums.setdefault((context, type(tokenizer).__name__), [0, 0, 0])
            for i, n in enumerate(measure(text, result)):
                sums[i] += n
            return result

        watched.__name__, watched.__doc__ = method, original.__doc__
        setattr(owner, method, watched)
        self._undo.append(lambda: setattr(owner, method, original))

    def arrive(self) -> None:
        """A patch holds for every thread."""

    begin = leave = arrive

    def stop(self) -> None:
        self.on = False
        while self._undo:
            self._undo.pop()()

    def forget(self) -> None:
        self.on = False

    def collect(self, token: Token) -> Harvest:
        ledger, seconds = Ledger(), dict[str, float]()
        for context, scope in [key for key in self.sums if key[0].token is token]:
            texts, characters, tokens = self.sums.pop((context, scope))
            facts = (("texts", texts), ("characters", characters), ("tokens", tokens))
            ledger.add(phase_path(PHASE, context.phases, context.phases), scope, Op(self.op, facts))
        for context in [key for key in self.seconds if key.token is token]:
            phase = phase_path(PHASE, context.phases, context.phases)
            seconds[phase] = seconds.get(phase, 0.0) + self.seconds.pop(context)
        return Harvest(ledger, seconds)


def _torch_state() -> Any:
    """This thread's state where torch is being watched too: one clock must book the time, not two."""
    module = sys.modules.get(TORCH)
    if module is None:
        return None
    watch = getattr(module, "active", None)
    return watch.states.here if watch is not None and watch.on else None


def characters_in(text: Any) -> int:
    if isinstance(text, (str, bytes)):
        return len(text)
    return sum(map(characters_in, text)) if isinstance(text, (list, tuple)) else 0
