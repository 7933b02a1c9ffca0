"""Texts that are not English, in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from bitwatt.deploy.given import estimators, loading
from bitwatt.deploy.making import converting

#: Words with letters beyond ASCII, two that are one without them, and words of one letter between others.
WORDS = ["über", "ber", "café", "caf", "стол", "日本", "x", "chair", "x1", "snake_case", "½"]


@pytest.mark.parametrize(
    "vectoriser",
    [
        TfidfVectorizer(),
        CountVectorizer(ngram_range=(1, 2)),
        TfidfVectorizer(lowercase=False),
        CountVectorizer(token_pattern="[a-z]+"),
    ],
)
def test_a_graph_finds_the_words_that_the_model_finds(vectoriser: Any) -> None:
    draw = np.random.default_rng(0)
    texts = [" ".join(draw.choice(WORDS, 6)) for _ in range(200)]
    labels = np.array(["über" in text for text in texts])
    model = make_pipeline(vectoriser, LogisticRegression()).fit(texts, labels)
    case = loading.case(model, texts, labels)
    made = converting.convert(case)
    native = estimators.answer(model, case.method, texts)
    np.testing.assert_allclose(converting._run(made, texts), native, atol=1e-5)
