"""Tokenizers: integer work on text, never floating-point."""

from typing import Any

from bitwatt.dtypes import dtype
from bitwatt.records import Work
from bitwatt.registry import rule


@rule("tokenizers.encode", family="text")
def encode(characters: int, tokens: int, **_: Any) -> Work:
    """One integer step for each character read and one for each token written; merges inside a word are not seen,
    so the amount is estimated. It is text work: FLOP models leave it out rather than call it 0."""
    steps = Work.of(dtype("int64").precision, text=characters + tokens)
    return Work(steps.ops, bytes_read=characters, bytes_written=8 * tokens, estimated=True)
