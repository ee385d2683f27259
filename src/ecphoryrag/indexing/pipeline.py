"""The road of a document: chunk, extract, encode, commit, each document in its own transaction."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from ecphoryrag.errors import (
    DocumentNotFound,
    EcphoryError,
    InputError,
    JobStopped,
    ModelError,
    ModelNotAvailable,
    StoreError,
)
from ecphoryrag.indexing.extracting import Extracting, extracting
from ecphoryrag.indexing.interrupts import held_interrupts
from ecphoryrag.indexing.items import Loaded
from ecphoryrag.indexing.passages import passage_vectors
from ecphoryrag.indexing.progress import ProgressCallback
from ecphoryrag.indexing.tally import Spent, Tally
from ecphoryrag.indexing.works import Work, incomplete_works, works_of
from ecphoryrag.ports import Encoder, Extractor, IndexedDocument, Revision, Store, Vectors
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.types import AddReport, Usage

INTERRUPTED_SECONDS = 3.0
"""How long calls under way may still take after Ctrl-C: the user waits."""
STOPPED_SECONDS = 30.0
"""How long they may take after the work was stopped for another reason: they are paid for, so their replies are worth
a wait, but not the time-out of a server that hangs."""


def index(
    items: Iterable[Loaded],
    store: Store,
    encoder: Encoder,
    extractor: Extractor,
    settings: IndexingSettings,
    progress: ProgressCallback | None = None,
) -> AddReport:
    """Add the documents to the store. Reads ``items`` as it goes; two batches at most are in memory.

    A document that cannot be taken in is a line of the report. One with chunks that could not be extracted is
    committed and listed as incomplete; given again with the same content, those chunks alone are extracted. Of one that
    has another content by now only the chunks that changed are extracted and encoded, and committed. With an
    extractor that works in parallel, documents are committed, and listed, as they are ready.

    Ctrl-C (KeyboardInterrupt) ends the work and sets ``interrupted``, JobStopped ends it and sets ``stopped``: no call
    is begun any more, those under way get a few seconds, and every document that has all it needs is committed; the
    others are in no group of the report. ModelNotAvailable, if a model is missing, is raised once that is done, and
    StoreError if the store cannot be written (the disk is full); each then bears a note that says how many documents
    were committed before, which are kept.
    """
    tally = Tally(progress, _total(items) if progress else None)
    works = works_of(items, store, extractor, settings, tally)
    return _Run(store, extractor, tally, settings.batch, encoder).work_off(works)


def retry(store: Store, extractor: Extractor, progress: ProgressCallback | None = None) -> AddReport:
    """Extract the failed chunks of all incomplete documents of the store; their texts and vectors stay.

    Each is then listed as updated, and as incomplete if chunks failed again; ``chunks`` and ``mentions`` count what was
    worked on. Ends, and raises, as :func:`index` does.
    """
    ids = store.incomplete()
    tally = Tally(progress, len(ids))
    return _Run(store, extractor, tally).work_off(incomplete_works(store, ids, tally))


def _total(items: Iterable[Loaded]) -> int | None:
    count = getattr(items, "count", None)
    if isinstance(items, Sequence):
        return len(items)
    return count() if callable(count) else None


@dataclass(slots=True)
class _Run:
    """One call: what it works with, and what encoding has cost so far."""

    store: Store
    extractor: Extractor
    tally: Tally
    batch: int = 1
    encoder: Encoder | None = None
    """None where every document has its vectors."""
    encoding: Usage = field(default_factory=Usage)

    def work_off(self, works: Iterator[Work]) -> AddReport:
        """Do all the work, or as much as can be done."""
        started = time.perf_counter()
        running = extracting(works, self.extractor, self.batch)
        try:
            self._to_the_end(running)
            self.store.note_sources(self.tally.sources)
            self.store.flush()
        except (StoreError, ModelError) as error:
            error.add_note(self.tally.kept())
            raise
        finally:
            running.close()
            self.extractor.resume()
        self.tally.settle()
        encoder = self.encoder.identity.name if self.encoder else None
        spent: tuple[Spent, ...] = (("index", self.extractor.model, running.spent), ("embed", encoder, self.encoding))
        return self.tally.report(spent, time.perf_counter() - started)

    def _to_the_end(self, running: Extracting) -> None:
        missing: ModelNotAvailable | None = None
        patience = STOPPED_SECONDS
        try:
            while running.advance():
                self._finish(running.finished)
        except KeyboardInterrupt:
            self.tally.interrupted = True
            self.extractor.halt()
            patience = INTERRUPTED_SECONDS
        except JobStopped as error:
            self.tally.stopped = str(error)
        except ModelNotAvailable as error:
            missing = error
        else:
            return
        with suppress(KeyboardInterrupt, JobStopped, ModelNotAvailable):  # the first reason is the one to tell
            running.stop(patience)
            self._finish(running.finished)
        if missing is not None:
            self.store.flush()
            raise missing

    def _finish(self, finished: list[Work]) -> None:
        """Commit these documents, or count them as failed; each leaves the list when that is done."""
        for work in [work for work in finished if work.stored or work.error]:
            self._close(finished, work, work.error)
        while finished and self.encoder:
            self.tally.tell("encode")
            for work, vectors in self._encoded(finished[: self.batch], self.encoder):
                self._close(finished, work, vectors)

    def _close(self, finished: list[Work], work: Work, outcome: Vectors | EcphoryError | None) -> None:
        """Commit a document with its vectors, None if they are in the store, or count it as failed by this error."""
        with held_interrupts():
            try:
                if isinstance(outcome, EcphoryError):
                    self.tally.fail_document(work.document, outcome)
                elif outcome is None:
                    self._complete(work)
                else:
                    self._commit(work, outcome)
            except (InputError, DocumentNotFound) as error:  # too large for the store, or forgotten meanwhile
                self.tally.fail_document(work.document, error)
            finished.remove(work)
        self.tally.tell("commit", work.document.id)

    def _encoded(self, works: Sequence[Work], encoder: Encoder) -> Iterator[tuple[Work, Vectors | ModelError]]:
        """Each with its vectors: encoded all at once, or one by one if that fails, to find which it is that fails."""
        try:
            vectors = self._encode(works, encoder)
        except ModelNotAvailable:
            raise
        except ModelError as error:
            if len(works) > 1:
                for work in works:
                    yield from self._encoded([work], encoder)
            elif isinstance(error, JobStopped):
                raise
            else:
                yield works[0], error
            return
        start = 0
        for work in works:
            count = len(work.fresh)
            yield work, vectors[start : start + count]
            start += count

    def _encode(self, works: Sequence[Work], encoder: Encoder) -> Vectors:
        heads = [head for work in works for head in work.heads()]
        texts = [text for work in works for text in work.texts()]
        if not texts:
            return np.zeros((0, encoder.identity.dimension), np.float32)
        try:
            encoded = passage_vectors(heads, texts, encoder)
        except ModelError as error:
            self.encoding += error.usage
            raise
        self.encoding += encoded.usage
        return encoded.vectors

    def _commit(self, work: Work, vectors: Vectors) -> None:
        document, chunks, basis = work.document, work.chunks, work.basis
        if basis is None:
            extractions = tuple(work.found[chunk.ordinal] for chunk in chunks)
            outcome = self.store.commit(IndexedDocument(document, chunks, extractions, vectors))
            self.tally.commit(document.id, len(chunks), work.found, outcome)
            return
        self.store.revise(Revision(basis.content_hash, document, chunks, basis.kept, work.found, vectors))
        self.tally.commit(document.id, len(chunks), work.found, "updated", len(chunks) - len(work.found))

    def _complete(self, work: Work) -> None:
        document = work.document
        self.store.complete(document.id, document.content_hash, work.found)
        self.tally.commit(document.id, len(work.chunks), work.found, "updated")
