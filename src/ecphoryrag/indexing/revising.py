"""Which chunks of a changed document are those that the store has, and what of them need not be made again."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ecphoryrag.errors import ModelError
from ecphoryrag.ports import Comparable, Earlier, Extractor, Inputs, Kept
from ecphoryrag.types import Chunk, Document


@dataclass(frozen=True, slots=True)
class Basis:
    """What a changed document keeps of its state in the store."""

    content_hash: str
    """Of that state."""
    kept: Mapping[int, Kept]
    """By ordinal in the changed document."""


def basis_of(
    document: Document, chunks: Sequence[Chunk], earlier: Earlier, extractor: Extractor, *, dry: bool = False
) -> Basis | None:
    """What of the earlier state holds for these chunks of the document; None if nothing does.

    A chunk keeps its vector if its text, title and headings are the same; it keeps its extraction if besides the
    extractor is the one that made it, and says that all it depends on is the same. What a repair has left to be made
    again is not kept. In a ``dry`` run an extractor whose model cannot be asked who it is may be any.
    """
    before = earlier.document
    if before.title != document.title or before.content_hash != earlier.content_hash:
        return None
    pairs = dict(_pairs(chunks, earlier.chunks))
    if not pairs:
        return None
    done = [at for at, old in pairs.items() if earlier.extractors[old] is not None]
    if done and isinstance(extractor, Comparable):
        identity = _identity(extractor, dry=dry)
        done = [at for at in done if earlier.extractors[pairs[at]] == identity]
    else:
        done = []
    moves = _moves(
        document, [chunks[at] for at in done], earlier, [earlier.chunks[pairs[at]] for at in done], extractor
    )
    found = dict(zip(done, moves, strict=True))
    return Basis(earlier.content_hash, {at: Kept(old, found.get(at)) for at, old in pairs.items()})


def _identity(extractor: Extractor, *, dry: bool) -> str | None:
    try:
        return extractor.identity
    except ModelError:
        if not dry:
            raise
        return None


def _pairs(chunks: Sequence[Chunk], before: Sequence[Chunk]) -> Iterator[tuple[int, int]]:
    """(ordinal now, ordinal before) of equal chunks, each once; of several that are equal in order."""
    waiting: defaultdict[tuple[str, tuple[str, ...]], deque[int]] = defaultdict(deque)
    for chunk in before:
        waiting[chunk.text, chunk.headings].append(chunk.ordinal)
    for chunk in chunks:
        equal = waiting.get((chunk.text, chunk.headings))
        if equal:
            yield chunk.ordinal, equal.popleft()


Moves = tuple[tuple[int, int, int], ...]


def _moves(
    document: Document, chunks: Sequence[Chunk], earlier: Earlier, before: Sequence[Chunk], extractor: Extractor
) -> Iterator[Moves | None]:
    """For each of the chunks, beside what it was before, how its mentions move; None if its extraction may differ."""
    if not chunks or not isinstance(extractor, Comparable):
        return
    now, then = extractor.inputs(document, chunks), extractor.inputs(earlier.document, before)
    for chunk, old, one, other in zip(chunks, before, now, then, strict=True):
        yield _moved(chunk, one, old, other) if one.key == other.key else None


def _moved(chunk: Chunk, now: Inputs, old: Chunk, then: Inputs) -> Moves:
    spans = [(old.start, old.end, chunk.start - old.start)]
    for (start, _), (old_start, old_end) in zip(now.elsewhere, then.elsewhere, strict=True):
        spans.append((old_start, old_end, start - old_start))
    return tuple(span for span in spans if span[2])
