"""Memory: the one place that joins the road of a document and the road of a question to the adapters."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, TypeAlias

from ecphoryrag import answering, indexing
from ecphoryrag import recall as recalling
from ecphoryrag.decisions import Decided, Decision, Duplicate, Place, Selection
from ecphoryrag.errors import InputError, StoreError
from ecphoryrag.indexing import Loaded, ProgressCallback
from ecphoryrag.models.registry import Models
from ecphoryrag.parts import Parts, check_served
from ecphoryrag.ports import Encoder, Extractor, Generator, IndexedDocument, Store, Where
from ecphoryrag.settings import Settings, load_settings, with_encoder
from ecphoryrag.store import (
    backup_store,
    export_graph,
    export_store,
    kept_encoder,
    open_store,
    repair_store,
    verify_store,
)
from ecphoryrag.store.ledger import open_ledger
from ecphoryrag.text.qualified import asked_keys
from ecphoryrag.types import (
    AddReport,
    Answer,
    BackupReport,
    Document,
    DocumentSummary,
    EncoderIdentity,
    Entity,
    EraseReceipt,
    Estimate,
    ExportReport,
    ForgetReport,
    GraphReport,
    Recall,
    ReembedReport,
    RepairReport,
    StoreStatus,
    SyncReport,
    VerifyReport,
)

if TYPE_CHECKING:
    from ecphoryrag.store.graph import GraphFormat

Item: TypeAlias = Document | Mapping[str, object] | str
"""What can be added: a document, a record (``id``, ``title``, ``text``, the rest is metadata), or bare text."""

BULK = 20
"""An adding of at least so many documents, and of at least one in so many of the store's, also builds the arrays of the
next question: about a tenth of its own cost. After a smaller one the next question builds them, so that a single
document is added fast."""


NOTHING = EncoderIdentity("none", "1", 0, "none")


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
        parts: Parts | None = None,
    ) -> None:
        """Join parts that are already made; :meth:`open` makes them from the settings."""
        self._store = store
        self._settings = settings
        self._encoder = encoder
        self._extractor = extractor
        self._generator = generator
        self._parts = parts or Parts(Models(settings, None))
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
        replies = open_ledger(Path(path))
        ledger = replies if settings.models.ledger else None
        parts = Parts(Models(settings, ledger), ledger, replies)
        with ExitStack() as failing:
            failing.callback(parts.close)
            if encoder is None:
                known = kept_encoder(Path(path))
                if known is None and (read_only or not create):
                    open_store(Path(path), NOTHING, "", create=False, read_only=True).close()  # raises what is wrong
                elif known is not None:
                    check_served(Path(path), known, settings.encoder)
                encoder = parts.models.encoder(known)
                failing.callback(encoder.close)
            chosen = extractor or parts.models.extractor(generator)
            store = open_store(
                Path(path),
                encoder.identity,
                lambda: chosen.identity,
                create=create and not read_only,
                read_only=read_only,
            )
            failing.pop_all()
        return cls(store, settings, encoder, chosen, generator, parts)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the files and the models; calling it twice is harmless."""
        with ExitStack() as closing:
            closing.callback(self._parts.close)
            closing.callback(self._close_generator)
            closing.callback(self._encoder.close)
            closing.callback(self._store.close)

    def _close_generator(self) -> None:
        with self._generating:
            self._closed = True
            generator, self._generator = self._generator, None
            if generator is not None:
                generator.close()

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    @property
    def notices(self) -> tuple[str, ...]:
        """What opening the store did that you should know: that it was brought up to date, and where a copy is."""
        return self._store.notices

    def add(
        self,
        documents: Iterable[Item] | Item,
        *,
        progress: ProgressCallback | None = None,
        max_tokens: int | None = None,
    ) -> AddReport:
        """Add documents, each in a transaction of its own.

        A known id with other content is an update, with the same content nothing, unless chunks of it could not be
        extracted: these are then tried again. A document that cannot be taken is a line in ``report.failed`` and does
        not stop the others. Ctrl-C keeps what is committed and is reported. Before the extractor's language model and
        a served encoder take more than ``max_tokens`` together the work stops, and ``report.stopped`` says so.
        """
        return self._index(_loaded(documents), progress, max_tokens)

    def add_paths(
        self,
        paths: Sequence[str | Path],
        *,
        progress: ProgressCallback | None = None,
        max_tokens: int | None = None,
    ) -> AddReport:
        """Add files, folders (recursively) and globs; see :meth:`add`."""
        return self._index(indexing.load_paths(paths, self._settings.indexing), progress, max_tokens)

    def retry(self, *, progress: ProgressCallback | None = None, max_tokens: int | None = None) -> AddReport:
        """Extract the chunks that could not be extracted, of all documents, from the texts in the store."""
        with self._writing, self._parts.models.budget.limited_to(max_tokens), self._parts.telling():
            report = indexing.retry(self._store, self._extractor, progress)
            return replace(report, notices=self._parts.notices())

    def estimate(self, documents: Iterable[Item] | Item) -> Estimate:
        """What :meth:`add` would cost; nothing is stored, and no model is called."""
        return self._estimate(_loaded(documents))

    def estimate_paths(self, paths: Sequence[str | Path]) -> Estimate:
        """What :meth:`add_paths` would cost; nothing is stored, and no model is called."""
        return self._estimate(indexing.load_paths(paths, self._settings.indexing))

    def reembed(self, encoder: str | Encoder, *, progress: ProgressCallback | None = None) -> ReembedReport:
        """Move the store to another encoder, by its name in the settings or ready made.

        The store stays readable, also by other processes, and switches at once when all vectors are there; what an
        earlier run has encoded is not encoded again. Once switched this memory reads and writes with the new encoder;
        others must be opened with it. Raises SettingsError for an unknown name, StoreReadOnly, and ModelNotAvailable.
        """
        with self._writing:
            settings = self._settings
            if isinstance(encoder, str):
                settings = with_encoder(settings, encoder)
                encoder = Models(settings, self._parts.ledger).encoder(None)
            path = self._store.path
            report = indexing.reembed(self._store, encoder, settings.indexing, progress)
            if not report.switched:
                encoder.close()
                return report
            # Questions that other threads are asking are answered by the old ones, which are closed in the end.
            self._parts.retired += [self._store, self._encoder]
            self._store = open_store(path, encoder.identity, lambda: self._extractor.identity, create=False)
            self._settings, self._encoder, self._prepared = settings, encoder, recalling.PreparedCache()
            self._drop_vectors(report.interrupted)
            return report

    def recall(
        self, question: str, *, k: int | None = None, method: str | None = None, where: Where | None = None
    ) -> Recall:
        """The chunks and entities that the question brings back, best first, with their paths; no language model.

        ``k`` chunks by ``method``, both from the settings if not given, of documents whose metadata pass ``where``.
        Raises InputError for an unknown method, a ``k`` below 1, a question that is not text, or a malformed filter.
        """
        request = recalling.RecallRequest.of(self._settings.recall, k=k, method=method, where=where)
        helpers = self._helpers()
        with self._store.reading() as view:
            return recalling.recall(question, view, self._encoder, request, self._prepared, helpers)

    def ask(
        self, question: str, *, k: int | None = None, method: str | None = None, where: Where | None = None
    ) -> Answer:
        """An answer from the recalled evidence and nothing else, with the numbers of the evidence it used.

        ``answer.text`` is None, and ``answer.reason`` says why, if the evidence does not suffice, the model's reply
        cannot be used, or no language model is configured or present. Raises as :meth:`recall` does.
        """
        recalled = self.recall(question, k=k, method=method, where=where)
        with self._generating:
            generator = self._make_generator()
            return answering.answer(question, recalled, generator, self._settings.answering, self._parts.ledger)

    def forget(self, *ids: str, erase: bool = False) -> EraseReceipt | None:
        """Forget these documents, all or none. Raises DocumentNotFound, naming those that are not there.

        With ``erase``, so that no byte of the store's files tells of them: these are written anew, which takes time in
        proportion to the store, and searched; the receipt says what was removed where. Without ids it finishes an
        erasure that was killed or held up, and clears what was forgotten before without erasing.
        """
        with self._writing:
            named = [_text(id_, "the id of a document") for id_ in ids]
            if erase:
                return self._store.erase(named, self._parts.replies)
            if len(self._store.hashes(named)) == len(set(named)):
                # First what may be paid for again, so that a process killed between the two has forgotten too little
                # of the store, which is seen, and not of the replies, which would not be.
                self._parts.forget(named)
            self._store.delete(named)
            self._store.flush()
        return None

    def forget_where(
        self,
        where: Where | None = None,
        *,
        source: str | Sequence[str] = (),
        erase: bool = False,
        dry_run: bool = False,
    ) -> ForgetReport:
        """Forget the documents whose metadata pass ``where`` and which come from one of these sources.

        A source is a file, a folder with all below it, or a pattern of paths (``**`` for any folders). With ``dry_run``
        nothing is changed, and the report says what would be forgotten. Raises InputError if neither is given.
        """
        sources = [source] if isinstance(source, str) else list(source)
        chosen = indexing.chosen(self._store.documents(where or None), sources, where)
        if dry_run or not chosen:
            return ForgetReport(chosen, forgotten=False)
        return ForgetReport(chosen, forgotten=True, receipt=self.forget(*chosen, erase=erase))

    def sync(
        self,
        folder: str | Path,
        *,
        dry_run: bool = False,
        allow_empty: bool = False,
        allow_mass_forget: bool = False,
        progress: ProgressCallback | None = None,
        max_tokens: int | None = None,
    ) -> SyncReport:
        """Mirror a folder: take in new and changed files, follow moved ones, forget those that are gone.

        Documents from elsewhere are never touched; a file that is there and cannot be read, or is left out now, is not
        gone. Stopped or killed, the next run goes on. Raises InputError, with nothing changed, if the folder is not
        there; if it holds no document any more, unless ``allow_empty``; and if more than half of its documents, and
        more than ten, would be forgotten, unless ``allow_mass_forget`` or it is empty and may be.
        """
        started = time.perf_counter()
        limit = self._settings.indexing.max_file_bytes
        plan = indexing.plan_sync(
            folder, self._store.documents(), self._store.incomplete(), limit, allow_empty=allow_empty
        )
        allowed = allow_mass_forget or (allow_empty and len(plan.forgotten) == plan.own)
        refused = None if allowed else plan.refusal()
        if refused and not dry_run:
            raise InputError(refused)
        report = replace(plan.report(dry_run=dry_run), refused=refused)
        if not dry_run:
            report = self._mirror(plan, report, progress, max_tokens)
        return replace(report, seconds=time.perf_counter() - started)

    def _mirror(
        self, plan: indexing.Plan, report: SyncReport, progress: ProgressCallback | None, max_tokens: int | None
    ) -> SyncReport:
        with self._writing:
            for old, new, _ in plan.moved:
                if old != new:
                    self._parts.rename(old, new)  # first, for a reply that stays behind could not be forgotten
            self._store.move(plan.moved)
            self._store.flush()
        if plan.files:
            limit = self._settings.indexing.max_file_bytes
            indexed = self._index(plan.documents(limit), progress, max_tokens)
            report = replace(
                report,
                added=indexed.added,
                updated=indexed.updated,
                failed=(*report.failed, *indexed.failed),
                indexed=indexed,
            )
            if indexed.interrupted or indexed.stopped:
                why = f"{len(plan.forgotten)} documents that are gone were not forgotten yet; run it again"
                return replace(report, forgotten=(), postponed=why)
        if plan.forgotten:
            self.forget(*plan.forgotten)
        return report

    def get(self, id: str) -> Document:
        """The document as it was added. Raises DocumentNotFound."""
        return self._store.get(_text(id, "the id of a document"))

    def documents(self, where: Where | None = None) -> list[DocumentSummary]:
        """All documents whose metadata pass the filter, by id."""
        return self._store.documents(where)

    def inspect(self, id: str) -> IndexedDocument:
        """The document with its chunks, mentions and vectors. Raises DocumentNotFound."""
        return self._store.decisions().resolved(self._store.indexed(_text(id, "the id of a document")))

    def entity(self, name: str) -> Entity | None:
        """What is known under this name, in any spelling that has the same key."""
        with self._store.reading() as view:
            known = view.snapshot.entity_positions
            position = next(
                (known[key] for key in asked_keys(_text(name, "the name of an entity")) if key in known), None
            )
            return None if position is None else view.entities([position])[0]

    def entities(self, *, limit: int | None = None) -> list[Entity]:
        """What is known, the most often met first, then by key; at most ``limit``."""
        with self._store.reading() as view:
            found = view.entities(range(len(view.snapshot.entity_keys)))
        return sorted(found, key=lambda one: (-one.mention_count, one.key))[:limit]

    def duplicates(self, *, limit: int | None = None, least: float = recalling.LIKELY) -> list[Duplicate]:
        """Entities that may be one, with a score of at least ``least`` and the reasons, best first; at most ``limit``.

        By their names, by what the texts say, and by vectors of name and defining sentence, unless the encoder is
        `none`. A proposal is no decision: see :meth:`merge`.
        """
        with self._store.reading() as view:
            return recalling.duplicates(view, self._encoder, least)[:limit]

    def mentions(self, name: str) -> list[Place]:
        """The mentions of the entity of this name, numbered from 1. Raises EntityNotFound."""
        return self._store.decisions().places(_text(name, "the name of an entity"))

    def decisions(self) -> list[Decided]:
        """All that was decided about names, in order, with what each decision does now; those undone too."""
        return self._store.decisions().all()

    def merge(self, *names: str, into: str | None = None, reason: str = "") -> Decided:
        """Decide that these names are one thing, shown as ``into``, or else as the most frequent of them.

        Nothing is extracted again, and :meth:`undo` brings back what was before. Raises EntityNotFound for a name that
        is not known, InputError if they are one name already.
        """
        named = [_text(name, "the name of an entity") for name in names]
        with self._writing:
            made = self._store.decisions().merge(named, into, reason)
            self._store.flush()
        return made

    def split(self, name: str, qualifier: str, selection: Selection, *, reason: str = "") -> Decided:
        """Decide that the selected mentions of the name are of another thing, shown with the qualifier in brackets.

        Raises EntityNotFound for a name or mention that is not known, DocumentNotFound, and InputError for an empty
        selection, a malformed filter, or a qualifier without a word.
        """
        with self._writing:
            made = self._store.decisions().split(_text(name, "the name of an entity"), qualifier, selection, reason)
            self._store.flush()
        return made

    def undo(self, number: int) -> Decision:
        """Undo a decision by its number. Raises EntityNotFound if none of this number is in force."""
        with self._writing:
            undone = self._store.decisions().undo(number)
            self._store.flush()
        return undone

    def status(self) -> StoreStatus:
        """What the store holds, and what models were paid for it."""
        ledger, status = self._parts.ledger, self._store.status()
        return replace(
            status,
            extractor=status.extractor or self._settings.extractor,
            spending=ledger.spending() if ledger is not None else (),
            notices=(*status.notices, *self._parts.notices()),
        )

    def verify(self, *, deep: bool = False) -> VerifyReport:
        """Check the store, and with ``deep`` every row of it and all that lies beside it; nothing is changed."""
        return verify_store(self._store.path, deep=deep)

    def repair(self) -> RepairReport:
        """Mend what can be made again from the texts in the store, and list what cannot; no document is removed.

        What needs no model is one transaction. Documents whose chunks or vectors could not be used are then indexed
        again from their texts, each in a transaction of its own. Raises StoreDamaged, with nothing changed, if the
        file's own structure is damaged.
        """
        with self._writing:
            report = repair_store(self._store.path)
            pending = [self._store.get(id_) for id_ in report.pending]
        if not pending:
            return report
        made = self._index(pending, None, None)
        done = set(made.updated)
        left = tuple(id_ for id_ in report.pending if id_ not in done)
        return replace(report, pending=left, indexed=made.updated, seconds=report.seconds + made.seconds)

    def backup(self, target: str | Path) -> BackupReport:
        """Copy the store, as it is at one moment, to a file that is not there yet; others may write meanwhile."""
        return backup_store(self._store.path, Path(target))

    def export(self, output: IO[str], *, vectors: bool = False) -> ExportReport:
        """Write all that the store holds as lines of JSON, equal for equal stores; see ``docs/cli.md``."""
        return export_store(self._store.path, output, vectors=vectors)

    def export_graph(self, target: str | Path | IO[str], *, format: GraphFormat = "graphml") -> GraphReport:
        """Write documents, chunks, entities and what joins them for other tools; see ``docs/cli.md``."""
        return export_graph(self._store.path, Path(target) if isinstance(target, str) else target, format)

    def import_file(
        self, path: str | Path, *, reencode: bool = False, progress: ProgressCallback | None = None
    ) -> AddReport:
        """Take in the documents of an export, each in one transaction, with all that was derived from them.

        Vectors are taken as they are if the export has them and they come from this store's encoder; otherwise, or if
        ``reencode``, the passages are encoded. A line that cannot be taken is a line in ``report.failed``, with its
        number. Plain documents as JSONL are added as by :meth:`add_paths`. Raises InputError for any other file.
        """
        path = Path(path)
        if path.exists() and path.samefile(self._store.path):  # closing a second handle would let go of SQLite's locks
            raise InputError(f"{path} is this store itself; name an export of another.")
        if indexing.importable(path) == "documents":
            return self._index(indexing.load_records(path, self._settings.indexing), progress, None)
        with self._writing:
            try:
                with path.open("rb") as lines:
                    source = indexing.Source(lines, str(path), reencode)
                    return indexing.import_lines(source, self._store, self._encoder, self._settings.indexing, progress)
            except OSError as error:
                raise InputError(f"{path} cannot be read ({error.strerror}); name another file.") from error

    def _index(self, items: Iterable[Loaded], progress: ProgressCallback | None, max_tokens: int | None) -> AddReport:
        with self._writing, self._parts.models.budget.limited_to(max_tokens), self._parts.telling():
            report = indexing.index(
                items, self._store, self._encoder, self._extractor, self._settings.indexing, progress=progress
            )
            self._drop_vectors(report.interrupted or report.stopped is not None)
            report = replace(report, notices=self._parts.notices())
        changed = len(report.added) + len(report.updated)
        bulk = changed >= BULK and changed * BULK >= self._store.status().documents
        if bulk and not report.interrupted:
            with self._store.reading() as view:
                view.snapshot  # noqa: B018 - built and cached here
        return report

    def _estimate(self, items: Iterable[Loaded]) -> Estimate:
        extractor, ledger = self._extractor, self._parts.ledger
        calls = ledger.history("index", extractor.model) if ledger is not None and extractor.model else ()
        seconds = [usage.seconds for _, usage in calls]
        history = indexing.History(sum(seconds) / len(seconds) if seconds else None, extractor.basis)
        found = indexing.estimate(items, self._store, self._encoder, extractor, self._settings.indexing, history)
        return replace(found, basis=extractor.basis) if extractor.model else found  # known by now

    def _drop_vectors(self, unfinished: bool) -> None:  # noqa: FBT001 - what it is about
        """Let go of vectors that a server was paid for, once they are in the store."""
        if not unfinished and self._parts.ledger is not None:
            self._parts.ledger.drop_vectors()

    def _helpers(self) -> recalling.Helpers:
        """What a language model may do for a question, where the settings ask for it."""
        wanted = self._settings.recall.llm
        if not wanted.cues and not wanted.relations:
            return recalling.Helpers()
        with self._generating:
            generator = self._make_generator()
        if generator is None:
            return recalling.Helpers()
        models = self._parts.models
        return recalling.Helpers(models.cue_finder(generator), models.labeller(generator))

    def _make_generator(self) -> Generator | None:
        """The generator, made when it is first asked for; it loads its model when it is first used."""
        if self._closed:
            raise StoreError("The memory was closed while it was asked; open it again.")
        return self._generator or self._parts.models.generator()


def _loaded(documents: Iterable[Item] | Item) -> Iterable[Loaded]:
    if not isinstance(documents, Iterable | Document):
        raise InputError(f"what is to be added is a {type(documents).__name__}: give documents, records or texts")
    items: Iterable[Item] = [documents] if isinstance(documents, Document | Mapping | str) else documents
    return indexing.load_items(items)


def _text(value: str, what: str) -> str:
    """The value, if it is text as its type says: what has no type checker passes numbers and lists."""
    if not isinstance(value, str):
        raise InputError(f"{what} is a {type(value).__name__}: give it as text")
    return value
