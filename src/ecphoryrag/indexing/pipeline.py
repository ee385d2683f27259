"""The road of a document: chunk, extract, encode, commit, in batches, each document in its own transaction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ecphoryrag.errors import InputError, ModelError, ModelNotAvailable, StoreError
from ecphoryrag.indexing.interrupts import held_interrupts
from ecphoryrag.indexing.items import LeftOut, Loaded
from ecphoryrag.indexing.progress import Progress, ProgressCallback, Stage
from ecphoryrag.ports import Encoded, Encoder, Extractor, IndexedDocument, Store, Vectors
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.types import AddReport, Chunk, Document, Extraction, Failure, Usage
from ecphoryrag.vectors import unit_rows

BATCH_CHARACTERS = 2**21
"""Text of a batch, beside the setting's number of documents: what is derived from 2 MB stays near 100 MB."""


def index(
    items: Iterable[Loaded],
    store: Store,
    encoder: Encoder,
    extractor: Extractor,
    settings: IndexingSettings,
    progress: ProgressCallback | None = None,
) -> AddReport:
    """Add the documents to the store. Reads ``items`` as it goes; a batch at most is in memory.

    A document that cannot be taken in is a line of the report. Ctrl-C (KeyboardInterrupt) ends the work after the
    document at hand; what was committed is kept and ``interrupted`` is set. Raises StoreError if the store cannot be
    written (the disk is full), and ModelNotAvailable if a model is missing; each then bears a note that says how many
    documents were committed before, which are kept.
    """
    run = _Run(store, encoder, extractor, settings, progress, _total(items) if progress else None)
    started = time.perf_counter()
    try:
        for batch in run.batches(items):
            run.add(batch)
    except KeyboardInterrupt:
        run.interrupted = True
    except (StoreError, ModelError) as error:
        error.add_note(run.kept())
        raise
    store.flush()
    return run.report(time.perf_counter() - started)


def passage_head(title: str, chunk: Chunk) -> str:
    """What stands above a chunk: the title of its document and the headings it stands under, a line each."""
    above = [title, *(heading for heading in chunk.headings if heading != title)]
    return "\n".join(line for line in above if line)


def passage_vectors(heads: Sequence[str], texts: Sequence[str], encoder: Encoder) -> Encoded:
    """(len(texts), dimension) vectors of passages, of what stands above them and their text.

    An encoder with a ``title_share`` s gives unit(s x unit(head) + (1 - s) x unit(text)), others read both as one
    text; a passage without a head is its text alone. Raises ModelError as the encoder does.
    """
    share = encoder.title_share
    if not share:
        joined = [f"{head}\n{text}" if head else text for head, text in zip(heads, texts, strict=True)]
        return encoder.encode(joined, "passage")
    distinct = list(dict.fromkeys(head for head in heads if head))
    above = encoder.encode(distinct, "passage")
    below = encoder.encode(texts, "passage")
    row = {head: number for number, head in enumerate(distinct)}
    headed = np.array([at for at, head in enumerate(heads) if head], np.int64)
    mixed = below.vectors.copy()
    mixed[headed] = (1 - share) * mixed[headed] + share * above.vectors[[row[heads[at]] for at in headed]]
    spent = above.usage + below.usage
    return Encoded(unit_rows(mixed), spent.embedding_tokens, spent.calls, spent.estimated, spent.cached)


def _total(items: Iterable[Loaded]) -> int | None:
    count = getattr(items, "count", None)
    if isinstance(items, Sequence):
        return len(items)
    return count() if callable(count) else None


@dataclass(slots=True)
class _Prepared:
    """A document on its way to being committed."""

    document: Document
    chunks: tuple[Chunk, ...]
    extractions: tuple[Extraction, ...]

    def heads(self) -> list[str]:
        return [passage_head(self.document.title, chunk) for chunk in self.chunks]

    def texts(self) -> list[str]:
        return [chunk.text for chunk in self.chunks]


@dataclass(slots=True)
class _Run:
    """One call of :func:`index`: what it works with, and what came of it so far."""

    store: Store
    encoder: Encoder
    extractor: Extractor
    settings: IndexingSettings
    progress: ProgressCallback | None
    total: int | None
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    left_out: list[Failure] = field(default_factory=list)
    empty_chunks: list[tuple[str, int]] = field(default_factory=list)
    chunks: int = 0
    mentions: int = 0
    usage: Usage = field(default_factory=Usage)
    interrupted: bool = False
    given: dict[str, str] = field(default_factory=dict)
    """Content hash of each id met in this call."""

    def batches(self, items: Iterable[Loaded]) -> Iterator[list[Document]]:
        batch: list[Document] = []
        characters = 0
        for item in items:
            if isinstance(item, LeftOut):
                self.left_out.append(Failure(item.source, item.reason))
            elif isinstance(item, Failure):
                self.fail(item)
            else:
                batch.append(item)
                characters += len(item.text)
                self.tell("load", item.id)
            if len(batch) >= self.settings.batch or characters >= BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
        if batch:
            yield batch

    def add(self, batch: Sequence[Document]) -> None:
        prepared = []
        for document in self.changed(batch):
            self.tell("extract", document.id)
            try:
                prepared.append(self.prepare(document))
            except (InputError, ModelError) as error:
                self.fail_document(document, error)
        self.tell("encode")
        for item, vectors in self.encoded(prepared):
            self.commit(IndexedDocument(item.document, item.chunks, item.extractions, vectors))

    def changed(self, batch: Sequence[Document]) -> Iterator[Document]:
        """Those that need work; equal content under an id that is there needs none."""
        stored = self.store.hashes([document.id for document in batch])
        for document in batch:
            content = document.content_hash
            known = self.given.setdefault(document.id, content)
            if known != content:
                self.fail(Failure(_source(document), f"the id {document.id!r} was already given, with other content"))
            elif stored.get(document.id) == content:
                self.unchanged.append(document.id)
                self.tell("commit", document.id)
            else:
                stored[document.id] = content
                yield document

    def prepare(self, document: Document) -> _Prepared:
        chunks = chunk_document(document, self.settings.chunks)
        extractions = tuple(self.extractor.extract(document, chunks))
        return _Prepared(document, chunks, extractions)

    def encoded(self, prepared: Sequence[_Prepared]) -> Iterator[tuple[_Prepared, Vectors]]:
        """Each with its vectors: encoded all at once, or one by one if that fails, to find which it is that fails."""
        if not prepared:
            return
        try:
            vectors = self.encode(prepared)
        except ModelNotAvailable:
            raise
        except ModelError as error:
            if len(prepared) == 1:
                self.fail_document(prepared[0].document, error)
                return
            for item in prepared:
                yield from self.encoded([item])
            return
        start = 0
        for item in prepared:
            yield item, vectors[start : start + len(item.chunks)]
            start += len(item.chunks)

    def encode(self, prepared: Sequence[_Prepared]) -> Vectors:
        heads = [head for item in prepared for head in item.heads()]
        texts = [text for item in prepared for text in item.texts()]
        encoded = passage_vectors(heads, texts, self.encoder)
        self.usage += encoded.usage
        return encoded.vectors

    def commit(self, document: IndexedDocument) -> None:
        id_ = document.document.id
        with held_interrupts():
            outcome = self.store.commit(document)
            (self.added if outcome == "added" else self.updated).append(id_)
            self.chunks += len(document.chunks)
            for chunk, extraction in zip(document.chunks, document.extractions, strict=True):
                self.mentions += len(extraction.mentions)
                self.usage += extraction.usage
                if not extraction.mentions:
                    self.empty_chunks.append((id_, chunk.ordinal))
        self.tell("commit", id_)

    def fail_document(self, document: Document, error: InputError | ModelError) -> None:
        if isinstance(error, ModelNotAvailable):
            raise error
        self.fail(Failure(_source(document), str(error)))

    def fail(self, failure: Failure) -> None:
        self.failed.append(failure)
        self.tell("load", failure.source)

    def tell(self, stage: Stage, current: str | None = None) -> None:
        if self.progress:
            done = len(self.added) + len(self.updated) + len(self.unchanged) + len(self.failed)
            self.progress(Progress(stage, done, self.total, current))

    def kept(self) -> str:
        committed = len(self.added) + len(self.updated)
        return f"Before this {committed} documents were committed, which are kept; adding again goes on from there."

    def report(self, seconds: float) -> AddReport:
        return AddReport(
            added=tuple(self.added),
            updated=tuple(self.updated),
            unchanged=tuple(self.unchanged),
            failed=tuple(self.failed),
            left_out=tuple(self.left_out),
            chunks=self.chunks,
            mentions=self.mentions,
            empty_chunks=tuple(self.empty_chunks),
            usage=self.usage + Usage(seconds=seconds),
            seconds=seconds,
            interrupted=self.interrupted,
        )


def _source(document: Document) -> str:
    return document.source or document.id
