"""Hugging Face's tokenizers library, and with it the fast tokenizers of transformers."""

from __future__ import annotations

from typing import Any

from tokenizers import Tokenizer

from bitwatt.backends.text import TextWatch, characters_in


class TokenizersWatch(TextWatch):
    """Watches the compiled tokenizer itself, below every wrapper."""

    op = "tokenizers.encode"

    def start(self) -> None:
        self.patch(Tokenizer, "encode", lambda text, result: (1, characters_in(text), len(result)))
        for method in ("encode_batch", "encode_batch_fast"):
            if method in Tokenizer.__dict__:
                self.patch(Tokenizer, method, _batch)


def _batch(texts: Any, results: Any) -> tuple[int, int, int]:
    return len(results), characters_in(texts), sum(map(len, results))
