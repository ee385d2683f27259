"""Vectors of passages: of their text, and of what stands above it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ecphoryrag.ports import Encoded, Encoder
from ecphoryrag.types import Chunk
from ecphoryrag.vectors import unit_rows


def passage_head(title: str, chunk: Chunk) -> str:
    """What stands above a chunk: the title of its document and the headings it stands under, a line each."""
    above = [title, *(heading for heading in chunk.headings if heading != title)]
    return "\n".join(line for line in above if line)


def passage_vectors(heads: Sequence[str], texts: Sequence[str], encoder: Encoder) -> Encoded:
    """(len(texts), dimension) vectors of passages, of what stands above them and their text.

    An encoder with a ``title_share`` s gives unit(s x unit(head) + (1 - s) x unit(text)), others read both as one
    text; a passage without a head is its text alone. Raises ModelError as the encoder does.
    """
    read = texts_read(heads, texts, encoder)
    if not encoder.title_share:
        return encoder.encode(read, "passage")
    share, distinct = encoder.title_share, read[: len(read) - len(texts)]
    above = encoder.encode(distinct, "passage")
    below = encoder.encode(texts, "passage")
    row = {head: number for number, head in enumerate(distinct)}
    headed = np.array([at for at, head in enumerate(heads) if head], np.int64)
    mixed = below.vectors.copy()
    mixed[headed] = (1 - share) * mixed[headed] + share * above.vectors[[row[heads[at]] for at in headed]]
    spent = above.usage + below.usage
    return Encoded(unit_rows(mixed), spent.embedding_tokens, spent.calls, spent.estimated, spent.cached)


def texts_read(heads: Sequence[str], texts: Sequence[str], encoder: Encoder) -> list[str]:
    """What the encoder reads for these passages: each with its head; or, with a ``title_share``, each distinct head
    once and then the texts."""
    if not encoder.title_share:
        return [f"{head}\n{text}" if head else text for head, text in zip(heads, texts, strict=True)]
    return [*dict.fromkeys(head for head in heads if head), *texts]
