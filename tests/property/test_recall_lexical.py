"""BM25 against its formula, and against SQLite's own at the same parameters."""

from __future__ import annotations

import math
from typing import Any

import apsw
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoryrag.recall.lexical import bm25_weights, inverse_frequency, lexical_index, term_columns, term_weights
from ecphoryrag.settings import FlatSettings
from tests.support.reference_view import ReferenceView, told

words = st.sampled_from(["harbour", "silver", "night", "river", "stone", "glass"])
lines = st.lists(words, max_size=8).map(" ".join)
corpora = st.lists(st.tuples(lines, lines), min_size=1, max_size=8)
TITLE_WEIGHT = 3.0
SQLITE_K1, SQLITE_B = 1.2, 0.75
SQLITE_LEAST = 1e-6


@given(corpora, st.lists(words, min_size=1, max_size=4))
def test_weights_follow_the_formula(corpus: list[tuple[str, str]], asked: list[str]) -> None:
    view = ReferenceView([told(f"{at:02}", f"{text} .", title=title) for at, (title, text) in enumerate(corpus)])
    parameters = FlatSettings()
    columns = term_columns(view.terms(" ".join(asked)), view.snapshot.terms)
    found = term_weights(lexical_index(view.snapshot, parameters), columns)
    counts = [
        [text.split().count(word) + parameters.title_weight * title.split().count(word) for title, text in corpus]
        for word in dict.fromkeys(asked)
    ]
    lengths = [len(text.split()) + parameters.title_weight * len(title.split()) for title, text in corpus]
    mean = sum(lengths) / len(lengths) or 1
    expected = []
    for row in counts:
        if not any(row):
            continue
        holding = sum(count > 0 for count in row)
        idf = math.log(1 + (len(corpus) - holding + 0.5) / (holding + 0.5))
        slow = [parameters.k1 * (1 - parameters.b + parameters.b * length / mean) for length in lengths]
        expected.append([idf * c * (parameters.k1 + 1) / (c + s) if c else 0.0 for c, s in zip(row, slow, strict=True)])
    np.testing.assert_allclose(found, np.array(expected).reshape(-1, len(corpus)), rtol=1e-5)


@settings(deadline=None)
@given(corpora.filter(lambda corpus: any(text for _, text in corpus)), words)
def test_agrees_with_sqlite_at_its_parameters(corpus: list[tuple[str, str]], asked: str) -> None:
    """SQLite measures length without column weights and has another idf; both are handed in here."""
    database = apsw.Connection(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(title, text)")
    database.executemany("INSERT INTO t VALUES (?, ?)", corpus)
    query = f"SELECT rowid - 1, -bm25(t, {TITLE_WEIGHT}, 1.0) FROM t WHERE t MATCH '{asked}'"
    scores: dict[Any, Any] = {row: score for row, score in database.execute(query)}  # noqa: C416 - it types
    counts = np.array(
        [[text.split().count(asked) + TITLE_WEIGHT * title.split().count(asked)] for title, text in corpus]
    )
    lengths = np.array([len(text.split()) + len(title.split()) for title, text in corpus], np.float64)
    holding = int((counts > 0).sum())
    idf = max(math.log((len(corpus) - holding + 0.5) / (holding + 0.5)), SQLITE_LEAST)
    ours = bm25_weights(sp.csc_array(counts), lengths, np.array([idf]), SQLITE_K1, SQLITE_B).toarray()[:, 0]
    assert {at: score for at, score in enumerate(ours.tolist()) if score} == pytest.approx(scores, rel=1e-5)


def test_inverse_frequency_is_never_negative() -> None:
    assert (inverse_frequency(np.arange(0, 11), 10) >= 0).all()
