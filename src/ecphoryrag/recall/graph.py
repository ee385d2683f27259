"""The graph that activation walks, derived from a snapshot's facts: who is mentioned where, and what is about whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.settings.recall import AboutSettings
from ecphoryrag.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Facts:
    """What the graph is made of: n chunks, m entities. Rows may be left out; ``rarity`` stays that of the store."""

    mentioned: sp.csr_array
    """(n, m) float64, ones: text or title of the chunk names the entity, by this name, a linked one or an alias."""
    about: sp.csr_array
    """(n, m) float64: parts more that the entity passes to the chunk because it is about it; a subset of the above."""
    documents: NDArray[np.int32]
    """(n,) document of each chunk."""
    rarity: NDArray[np.float64]
    """(m,) log(1 + documents / documents that mention the entity)."""
    frequency: NDArray[np.int64]
    """(m,) documents that mention the entity."""

    def rows(self, positions: NDArray[np.int64]) -> Facts:
        """As if only these chunks existed, corpus statistics aside."""
        return Facts(
            self.mentioned[positions], self.about[positions], self.documents[positions], self.rarity, self.frequency
        )


@dataclass(frozen=True, slots=True)
class Graph:
    """Facts as two matrices whose rows are shares. n chunks, m entities, p pairs of a chunk about an entity.

    Chunks of one document that are about one entity form a group: the entity passes to the group what it would pass
    to one chunk, and the chunks share it by their fit to the question (:func:`to_chunk`).
    """

    facts: Facts
    mentioned: NDArray[np.bool_]
    """(m,) whether any of the chunks mentions the entity."""
    to_entity: sp.csr_array
    """(n, m) float64: each row in proportion to rarity, sum 1."""
    to_chunk: sp.csr_array
    """(m, n) float64: each row sums to 1 if groups are shared evenly."""
    to_entity_entry: NDArray[np.int64]
    """Of each entry of ``to_chunk``, where the same pair stands in ``to_entity.data``."""
    to_chunk_entry: NDArray[np.int64]
    """The reverse."""
    grouped: NDArray[np.int64]
    """(p,) where in ``to_chunk.data`` the pairs stand that share with others."""
    groups: NDArray[np.int64]
    """(p,) group of each such pair, from 0."""
    totals: NDArray[np.float64]
    """What each group receives of its entity's row."""


def facts(snapshot: Snapshot, settings: AboutSettings) -> Facts:
    """Counts become ones, kinds become weights, aliases become mentions of one another."""
    mentioned = _ones(snapshot.mentions + snapshot.linked)
    if len(snapshot.aliases):
        one, other = snapshot.aliases[:, 0], snapshot.aliases[:, 1]
        m = mentioned.shape[1]
        same = sp.csr_array((np.ones(len(one)), (one, other)), shape=(m, m))
        mentioned = _ones(mentioned + mentioned @ (same + same.T))
    weights = np.array([0, settings.title, settings.heading, settings.subject, settings.frequent], np.float64)
    about = sp.csr_array(
        (weights[snapshot.about.data], snapshot.about.indices, snapshot.about.indptr), shape=snapshot.about.shape
    ) + _short_forms(snapshot, settings.short_form)
    about.eliminate_zeros()
    mentioned = _ones(mentioned + _ones(about))
    total = len(snapshot.document_ids)
    frequency = _document_frequency(mentioned, snapshot.chunk_documents)
    rarity = np.log1p(total / np.maximum(frequency, 1))
    return Facts(mentioned, about, snapshot.chunk_documents, rarity, frequency)


def graph(known: Facts) -> Graph:
    """The matrices of these facts, groups shared evenly."""
    n, m = known.mentioned.shape
    by_entity = known.mentioned.tocsc()  # each column's chunks ascend, and columns are put in order in linear time
    places = sp.csr_array((np.arange(by_entity.nnz), known.mentioned.indices, known.mentioned.indptr), shape=(n, m))
    order = places.tocsc().data
    chunks = by_entity.indices.astype(np.int64)
    entities = np.repeat(np.arange(m), np.diff(by_entity.indptr))
    parts = np.ones(len(order)) + _aligned(known.about, known.mentioned)[order]
    is_about = parts > 1
    pair_groups = _groups(known.documents[chunks[is_about]], entities[is_about])
    sizes = np.bincount(pair_groups)
    most = np.zeros(len(sizes))
    np.maximum.at(most, pair_groups, parts[is_about])
    parts[is_about] = most[pair_groups] / sizes[pair_groups]
    passed = np.bincount(entities, weights=parts, minlength=m)
    data = parts / passed[entities]
    shared = sizes[pair_groups] > 1
    grouped = np.flatnonzero(is_about)[shared]
    kept, groups = np.unique(pair_groups[shared], return_inverse=True)
    return Graph(
        facts=known,
        mentioned=passed > 0,
        to_entity=_rows_to_one(_weighted(known.mentioned, known.rarity)),
        to_chunk=sp.csr_array((data, by_entity.indices, by_entity.indptr), shape=(m, n)),
        to_entity_entry=order,
        to_chunk_entry=_inverse(order),
        grouped=grouped,
        groups=groups.astype(np.int64),
        totals=np.bincount(groups, weights=data[grouped], minlength=len(kept)).astype(np.float64),
    )


def to_chunk(known: Graph, fit: NDArray[np.float64], sharpness: float) -> sp.csr_array:
    """(m, n): ``known.to_chunk`` with each group shared by the softmax of its chunks' ``fit`` (n,) to the question."""
    if not len(known.grouped):
        return known.to_chunk
    values = sharpness * fit[known.to_chunk.indices[known.grouped]]
    highest = np.full(len(known.totals), -np.inf)
    np.maximum.at(highest, known.groups, values)
    shares = np.exp(values - highest[known.groups])
    shares /= np.bincount(known.groups, weights=shares)[known.groups]
    data = known.to_chunk.data.copy()
    data[known.grouped] = shares * known.totals[known.groups]
    return sp.csr_array((data, known.to_chunk.indices, known.to_chunk.indptr), shape=known.to_chunk.shape)


def _short_forms(snapshot: Snapshot, weight: float) -> sp.csr_array:
    """(n, m) ``weight`` where a chunk is about an entity by the short form of the name it is about."""
    found = snapshot.short_forms
    return sp.csr_array((np.full(found.nnz, weight), found.indices, found.indptr), shape=found.shape)


def _inverse(order: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.empty(len(order), np.int64)
    found[order] = np.arange(len(order))
    return found


def _ones(matrix: sp.csr_array) -> sp.csr_array:
    found = matrix.astype(np.float64)
    found.sum_duplicates()
    found.eliminate_zeros()
    return sp.csr_array((np.ones(found.nnz), found.indices, found.indptr), shape=found.shape)


def _weighted(ones: sp.csr_array, columns: NDArray[np.float64]) -> sp.csr_array:
    return sp.csr_array((columns[ones.indices], ones.indices, ones.indptr), shape=ones.shape)


def _rows_to_one(found: sp.csr_array) -> sp.csr_array:
    totals = np.add.reduceat(found.data, found.indptr[:-1][np.diff(found.indptr) > 0]) if found.nnz else np.zeros(0)
    lengths = np.diff(found.indptr)
    data = found.data / np.repeat(totals, lengths[lengths > 0])
    return sp.csr_array((data, found.indices, found.indptr), shape=found.shape)


def _aligned(part: sp.csr_array, whole: sp.csr_array) -> NDArray[np.float64]:
    """Values of ``part`` at the places of ``whole``'s entries, 0 where it has none; its places are a subset."""
    m = whole.shape[1]

    def places(matrix: sp.csr_array) -> NDArray[np.int64]:
        rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
        return rows * m + matrix.indices

    values = np.zeros(whole.nnz)
    if part.nnz:
        part = part.sorted_indices()
        values[np.searchsorted(places(whole), places(part))] = part.data
    return values


def _groups(documents: NDArray[np.int32], entities: NDArray[np.int64]) -> NDArray[np.int64]:
    """(p,) number of the (entity, document) that each pair belongs to, from 0; the pairs are in that order."""
    new = np.ones(len(entities), np.int64)
    new[1:] = (entities[1:] != entities[:-1]) | (documents[1:] != documents[:-1])
    return np.cumsum(new) - 1


def _document_frequency(mentioned: sp.csr_array, documents: NDArray[np.int32]) -> NDArray[np.int64]:
    """(m,) in how many documents each entity is mentioned; ``documents`` (n,) ascend.

    A chunk that is all of its document counts as it is; only where a document has several are pairs told apart. Not by
    `numpy.unique`, whose hash table takes ten seconds for a million pairs of few documents and entities.
    """
    m = mentioned.shape[1]
    lengths = np.diff(mentioned.indptr)
    same = documents[1:] == documents[:-1]
    shared = np.append(same, False) | np.insert(same, 0, False)
    in_shared = np.repeat(shared, lengths)
    owners = np.repeat(documents, lengths)[in_shared].astype(np.int64)
    pairs = owners * m + mentioned.indices[in_shared]
    pairs.sort()
    once = np.ones(len(pairs), np.bool_)
    once[1:] = pairs[1:] != pairs[:-1]
    alone = np.bincount(mentioned.indices[~in_shared], minlength=m)
    return np.asarray(alone + np.bincount(pairs[once] % max(m, 1), minlength=m), np.int64)
