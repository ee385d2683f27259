"""What is to be done for one document, and which documents need anything done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ecphoryrag.errors import DocumentNotFound, InputError, ModelError
from ecphoryrag.indexing.items import LeftOut, Loaded
from ecphoryrag.indexing.passages import passage_head
from ecphoryrag.indexing.revising import Basis, basis_of
from ecphoryrag.indexing.tally import Tally
from ecphoryrag.ports import Extractor, Store
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.types import Chunk, Document, Extraction, Failure

BATCH_CHARACTERS = 2**21
"""Text of a batch, beside the setting's number of documents: what is derived from 2 MB stays near 100 MB."""


@dataclass(slots=True, eq=False)
class Work:
    """A document on its way to being committed; compared by identity."""

    document: Document
    chunks: tuple[Chunk, ...]
    wanted: tuple[Chunk, ...]
    """Those to be extracted: all, those that failed of a document that is in the store, or the changed ones."""
    stored: bool = False
    """Whether the store has all of it but the extractions of the wanted chunks."""
    found: dict[int, Extraction] = field(default_factory=dict)
    """What was found in the wanted chunks so far, by ordinal."""
    error: InputError | ModelError | None = None
    """Why the document cannot be taken in."""

    basis: Basis | None = None
    """What it keeps of its state in the store."""

    @property
    def fresh(self) -> list[Chunk]:
        """The chunks to be encoded: all but those that the store has."""
        return [chunk for chunk in self.chunks if self.basis is None or chunk.ordinal not in self.basis.kept]

    def heads(self) -> list[str]:
        """What stands above each chunk that is to be encoded."""
        return [passage_head(self.document.title, chunk) for chunk in self.fresh]

    def texts(self) -> list[str]:
        """The text of each chunk that is to be encoded."""
        return [chunk.text for chunk in self.fresh]


def works_of(
    items: Iterable[Loaded],
    store: Store | None,
    extractor: Extractor,
    settings: IndexingSettings,
    tally: Tally,
    *,
    dry: bool = False,
) -> Iterator[Work]:
    """The work that the documents need which are new, changed or incomplete; None is a store that is not there yet.

    Reads a batch ahead at most. What needs no work, or cannot be taken, is counted in ``tally``. A ``dry`` run needs no
    server: where the extractor cannot be told from another without one, no extraction is taken to hold.
    """
    incomplete: set[str] | None = None
    for batch in _batches(items, settings.batch, tally):
        hashes = store.hashes([document.id for document in batch]) if store else {}
        if incomplete is None and store and hashes:
            incomplete = set(store.incomplete())
        for document in batch:
            content = document.content_hash
            if not tally.first(document, content):
                continue
            work: Work | None = None
            if hashes.get(document.id) == content:
                if not store or not incomplete or document.id not in incomplete:
                    tally.leave(document.id, document)
                    continue
                work = stored_work(store, document.id)
            tally.tell("extract", document.id)
            if work is None:
                chunks = chunk_document(document, settings.chunks)
                earlier = store.earlier(document.id) if store and document.id in hashes else None
                basis = basis_of(document, chunks, earlier, extractor, dry=dry) if earlier else None
                work = _work(document, chunks, basis)
            yield work


def _work(document: Document, chunks: tuple[Chunk, ...], basis: Basis | None) -> Work:
    """The work for a document that is new, or of which the store has another state."""
    if basis is None:
        return Work(document, chunks, chunks)
    done = {at for at, kept in basis.kept.items() if kept.moves is not None}
    return Work(document, chunks, tuple(chunk for chunk in chunks if chunk.ordinal not in done), basis=basis)


def stored_work(store: Store, id: str) -> Work | None:
    """The work that a document in the store still needs: its failed chunks; None if the document is gone."""
    try:
        indexed = store.indexed(id)
    except DocumentNotFound:
        return None
    pairs = zip(indexed.chunks, indexed.extractions, strict=True)
    wanted = tuple(chunk for chunk, extraction in pairs if extraction.failure is not None)
    return Work(indexed.document, indexed.chunks, wanted, stored=True)


def incomplete_works(store: Store, ids: Sequence[str], tally: Tally) -> Iterator[Work]:
    """The work that these documents of the store still need."""
    for id_ in ids:
        work = stored_work(store, id_)
        if work is None:
            tally.fail(Failure(id_, "was forgotten before its failed chunks were extracted"))
        else:
            tally.tell("extract", id_)
            yield work


def _batches(items: Iterable[Loaded], size: int, tally: Tally) -> Iterator[list[Document]]:
    batch: list[Document] = []
    characters = 0
    for item in items:
        if isinstance(item, LeftOut):
            tally.left_out.append(Failure(item.source, item.reason))
        elif isinstance(item, Failure):
            tally.fail(item)
        else:
            batch.append(item)
            characters += len(item.text)
            tally.tell("load", item.id)
        if len(batch) >= size or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
