"""Memory: the one place that joins the road of a document and the road of a question to the adapters."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from ecphoryrag import answering, indexing
from ecphoryrag import recall as recalling
from ecphoryrag.errors import InputError, StoreError
from ecphoryrag.indexing import Loaded, ProgressCallback
from ecphoryrag.models.registry import make_encoder, make_extractor, make_generator
from ecphoryrag.ports import Encoder, Extractor, Generator, IndexedDocument, Store, Where
from ecphoryrag.settings import Settings, load_settings
from ecphoryrag.store import open_store
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import (
    AddReport,
    Answer,
    Document,
    DocumentSummary,
    Entity,
    Recall,
    StoreStatus,
)

Item: TypeAlias = Document | Mapping[str, object] | str
"""What can be added: a document, a record (``id``, ``title``, ``text``, the rest is metadata), or bare text."""

BULK = 20
"""An adding of at least so many documents, and of at least one in so many of the store's, also builds the arrays of the
next question: about a tenth of its own cost. After a smaller one the next question builds them, so that a single
document is added fast."""


class Memory:
    """A store of documents that can be asked.

    Reading (`recall`, `ask`, `get`, ...) may be done from several threads at once; each reads one consistent state.
    Writing (`add`, `forget`) is serialised here, and across processes by the store.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        encoder: Encoder,
        extractor: Extractor,
        generator: Generator | None = None,
    ) -> None:
        """Join parts that are already made; :meth:`open` makes them from the settings."""
        self._store = store
        self._settings = settings
        self._encoder = encoder
        self._extractor = extractor
        self._generator = generator
        self._generator_made = generator is not None
        self._closed = False
        self._prepared = recalling.PreparedCache()
        self._writing = threading.Lock()
        self._generating = threading.RLock()

    @classmethod
    def open(  # noqa: PLR0913 - each is a word the caller may want to say; a group would only rename them
        cls,
        path: str | Path,
        *,
        settings: Settings | None = None,
        create: bool = True,
        read_only: bool = False,
        encoder: Encoder | None = None,
        extractor: Extractor | None = None,
        generator: Generator | None = None,
    ) -> Memory:
        """Open the store at this path, or make it.

        ``settings`` default to :func:`load_settings`; a given encoder, extractor or generator replaces the one that
        the settings name. Raises StoreNotFound, NotAStore, StoreTooNew, EncoderMismatch, StoreDamaged, and
        ModelNotAvailable if a part's package is missing.
        """
        settings = settings or load_settings()
        encoder = encoder or make_encoder(settings)
        extractor = extractor or make_extractor(settings)
        store = open_store(
            Path(path), encoder.identity, extractor.identity, create=create and not read_only, read_only=read_only
        )
        return cls(store, settings, encoder, extractor, generator)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file and the language model; calling it twice is harmless."""
        try:
            self._store.close()
        finally:
            with self._generating:
                self._closed = True
                generator, self._generator = self._generator, None
                if generator is not None:
                    generator.close()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    def add(self, documents: Iterable[Item] | Item, *, progress: ProgressCallback | None = None) -> AddReport:
        """Add documents, each in a transaction of its own.

        A known id with other content is an update, with the same content nothing. A document that cannot be taken is
        a line in ``report.failed`` and does not stop the others. Ctrl-C keeps what is committed and is reported.
        """
        if not isinstance(documents, Iterable | Document):
            raise InputError(f"what is to be added is a {type(documents).__name__}: give documents, records or texts")
        items: Iterable[Item] = [documents] if isinstance(documents, Document | Mapping | str) else documents
        return self._index(indexing.load_items(items), progress)

    def add_paths(self, paths: Sequence[str | Path], *, progress: ProgressCallback | None = None) -> AddReport:
        """Add files, folders (recursively) and globs."""
        return self._index(indexing.load_paths(paths, self._settings.indexing), progress)

    def recall(
        self, question: str, *, k: int | None = None, method: str | None = None, where: Where | None = None
    ) -> Recall:
        """The chunks and entities that the question brings back, best first, with their paths; no language model.

        ``k`` chunks by ``method``, both from the settings if not given, of documents whose metadata pass ``where``.
        Raises InputError for an unknown method, a ``k`` below 1, a question that is not text, or a malformed filter.
        """
        request = recalling.RecallRequest.of(self._settings.recall, k=k, method=method, where=where)
        with self._store.reading() as view:
            return recalling.recall(question, view, self._encoder, request, self._prepared)

    def ask(
        self, question: str, *, k: int | None = None, method: str | None = None, where: Where | None = None
    ) -> Answer:
        """An answer from the recalled evidence and nothing else, with the numbers of the evidence it used.

        ``answer.text`` is None, and ``answer.reason`` says why, if the evidence does not suffice, the model's reply
        cannot be used, or no language model is configured or present. Raises as :meth:`recall` does.
        """
        recalled = self.recall(question, k=k, method=method, where=where)
        with self._generating:
            return answering.answer(question, recalled, self._make_generator(), self._settings.answering)

    def forget(self, *ids: str) -> None:
        """Forget these documents, all or none. Raises DocumentNotFound, naming those that are not there."""
        with self._writing:
            self._store.delete([_text(id_, "the id of a document") for id_ in ids])
            self._store.flush()

    def get(self, id: str) -> Document:
        """The document as it was added. Raises DocumentNotFound."""
        return self._store.get(_text(id, "the id of a document"))

    def documents(self, where: Where | None = None) -> list[DocumentSummary]:
        """All documents whose metadata pass the filter, by id."""
        return self._store.documents(where)

    def inspect(self, id: str) -> IndexedDocument:
        """The document with its chunks, mentions and vectors. Raises DocumentNotFound."""
        return self._store.indexed(_text(id, "the id of a document"))

    def entity(self, name: str) -> Entity | None:
        """What is known under this name, in any spelling that has the same key."""
        with self._store.reading() as view:
            position = view.snapshot.entity_positions.get(name_key(_text(name, "the name of an entity")))
            return None if position is None else view.entities([position])[0]

    def status(self) -> StoreStatus:
        """What the store holds."""
        return self._store.status()

    def _index(self, items: Iterable[Loaded], progress: ProgressCallback | None) -> AddReport:
        with self._writing:
            report = indexing.index(
                items, self._store, self._encoder, self._extractor, self._settings.indexing, progress=progress
            )
        changed = len(report.added) + len(report.updated)
        bulk = changed >= BULK and changed * BULK >= self._store.status().documents
        if bulk and not report.interrupted:
            with self._store.reading() as view:
                view.snapshot  # noqa: B018 - built and cached here
        return report

    def _make_generator(self) -> Generator | None:
        """The generator, made when it is first asked for; it loads its model when it is first used."""
        if self._closed:
            raise StoreError("The memory was closed while it was asked; open it again.")
        if not self._generator_made:
            self._generator = make_generator(self._settings)
            self._generator_made = True
        return self._generator


def _text(value: str, what: str) -> str:
    """The value, if it is text as its type says: what has no type checker passes numbers and lists."""
    if not isinstance(value, str):
        raise InputError(f"{what} is a {type(value).__name__}: give it as text")
    return value
