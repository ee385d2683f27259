"""The lexical index: one tokenizer for what is indexed and for what is asked, and the index as matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.errors import StoreDamaged
from ecphoryrag.store import sql
from ecphoryrag.store.arrays import integers, positions_of
from ecphoryrag.text.terms import segment

TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2", "categories", "L* N* Co M*")
"""Porter stems over SQLite's Unicode words. ``M*`` keeps combining marks inside words: without it a Hindi word falls
apart at each vowel sign. Part of the store's format: a change needs a migration that indexes anew."""

VOCABULARIES = """
CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab('main', 'search', 'row');
CREATE VIRTUAL TABLE IF NOT EXISTS temp.occurrences USING fts5vocab('main', 'search', 'instance');
"""
"""What a reader's connection needs to see into the index."""


class Tokenizer:
    """Text to terms, exactly as the FTS5 index of a store does it."""

    def __init__(self, connection: apsw.Connection) -> None:
        name, *arguments = TOKENIZER
        self._tokenizer: Any = connection.fts5_tokenizer(name, arguments)

    def __call__(self, text: str) -> list[str]:
        """The terms of the text, in order, repeats kept."""
        data = segment(text).encode("utf-8", "replace")
        found: list[str] = self._tokenizer(
            data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )
        return found


@dataclass(frozen=True, slots=True)
class TermCounts:
    """The index as matrices: (n, t) float32 each."""

    terms: list[str]
    body: sp.csc_array
    title: sp.csc_array


def term_counts(connection: apsw.Connection, chunk_rows: NDArray[np.int64]) -> TermCounts:
    """Read the index; ``chunk_rows`` gives the order of the rows. Raises StoreDamaged if the index contradicts itself.

    Both vocabulary tables run through the index in the order of its terms, so the occurrences fall into the
    terms by their counts alone; reading the term of every occurrence would take eight times as long.
    """
    vocabulary = list(sql.rows(connection, "SELECT term, cnt FROM temp.vocabulary"))
    terms = [term for term, _ in vocabulary]
    totals = np.array([count for _, count in vocabulary], np.int64)
    places = integers(sql.rows(connection, "SELECT coalesce(doc * 2 + (col = 'title'), -1) FROM temp.occurrences"), 1)[
        :, 0
    ]
    if totals.sum() != len(places) or not np.isin(places // 2, chunk_rows).all():
        raise StoreDamaged("The store's lexical index is damaged; index the documents into a new store.")
    columns = np.repeat(np.arange(len(terms)), totals)
    rows = positions_of(places // 2, chunk_rows)
    shape = (len(chunk_rows), len(terms))
    in_title = places % 2 == 1
    return TermCounts(
        terms, _counted(rows[~in_title], columns[~in_title], shape), _counted(rows[in_title], columns[in_title], shape)
    )


def _counted(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> sp.csc_array:
    cells, counts = np.unique(columns * max(shape[0], 1) + rows, return_counts=True)
    columns, rows = np.divmod(cells, max(shape[0], 1))
    starts = np.searchsorted(columns, np.arange(shape[1] + 1))
    matrix = sp.csc_array((counts.astype(np.float32), rows.astype(np.int32), starts.astype(np.int32)), shape=shape)
    matrix.has_canonical_format = True
    return matrix
