"""Tokenizers: characters in, tokens out, integer work in `preprocess`, and never a FLOP count of 0."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import bitwatt
from backends.measuring import measured


@pytest.fixture
def tokenizer() -> Tokenizer:
    made = Tokenizer(models.WordLevel({"to": 0, "be": 1, "or": 2, "[UNK]": 3}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def facts(run: bitwatt.Run, op: str) -> dict[str, int]:
    (row,) = [row for row in run.ledger if row.op.name == op]
    assert row.phase == "preprocess"
    return dict(row.op.args)


def test_texts_characters_and_tokens_are_summed(tokenizer: Tokenizer) -> None:
    def encode() -> None:
        tokenizer.encode("to be")
        tokenizer.encode_batch(["or not", "to be or"])

    run = measured(encode)
    assert facts(run, "tokenizers.encode") == {"texts": 3, "characters": 5 + 6 + 8, "tokens": 2 + 2 + 3}
    assert run.phase_seconds["preprocess"] > 0


def test_text_is_no_floating_point_work(tokenizer: Tokenizer) -> None:
    run = measured(lambda: tokenizer.encode("to be"))
    flops = bitwatt.totals(run, "flops")
    assert flops.by("phase") == {}  # left out, not 0
    assert flops.coverage.counted == flops.coverage.estimated == 1
    assert "preprocess" in bitwatt.report(run)


def test_fast_tokenizers_of_transformers_are_seen_once(tokenizer: Tokenizer) -> None:
    from transformers import PreTrainedTokenizerFast

    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[UNK]")
    run = measured(lambda: fast(["to be", "or"]))
    assert facts(run, "tokenizers.encode") == {"texts": 2, "characters": 7, "tokens": 3}


def test_python_tokenizers_of_transformers_are_seen() -> None:
    from transformers import PreTrainedTokenizer

    class Letters(PreTrainedTokenizer):
        def __init__(self) -> None:
            self.letters = {chr(97 + i): i for i in range(26)}
            super().__init__(unk_token="a")

        vocab_size = 26

        def get_vocab(self) -> dict[str, int]:
            return dict(self.letters)

        def _tokenize(self, text: str, **_: object) -> list[str]:
            return list(text)

        def _convert_token_to_id(self, token: str) -> int:
            return self.letters.get(token, 0)

        def _convert_id_to_token(self, index: int) -> str:
            return chr(97 + index)

    letters = Letters()
    assert facts(measured(lambda: letters("hello")), "transformers.tokenize")["characters"] == 5


def test_the_tokenizers_are_as_before(tokenizer: Tokenizer) -> None:
    before = Tokenizer.encode, Tokenizer.encode_batch
    measured(lambda: tokenizer.encode("to"))
    assert (Tokenizer.encode, Tokenizer.encode_batch) == before
