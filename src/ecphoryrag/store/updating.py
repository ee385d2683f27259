"""A snapshot brought up to date: what a few changed documents change, instead of all rows read again.

What comes out equals what :func:`ecphoryrag.store.snapshots.build_snapshot` makes of the same state, value by value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import apsw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store import sql
from ecphoryrag.store.arrays import HALF, integers, positions_of
from ecphoryrag.store.forms import FREQUENT_CODE, find_short_forms, titles_of
from ecphoryrag.store.lexical import Tokenizer
from ecphoryrag.store.linking import FEWEST_WORDS, MOST_WORDS, NOT_NAMES, find_linked, may_hold
from ecphoryrag.store.resolving import read_resolution
from ecphoryrag.store.snapshots import read_aliases
from ecphoryrag.store.splicing import GONE, Names, counted_cells, matrix_of, moved_cells, renamed, spliced
from ecphoryrag.text.keys import is_linkable, normal_words
from ecphoryrag.text.short_forms import HONORIFICS, short_forms
from ecphoryrag.vectors import unit_rows

Cells = NDArray[np.int64]

_FRESH_MENTIONS = """
SELECT m.chunk, e.key, m.about FROM mentions m JOIN entities e ON e.row = m.entity
WHERE m.chunk IN (SELECT value FROM json_each(?))
"""
_FRESH_TEXTS = """
SELECT c.row, d.title, d.text, c.start, c.stop, c.vector FROM chunks c JOIN documents d ON d.row = c.document
WHERE c.row IN (SELECT value FROM json_each(?))
"""
_NAMES = """
SELECT key FROM entities e WHERE key IN (SELECT value FROM json_each(?1)) AND EXISTS (
    SELECT 1 FROM mentions WHERE entity = e.row AND chunk NOT IN (SELECT value FROM json_each(?2))
    AND (about = 1 OR (about IN (2, 3) AND type NOT IN (SELECT value FROM json_each(?3))))
)
"""


@dataclass(frozen=True, slots=True)
class _Text:
    """A fresh chunk: position, title and text."""

    at: int
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the chunks are. n chunks now, o chunks of the former state."""

    document_ids: list[str]
    chunk_rows: NDArray[np.int64]
    """(n,)"""
    chunk_documents: NDArray[np.int32]
    """(n,)"""
    fresh: NDArray[np.bool_]
    """(n,) whether the chunk is of a changed document."""
    former: NDArray[np.int64]
    """(o,) the position now of each former chunk, or ``GONE``."""

    @property
    def fresh_rows(self) -> str:
        """Their rows, as JSON."""
        return json.dumps(self.chunk_rows[self.fresh].tolist())

    @property
    def count(self) -> int:
        """n."""
        return len(self.chunk_rows)


def update_snapshot(
    connection: apsw.Connection, base: Snapshot, changed: frozenset[int], generation: int
) -> Snapshot | None:
    """The snapshot of what the connection's open transaction sees.

    ``base`` is that of a former state, since when only the documents in the rows ``changed`` were added, changed or
    removed. None where that does not fit, or where decisions about names are in force: then it must be built.
    """
    if base.names or len(base.entity_positions) != len(base.entity_keys) or read_resolution(connection) is not None:
        return None
    places = _placed(connection, base, changed)
    return None if places is None else _Update(connection, base, places).snapshot(generation)


def _placed(connection: apsw.Connection, base: Snapshot, changed: frozenset[int]) -> _Places | None:
    documents = list(sql.rows(connection, "SELECT id, row FROM documents ORDER BY id"))
    rows = np.array([row for _, row in documents], np.int64)
    chunks = integers(
        sql.rows(
            connection, "SELECT c.row, document FROM chunks c JOIN documents d ON d.row = document ORDER BY id, ordinal"
        ),
        2,
    )
    fresh = np.isin(chunks[:, 1], np.array(sorted(changed), np.int64))
    same = {id_ for id_, row in documents if row not in changed}
    stay = np.array([id_ in same for id_ in base.document_ids], np.bool_)[base.chunk_documents]
    if not np.array_equal(base.chunk_rows[stay], chunks[~fresh, 0]):
        return None
    former = np.full(base.chunk_count, GONE, np.int64)
    former[stay] = np.flatnonzero(~fresh)
    of = positions_of(chunks[:, 1], rows).astype(np.int32)
    return _Places([id_ for id_, _ in documents], chunks[:, 0], of, fresh, former)


class _Update:
    """One update; n chunks, m entities and t terms now."""

    def __init__(self, connection: apsw.Connection, base: Snapshot, places: _Places) -> None:
        self._connection = connection
        self._base = base
        self._places = places
        found = sql.rows(connection, _FRESH_MENTIONS, (places.fresh_rows,))
        at = {int(places.chunk_rows[one]): int(one) for one in np.flatnonzero(places.fresh)}
        mentions = [(at[chunk], key, about) for chunk, key, about in found]
        gone = places.former == GONE
        of_gone = np.repeat(gone, np.diff(base.mentions.indptr))
        stay = np.bincount(base.mentions.indices[~of_gone], minlength=len(base.entity_keys)).astype(np.bool_)
        met = {key for _, key, _ in mentions}
        stay[[base.entity_positions[key] for key in met if key in base.entity_positions]] = True
        former = base.entity_positions
        self._entities: Names = renamed(base.entity_keys, stay, (key for key in met if key not in former))
        keys = self._entities.names
        self._positions = dict(zip(keys, range(len(keys)), strict=True))
        self._mentions = [(chunk, self._positions[key], about) for chunk, key, about in mentions]
        touched = np.array(sorted(set(base.mentions.indices[of_gone].tolist())), np.int64)
        left = self._entities.places[touched]
        self._touched = {entity for _, entity, _ in self._mentions} | set(left[left != GONE].tolist())
        """Entities that changed documents mention or mentioned."""
        self._shape = places.count, len(keys)

    def snapshot(self, generation: int) -> Snapshot:
        """All of it."""
        places, base, keys = self._places, self._base, self._entities.names
        texts, vectors = self._texts()
        mentions = self._mentioned()
        about = self._about()
        terms, body, title = self._terms(texts)
        return Snapshot(
            generation=generation,
            document_ids=places.document_ids,
            chunk_documents=places.chunk_documents,
            chunk_rows=places.chunk_rows,
            entity_keys=keys,
            entity_positions=self._positions,
            mentions=mentions,
            about=about,
            linked=self._ones(self._linked(texts, mentions)),
            short_forms=self._ones(self._short_forms(about)),
            aliases=read_aliases(self._connection, self._positions),
            terms={term: column for column, term in enumerate(terms)},
            term_counts=body,
            title_term_counts=title,
            vectors=self._vectors(base.vectors, vectors),
        )

    def _texts(self) -> tuple[list[_Text], NDArray[np.float16]]:
        """The fresh chunks and their vectors, in order."""
        rows = sql.rows(self._connection, _FRESH_TEXTS, (self._places.fresh_rows,))
        found = {row: (title, text[start:stop], vector) for row, title, text, start, stop, vector in rows}
        texts, vectors = [], []
        for at in np.flatnonzero(self._places.fresh).tolist():
            title, text, vector = found[int(self._places.chunk_rows[at])]
            texts.append(_Text(at, title, text))
            vectors.append(vector)
        return texts, np.frombuffer(b"".join(vectors), HALF).reshape(len(texts), self._base.vectors.shape[1])

    def _vectors(self, former: NDArray[np.float32], fresh: NDArray[np.float16]) -> NDArray[np.float32]:
        made = np.empty((self._places.count, former.shape[1]), np.float32)
        made[~self._places.fresh] = former[self._places.former != GONE]
        made[self._places.fresh] = unit_rows(fresh)
        return made

    def _moved(self, matrix: sp.csr_array) -> tuple[Cells, NDArray[np.generic]]:
        return moved_cells(matrix, self._places.former, self._entities.places, self._shape[1])

    def _ones(self, codes: Cells) -> sp.csr_array:
        return matrix_of(sp.csr_array, (codes, np.ones(len(codes))), self._shape, np.float32)

    def _mentioned(self) -> sp.csr_array:
        fresh = counted_cells(chunk * self._shape[1] + entity for chunk, entity, _ in self._mentions)
        return matrix_of(sp.csr_array, spliced(self._moved(self._base.mentions), fresh), self._shape, np.float32)

    def _about(self) -> sp.csr_array:
        kinds: dict[int, int] = {}
        for chunk, entity, about in self._mentions:
            if about:
                code = chunk * self._shape[1] + entity
                kinds[code] = min(about, kinds.get(code, about))
        codes = sorted(kinds)
        fresh = np.array(codes, np.int64), np.array([kinds[code] for code in codes], np.int8)
        return matrix_of(sp.csr_array, spliced(self._moved(self._base.about), fresh), self._shape, np.int8)

    def _linked(self, texts: Sequence[_Text], mentions: sp.csr_array) -> Cells:
        """Names whose standing may have changed are looked for everywhere, all others in the fresh chunks alone."""
        keys = self._entities.names
        named = self._names((keys[entity] for entity in self._touched), "[]")
        before = self._names((keys[entity] for entity in self._touched), self._places.fresh_rows)
        unknown = {self._positions[key] for key in named - before}
        lost = self._touched - {self._positions[key] for key in named}
        kept, _ = self._moved(self._base.linked)
        anew = np.array(sorted(unknown | lost), np.int64)
        kept = kept[~np.isin(kept % max(self._shape[1], 1), anew)]
        found = {code for code, _ in self._said(texts, mentions)} | self._elsewhere(unknown, mentions)
        return np.union1d(kept, np.array(sorted(found), np.int64)).astype(np.int64)

    def _names(self, keys: Iterable[str], besides: str) -> set[str]:
        """Which of these are names that texts may be linked by, for what mentions outside the chunks ``besides``."""
        found = sql.rows(self._connection, _NAMES, (json.dumps(sorted(keys)), besides, json.dumps(NOT_NAMES)))
        return {key for (key,) in found}

    def _said(self, texts: Sequence[_Text], mentions: sp.csr_array) -> list[tuple[int, str]]:
        """Cells of the fresh chunks and the known names that their texts hold without a mention."""
        found: dict[int, str] = {}
        for one in texts:
            held = set(mentions.indices[mentions.indptr[one.at] : mentions.indptr[one.at + 1]].tolist())
            words = [word.norm for word in normal_words(one.text)]
            for length in range(FEWEST_WORDS, MOST_WORDS + 1):
                for start in range(len(words) - length + 1):
                    key = " ".join(words[start : start + length])
                    entity = self._positions.get(key)
                    if entity is not None and entity not in held and is_linkable(key):
                        found[one.at * self._shape[1] + entity] = key
        names = self._names(set(found.values()), "[]")
        return [(code, key) for code, key in found.items() if key in names]

    def _elsewhere(self, entities: set[int], mentions: sp.csr_array) -> set[int]:
        """Cells of the other chunks that hold these names without a mention."""
        keys = self._entities.names
        names = {at: keys[at] for at in entities if FEWEST_WORDS <= len(keys[at].split(" ")) <= MOST_WORDS}
        if not names:
            return set()
        rows, words = [], []
        for row, blob in sql.rows(self._connection, "SELECT row, words FROM chunks"):
            rows.append(row)
            words.append(blob)
        held = np.flatnonzero(may_hold(names.values(), words))
        order = np.argsort(self._places.chunk_rows)
        places = order[np.searchsorted(self._places.chunk_rows[order], np.array(rows, np.int64)[held])]
        there = {int(place): words[at] for place, at in zip(places, held.tolist(), strict=True)}
        chunks = [place for place in sorted(there) if not self._places.fresh[place]]

        def mentioned(pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
            return np.array([bool(mentions[chunks[chunk], entity]) for chunk, entity in pairs.tolist()], np.bool_)

        def texts(positions: Iterable[int]) -> Iterator[tuple[int, str]]:
            for position in positions:
                row = int(self._places.chunk_rows[chunks[position]])
                query = "SELECT text, start, stop FROM chunks c JOIN documents d ON d.row = document WHERE c.row = ?"
                text, start, stop = sql.one(self._connection, query, (row,))
                yield position, text[start:stop]

        found = find_linked(names, [there[chunk] for chunk in chunks], mentioned, texts)
        return {chunks[chunk] * self._shape[1] + entity for chunk, entity in found.tolist()}

    def _short_forms(self, about: sp.csr_array) -> Cells:
        """Of fresh chunks, and of those about a name of which a form is new, gone, or a title now or no more."""
        rows = self._places.fresh.copy()
        rows[self._about_any(about, self._turned(about))] = True
        some = np.flatnonzero(rows)
        keys, m = self._entities.names, self._shape[1]
        cells = find_short_forms(about[some], lambda entity: (keys[entity],), self._positions, titles_of(about))
        fresh = some[cells[:, 0]] * m + cells[:, 1]
        kept, _ = self._moved(self._base.short_forms)
        kept = kept[~rows[kept // max(m, 1)]]
        return np.sort(np.concatenate((kept, fresh)))

    def _turned(self, about: sp.csr_array) -> set[str]:
        """Keys that are new, gone, or a title now or no more."""
        keys, former = self._entities.names, self._base.entity_keys
        places = self._entities.places
        titles = set(titles_of(about).tolist())
        before = {int(places[at]) for at in titles_of(self._base.about)}
        turned = {keys[at] for at in titles ^ (before - {GONE})}
        there = np.zeros(len(keys), np.bool_)
        there[places[places != GONE]] = True
        turned.update(keys[at] for at in np.flatnonzero(~there).tolist())
        turned.update(former[at] for at in np.flatnonzero(places == GONE).tolist())
        return turned

    def _about_any(self, about: sp.csr_array, forms: set[str]) -> NDArray[np.int64]:
        """The chunks that are about a name of which one of these is a short form."""
        keys = self._entities.names
        named = np.flatnonzero(np.bincount(about.indices[about.data != FREQUENT_CODE], minlength=self._shape[1]))
        split = [form.split() for form in forms if form.strip()]
        firsts, lasts = {words[0] for words in split}, {words[-1] for words in split}
        found = []
        for entity in named.tolist():
            words = keys[entity].split()
            if len(words) < 3:
                continue
            first = words[1] if words[0] in HONORIFICS else words[0]
            likely = words[-1] in lasts or first in firsts or words[0] in firsts
            if likely and not forms.isdisjoint(short_forms(keys[entity])):
                found.append(entity)
        chunks = np.repeat(np.arange(about.shape[0]), np.diff(about.indptr))
        return chunks[np.isin(about.indices, np.array(found, np.int64))]

    def _terms(self, texts: Sequence[_Text]) -> tuple[Sequence[str], sp.csc_array, sp.csc_array]:
        """The terms in order, and counts of texts and titles."""
        tokenizer = Tokenizer(self._connection)
        said = [(one.at, (tokenizer(one.text), tokenizer(one.title))) for one in texts]
        base, places = self._base, self._places
        stay = np.zeros(len(base.terms), np.bool_)
        for matrix in (base.term_counts, base.title_term_counts):
            lines = np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))
            stay[lines[places.former[matrix.indices] != GONE]] = True
        met = {term for _, fields in said for terms in fields for term in terms}
        stay[[base.terms[term] for term in met if term in base.terms]] = True
        known = renamed(list(base.terms), stay, (term for term in met if term not in base.terms))
        columns = {term: column for column, term in enumerate(known.names)}
        n, shape = places.count, (places.count, len(known.names))
        matrices = []
        for number, matrix in enumerate((base.term_counts, base.title_term_counts)):
            fresh = counted_cells(columns[term] * n + at for at, fields in said for term in fields[number])
            kept = moved_cells(matrix, known.places, places.former, n)
            matrices.append(matrix_of(sp.csc_array, spliced(kept, fresh), shape, np.float32))
        return known.names, matrices[0], matrices[1]
