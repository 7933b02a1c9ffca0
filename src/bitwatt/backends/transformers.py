"""The tokenizers that transformers runs in Python; its fast ones are seen in the tokenizers library."""

from __future__ import annotations

from transformers import PreTrainedTokenizer

from bitwatt.backends.text import TextWatch, characters_in


class TransformersWatch(TextWatch):
    """Watches the step from text to tokens that every call of a Python tokenizer goes through."""

    op = "transformers.tokenize"

    def start(self) -> None:
        owner = next(kind for kind in PreTrainedTokenizer.__mro__ if "tokenize" in kind.__dict__)
        self.patch(owner, "tokenize", lambda text, result: (1, characters_in(text), len(result)))
