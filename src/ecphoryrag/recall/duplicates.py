"""Entities that may be one: found by marks that their names share, never by comparing all with all.

Near-linear: each name has a bounded number of marks, and of a mark that too many names share none are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.decisions import Duplicate
from ecphoryrag.ports import Encoder, View
from ecphoryrag.text.likeness import Form, contained, likeness, marks
from ecphoryrag.types import Entity

LIKELY = 0.6
"""Score from which a pair is proposed, if nothing else is asked for."""
CROWD = 40
"""Names that share a mark at most; what more names share tells nothing."""
NOT_NAMES = frozenset(("date", "number", "quantity", "identifier"))
SAID = 0.8
"""Score of what some text says is one thing."""
CONTAINED = 0.5
WITHIN = 0.25
"""More for a shorter name that is met only in documents that name the longer one."""
AGREE = 0.1
"""More or less for vectors that are as like as can be, or not at all."""
AMONG = 8
"""Neighbours, in each of the orders, that are looked at by vectors."""
ORDERS = 4
NEAR = 0.9
"""Cosine of vectors that are worth a look where the names share a word."""
BY_VECTOR = 0.3


@dataclass(frozen=True, slots=True)
class Known:
    """What duplicates are found in. m entities, n chunks."""

    entities: Sequence[Entity]
    aliases: NDArray[np.int32]
    """(a, 2) pairs that some text says are one thing."""
    documents: sp.csc_array
    """(documents, m) where each is mentioned."""
    vectors: NDArray[np.float32] | None
    """(m, d) of name and defining sentence; None without an encoder."""


_Pair = tuple[int, int]


def find_duplicates(known: Known, least: float) -> list[Duplicate]:
    """The pairs that score at least ``least``, best first, then by name; each with its reasons. Deterministic."""
    forms = {
        at: Form(one.key.split(" (")[0])
        for at, one in enumerate(known.entities)
        if one.type not in NOT_NAMES and any(map(str.isalpha, one.key))
    }
    found: dict[_Pair, dict[str, float]] = defaultdict(dict)
    for one, other in _marked(forms):
        alike = likeness(forms[one], forms[other])
        if alike is not None and not _split_apart(known, one, other):
            found[one, other][alike.reason] = alike.score
    for one, other, score, reason in (*_said(known, forms), *_contained(known, forms), *_near(known, forms)):
        if not _split_apart(known, one, other):
            found[one, other][reason] = score
    made = [_duplicate(known, pair, reasons) for pair, reasons in found.items()]
    kept = [one for one in made if one.score >= least]
    return sorted(kept, key=lambda one: (-one.score, one.one_key, one.other_key))


def _split_apart(known: Known, one: int, other: int) -> bool:
    """Whether a user has split one off the other: they are told apart on purpose."""
    first, second = known.entities[one].key, known.entities[other].key
    return ("(" in first or "(" in second) and first.split(" (")[0] == second.split(" (")[0]


def _marked(forms: dict[int, Form]) -> Iterator[_Pair]:
    """Pairs that share a mark, each once."""
    blocks: dict[str, list[int]] = defaultdict(list)
    for at, form in forms.items():
        for mark in dict.fromkeys(marks(form)):
            blocks[mark].append(at)
    seen: set[_Pair] = set()
    for block in blocks.values():
        if 1 < len(block) <= CROWD:
            for pair in combinations(sorted(block), 2):
                if pair not in seen:
                    seen.add(pair)
                    yield pair


_Found = tuple[int, int, float, str]


def _said(known: Known, forms: dict[int, Form]) -> Iterator[_Found]:
    for one, other in known.aliases.tolist():
        if one in forms and other in forms and forms[one].apart == forms[other].apart:
            yield min(one, other), max(one, other), SAID, "a text says that they are one"


def _contained(known: Known, forms: dict[int, Form]) -> Iterator[_Found]:
    """A family name alone, where one longer name ends with it and a document names both."""
    alone = {form.bare: at for at, form in forms.items() if len(form.words) == 1}
    longer: dict[int, list[int]] = defaultdict(list)
    for at, form in forms.items():
        for word in contained(form):
            if word in alone:
                longer[alone[word]].append(at)
    for short, found in longer.items():
        near = _documents(known, short)
        both = [at for at in found if near & _documents(known, at)] if len(found) <= CROWD else []
        if len(both) == 1:
            within = near <= _documents(known, both[0])
            score = CONTAINED + (WITHIN if within else 0) - (0.2 if len(found) > 1 else 0)
            yield min(short, both[0]), max(short, both[0]), score, "the last word of the longer, in the same document"


def _documents(known: Known, entity: int) -> frozenset[int]:
    start, end = known.documents.indptr[entity : entity + 2]
    return frozenset(known.documents.indices[start:end].tolist())


def _near(known: Known, forms: dict[int, Form]) -> Iterator[_Found]:
    """Pairs that share a long word and whose vectors lie close, looked for among neighbours in a few orders.

    The orders are by projection on fixed directions: close vectors stand near one another in most of them.
    """
    vectors = known.vectors
    if vectors is None or not vectors.shape[1] or len(vectors) < 2:
        return
    directions = np.random.default_rng(0).standard_normal((vectors.shape[1], ORDERS)).astype(np.float32)
    rows = np.array(sorted(forms), np.int64)
    seen: set[_Pair] = set()
    for places in (vectors[rows] @ directions).T:
        order = rows[np.argsort(places, kind="stable")]
        for step in range(1, min(AMONG, len(order) - 1) + 1):
            one, other = order[:-step], order[step:]
            like = np.einsum("ij,ij->i", vectors[one], vectors[other])
            for at in np.flatnonzero(like >= NEAR).tolist():
                pair = (int(min(one[at], other[at])), int(max(one[at], other[at])))
                first, second = forms[pair[0]], forms[pair[1]]
                shared = {word for word in first.words if len(word) > 3} & set(second.words)
                if pair not in seen and shared and first.apart == second.apart:
                    seen.add(pair)
                    yield *pair, BY_VECTOR, "a word in common, and much the same said of both"


def _duplicate(known: Known, pair: _Pair, reasons: dict[str, float]) -> Duplicate:
    ordered = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    score = ordered[0][1] + 0.05 * (len(ordered) - 1)
    told = [reason for reason, _ in ordered]
    if known.vectors is not None and known.vectors.shape[1]:
        like = float(known.vectors[pair[0]] @ known.vectors[pair[1]])
        score += AGREE * (2 * max(like, 0) - 1)
        told.append(f"vectors {like:.2f} alike")
    one, other = (known.entities[at] for at in pair)
    if (other.mention_count, one.key) > (one.mention_count, other.key):
        one, other = other, one
    return Duplicate(round(min(max(score, 0.0), 1.0), 3), one.name, other.name, one.key, other.key, tuple(told))


def documents_of(mentions: sp.csr_array, chunk_documents: NDArray[np.int32], documents: int) -> sp.csc_array:
    """(documents, m) from (n, m) mentions in chunks."""
    n = mentions.shape[0]
    owner = sp.csr_array((np.ones(n, np.float32), (chunk_documents, np.arange(n))), shape=(documents, n))
    return sp.csc_array(owner @ mentions)


def duplicates(view: View, encoder: Encoder, least: float = LIKELY) -> list[Duplicate]:
    """The pairs of a view's entities that may be one: see :func:`find_duplicates`. Raises ModelError."""
    shot = view.snapshot
    if not shot.entity_keys:
        return []
    vectors = view.entity_vectors(encoder) if encoder.identity.dimension else None
    documents = documents_of(shot.mentions, shot.chunk_documents, len(shot.document_ids))
    entities = view.entities(range(len(shot.entity_keys)))
    return find_duplicates(Known(entities, shot.aliases, documents, vectors), least)
