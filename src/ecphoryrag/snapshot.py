"""One generation of a store as arrays: what recall computes on. Facts only; every weight is derived from them later.

Rows are ordered by document id and ordinal, columns by key, so that equal contents give equal arrays whatever the
order in which documents were added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

ABOUT_KINDS = ("title", "heading", "subject", "frequent")
"""``Snapshot.about`` holds 1 + the position here, the first that holds for a pair."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """n chunks, m entities, t terms, d dimensions."""

    generation: int
    document_ids: Sequence[str]
    """Sorted."""
    chunk_documents: NDArray[np.int32]
    """(n,) position in ``document_ids`` of each chunk's document; ascending."""
    chunk_rows: NDArray[np.int64]
    """(n,) the store's own row number of each chunk, to fetch it by."""
    entity_keys: Sequence[str]
    """(m) sorted."""
    entity_positions: Mapping[str, int]
    """Key to position in ``entity_keys``. Where names were merged or split, several keys may lead to one position."""
    mentions: sp.csr_array
    """(n, m) float32: how often the chunk's text or its document's title names the entity."""
    about: sp.csr_array
    """(n, m) int8: kind code of the pairs in which the chunk is about the entity; see ``ABOUT_KINDS``."""
    linked: sp.csr_array
    """(n, m) float32, ones: the chunk's text contains the name, which only other documents (by their title) know."""
    short_forms: sp.csr_array
    """(n, m) float32, ones: the entity is the short form of a name that the chunk is about, and neither a title nor
    what the chunk is about already."""
    aliases: NDArray[np.int32]
    """(a, 2) pairs of entities that some text says are one thing."""
    terms: Mapping[str, int]
    """Term of the lexical index to its column."""
    term_counts: sp.csc_array
    """(n, t) float32: occurrences of the term in the chunk's text."""
    title_term_counts: sp.csc_array
    """(n, t) float32: occurrences of the term in the title of the chunk's document."""
    vectors: NDArray[np.float32]
    """(n, d) rows of unit length, or zero rows for texts without a token; (n, 0) with the encoder ``none``."""
    names: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Of entities that are merged or split off, by position, the keys by which texts name them, sorted. All others are
    named by their key."""

    def names_of(self, entity: int) -> Sequence[str]:
        """The keys by which texts name the entity at this position."""
        return self.names.get(entity) or (self.entity_keys[entity],)

    @property
    def chunk_count(self) -> int:
        """n."""
        return len(self.chunk_rows)
