"""An encoder and an extractor that take next to no time, so that an ordeal's time goes to the store."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import AboutKind, Chunk, Document, Extraction, Mention, Usage

_NAME = re.compile(r"[A-Z][a-z]+(?: [A-Z0-9][a-z]*)*")


class QuickEncoder(HashEncoder):
    """The same vectors, each word's made once in a process."""

    def _vector(self, word: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return _vector(self._dimension, word)


@cache
def _vector(dimension: int, word: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return HashEncoder(dimension)._vector(word)


class QuickExtractor:
    """A mention for each run of capitalised words; the title is what the first chunk is about."""

    identity = "quick 1"
    model = None
    basis = "nothing"
    parallel = 1

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> Sequence[Extraction]:
        """One extraction a chunk; of a document's neighbouring names that begin alike one is an alias."""
        return [_extraction(document, chunk) for chunk in chunks]

    def halt(self) -> None:
        """Nothing waits."""

    def resume(self) -> None:
        """Nothing waited."""

    def estimate(self, document: Document, chunks: Sequence[Chunk]) -> Usage:
        """Nothing is paid."""
        del document, chunks
        return Usage()


def _extraction(document: Document, chunk: Chunk) -> Extraction:
    mentions: list[Mention] = []
    if document.title and not chunk.ordinal:
        end = len(document.title)
        mentions.append(
            Mention(document.title, name_key(document.title), 0, end, "title", "title", chunk.text[:40], 5, "title")
        )
    subject: AboutKind | None = "subject"
    for found in _NAME.finditer(chunk.text):
        start = chunk.start + found.start()
        key = name_key(found[0])
        if key:
            mentions.append(
                Mention(found[0], key, start, start + len(found[0]), "text", "name", chunk.text, 3, subject)
            )
            subject = None
    keys = sorted({mention.key for mention in mentions})
    aliases = tuple((one, other) for one, other in itertools.pairwise(keys) if one[0] == other[0])
    return Extraction(tuple(mentions), aliases)
