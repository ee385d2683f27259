"""What the graph counts by runs and columns, against counting plainly."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from ecphoryrag.recall.graph import Facts, graph
from ecphoryrag.recall.graph import _document_frequency as document_frequency


def facts_of(seed: int, documents: int) -> Facts:
    """Forty chunks, nine entities; with 40 documents each chunk is alone in its own."""
    random = np.random.default_rng(seed)
    mentioned = sp.csr_array((random.random((40, 9)) < 0.3).astype(np.float64))
    about = sp.csr_array(mentioned.toarray() * (random.random((40, 9)) < 0.5) * random.integers(1, 4, (40, 9)))
    of = np.sort(random.choice(documents, 40, replace=documents < 40)).astype(np.int32)
    return Facts(mentioned, about, of, np.ones(9), np.ones(9, np.int64))


@pytest.mark.parametrize("documents", [1, 7, 40])
def test_each_document_counts_once(documents: int) -> None:
    known = facts_of(1, documents)
    cells = known.mentioned.toarray()
    expected = [len({int(known.documents[at]) for at in np.flatnonzero(cells[:, entity])}) for entity in range(9)]
    assert document_frequency(known.mentioned, known.documents).tolist() == expected


@pytest.mark.parametrize("documents", [1, 7, 40])
def test_chunks_of_a_document_share_what_one_would_get(documents: int) -> None:
    known = facts_of(2, documents)
    made = graph(known)
    mentioned, about = known.mentioned.toarray(), known.about.toarray()
    for entity in range(9):
        chunks = np.flatnonzero(mentioned[:, entity]).tolist()
        parts = []
        for chunk in chunks:
            group = [one for one in chunks if about[one, entity] and known.documents[one] == known.documents[chunk]]
            most = max(1 + about[one, entity] for one in group) if about[chunk, entity] else 0
            parts.append(most / len(group) if about[chunk, entity] else 1.0)
        row = made.to_chunk.toarray()[entity]
        np.testing.assert_allclose(row[chunks], np.array(parts) / sum(parts) if parts else [])
    np.testing.assert_array_equal(made.to_entity_entry[made.to_chunk_entry], np.arange(known.mentioned.nnz))
    by_entity = known.mentioned.tocoo()
    pairs = np.column_stack((by_entity.row, by_entity.col))[made.to_entity_entry]
    assert pairs.tolist() == sorted(pairs.tolist(), key=lambda pair: (pair[1], pair[0]))
