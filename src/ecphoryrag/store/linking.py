"""Linked names: where a text contains a name that only other documents know, found for a whole store at once.

Each chunk's normalised words are kept as 32-bit hashes. Runs of them are compared with the hashed names in numpy,
and what seems to be found is then read in the text, so a collision of hashes can cost time but never make a link.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.text.keys import is_linkable, normal_words

FEWEST_WORDS = 2
"""A name of one word is too often an ordinary word of the text it would be looked for in."""
MOST_WORDS = 8
"""Longer titles are hardly ever written out in another text; in scripts without spaces a word is one sign."""
NOT_NAMES = ("date", "number", "quantity", "term", "identifier")
"""Types of mentions that make no name of the subject or heading they stand in; a title always is a name."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_BLOCK = 4096
"""Chunks whose words are compared at once: some megabytes."""

Words = NDArray[np.uint32]


def word_hashes(text: str) -> Words:
    """(words,) CRC-32 of the normalised words of the text."""
    return np.array([zlib.crc32(word.norm.encode("utf-8")) for word in normal_words(text)], np.uint32)


def find_linked(
    names: Mapping[int, str],
    chunks: Sequence[bytes],
    mentioned: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    texts: Callable[[Iterable[int]], Iterable[tuple[int, str]]],
) -> NDArray[np.int64]:
    """(pairs, 2) position of the chunk and of the entity, ascending.

    ``names`` maps an entity's position to its key; ``chunks`` holds the word hashes of each chunk; ``mentioned`` tells
    of (pairs, 2) positions which are mentions already, and ``texts`` gives the texts of chunks, ascending.
    """
    index = _index(names)
    if not index:
        return np.zeros((0, 2), np.int64)
    blocks = [_candidates(index, chunks[first : first + _BLOCK], first) for first in range(0, len(chunks), _BLOCK)]
    found = np.concatenate([np.zeros((0, 4), np.int64), *blocks])
    found = found[~mentioned(found[:, :2])]
    pairs = _confirmed(names, found, texts)
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def may_hold(names: Iterable[str], chunks: Sequence[bytes]) -> NDArray[np.bool_]:
    """(chunks,) whether a chunk, by its word hashes, holds the first word of one of these names; never wrongly not."""
    firsts = np.array([zlib.crc32(name.split(" ")[0].encode("utf-8")) for name in names], np.uint32)
    words = np.frombuffer(b"".join(chunks), "<u4")
    flags = np.zeros(1 << 16, np.bool_)  # a table that stays in the processor's cache, before the search proper
    flags[firsts & 0xFFFF] = True
    hits = np.flatnonzero(flags[words & 0xFFFF])
    hits = hits[np.isin(words[hits], firsts)]
    ends = np.cumsum([len(chunk) // 4 for chunk in chunks])
    held = np.zeros(len(chunks), np.bool_)
    held[np.searchsorted(ends, hits, side="right")] = True
    return held


_Index = dict[int, tuple[NDArray[np.uint64], dict[int, list[int]]]]
"""For each number of words: the hashes of the names, ascending, and the names that have each."""


def _index(names: Mapping[int, str]) -> _Index:
    by_length: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for entity, key in names.items():
        words = key.split(" ")
        if FEWEST_WORDS <= len(words) <= MOST_WORDS and is_linkable(key):
            hashes = np.array([zlib.crc32(word.encode("utf-8")) for word in words], np.uint32)
            by_length[len(words)][int(_runs(hashes, len(words))[0])].append(entity)
    return {length: (np.array(sorted(found), np.uint64), found) for length, found in sorted(by_length.items())}


def _runs(words: Words, length: int) -> NDArray[np.uint64]:
    """(words - length + 1,) hash of each run of so many words."""
    spread = (words.astype(np.uint64) + np.uint64(1)) * _MULTIPLIER
    spread ^= spread >> np.uint64(29)
    count = len(words) - length + 1
    runs = spread[:count].copy()
    for at in range(1, length):
        runs *= _MULTIPLIER
        runs += spread[at : at + count]
    return runs


def _candidates(index: _Index, chunks: Sequence[bytes], first: int) -> NDArray[np.int64]:
    """(found, 4) chunk, entity, first word, number of words; at most one row for each run and name."""
    words = np.frombuffer(b"".join(chunks), "<u4")
    sizes = np.array([len(chunk) // 4 for chunk in chunks], np.int64)
    ends = np.repeat(np.cumsum(sizes), sizes)
    owner = np.repeat(np.arange(len(chunks)), sizes)
    starts = np.cumsum(sizes) - sizes
    found: list[tuple[int, int, int, int]] = []
    for length, (hashes, entities) in index.items():
        if len(words) < length:
            break
        runs = _runs(words, length)
        at = np.arange(len(runs))
        slot = np.minimum(np.searchsorted(hashes, runs), len(hashes) - 1)
        hits = np.flatnonzero((hashes[slot] == runs) & (at + length <= ends[: len(runs)]))
        for hit in hits.tolist():
            chunk = int(owner[hit])
            found += [(first + chunk, entity, hit - int(starts[chunk]), length) for entity in entities[int(runs[hit])]]
    return np.array(found, np.int64).reshape(-1, 4)


def _confirmed(
    names: Mapping[int, str],
    found: NDArray[np.int64],
    texts: Callable[[Iterable[int]], Iterable[tuple[int, str]]],
) -> set[tuple[int, int]]:
    by_chunk: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for chunk, entity, start, length in found.tolist():
        by_chunk[chunk].append((entity, start, length))
    pairs: set[tuple[int, int]] = set()
    for chunk, text in texts(sorted(by_chunk)):
        words = [word.norm for word in normal_words(text)]
        pairs.update(
            (chunk, entity)
            for entity, start, length in by_chunk[chunk]
            if " ".join(words[start : start + length]) == names[entity]
        )
    return pairs
