"""transformers' own Python tokenizers: the same work as the compiled ones."""

from bitwatt.registry import rule
from bitwatt.rules.tokenizers import encode

rule("transformers.tokenize", family="text")(encode)
