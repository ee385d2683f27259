"""The seams: what a stage needs of an adapter. Each implementation passes the contract suite in ``tests/contract``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.decisions import Decided, Decision, Place, Selection
from ecphoryrag.snapshot import Snapshot
from ecphoryrag.types import (
    Chunk,
    Document,
    DocumentSummary,
    EncoderIdentity,
    Entity,
    EraseReceipt,
    Extraction,
    Generation,
    JsonValue,
    Mention,
    Message,
    Purpose,
    Relation,
    Spending,
    StoreStatus,
    Usage,
)

Vectors: TypeAlias = NDArray[np.float32]
"""(n, d), rows of unit length; a text without a single known token is a zero row."""
JsonSchema: TypeAlias = Mapping[str, JsonValue]
Where: TypeAlias = Mapping[str, JsonValue]
"""A filter on metadata: key to value, or to a list of values of which one must hold. All keys must hold. A key
with dots reaches into nested records; a list in the metadata matches if one of its items does."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Vectors, and the tokens they cost."""

    vectors: Vectors
    tokens: int
    calls: int = 0
    """Requests made of a server."""
    estimated: bool = False
    """Whether the tokens were not counted by the model."""
    cached: int = 0
    """Texts whose vectors the ledger held."""

    @property
    def usage(self) -> Usage:
        """The cost as usage."""
        return Usage(self.calls, embedding_tokens=self.tokens, estimated=self.estimated, cached=self.cached)


class Encoder(Protocol):
    """Text to vectors."""

    @property
    def identity(self) -> EncoderIdentity:
        """Which vectors these are."""
        ...

    @property
    def title_share(self) -> float:
        """Share of a passage's vector that is the vector of its title and headings; 0: they are read with the text."""
        ...

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        """(len(texts), dimension) float32. Raises ModelError, and never returns a vector in place of a failure."""
        ...

    def close(self) -> None:
        """Release the model or the connection; calling it twice is harmless."""
        ...


class Extractor(Protocol):
    """Chunks to mentions."""

    @property
    def identity(self) -> str:
        """Name and version; changes whenever the output would."""
        ...

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> Sequence[Extraction]:
        """One extraction a chunk, in order; what it returns depends on this document alone.

        May be called from several threads at once, also for parts of one document, and from some more than
        ``parallel``: what must not be exceeded, the extractor bounds. A chunk that cannot be extracted has a
        ``failure`` in its place. Raises ModelNotAvailable if the model is missing, and JobStopped if no more calls are
        made.
        """
        ...

    @property
    def model(self) -> str | None:
        """The name of the language model it calls, as in usage; None for one that calls none."""
        ...

    @property
    def basis(self) -> str:
        """What the output tokens of :meth:`estimate` rest on, in words."""
        ...

    @property
    def parallel(self) -> int:
        """How many calls of :meth:`extract` at once are of use; 1 for work of this processor."""
        ...

    def halt(self) -> None:
        """End all waiting between calls, with JobStopped, and begin no call until :meth:`resume`."""
        ...

    def resume(self) -> None:
        """Let calls begin again."""
        ...

    def estimate(self, document: Document, chunks: Sequence[Chunk]) -> Usage:
        """What extracting these chunks would cost, without calling anything; ``cached`` are those already paid."""
        ...


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that the extraction of a chunk depends on, but where its parts stand in the document."""

    key: str
    """Equal keys: equal extractions, but for the offsets."""
    elsewhere: tuple[tuple[int, int], ...] = ()
    """Spans of the text outside the chunk that mentions may stand in, such as headings; as many for equal keys."""


@runtime_checkable
class Comparable(Protocol):
    """An extractor that can tell what a chunk's extraction depends on, so that a changed document keeps what it can.

    With one that cannot, all chunks of a changed document are extracted again.
    """

    def inputs(self, document: Document, chunks: Sequence[Chunk]) -> Sequence[Inputs]:
        """For each chunk what its extraction depends on; no model is called."""
        ...


class Generator(Protocol):
    """A language model. All but ``close`` may be called from several threads."""

    @property
    def name(self) -> str:
        """As shown to the user, and in usage: backend and model, such as ``ollama/phi4``."""
        ...

    @property
    def identity(self) -> str:
        """All that changes the replies: the name, the model's digest where it has one, the sampling parameters."""
        ...

    @property
    def context_size(self) -> int:
        """Tokens that prompt and reply may take together."""
        ...

    @property
    def counts_exactly(self) -> bool:
        """Whether ``count_tokens`` is the model's own counting; if not, it is an estimate on the high side."""
        ...

    def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
        """Prompt tokens of the messages as :meth:`generate` would send them with this schema, template included."""
        ...

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        """A reply that follows the schema, if one is given. Deterministic for equal input.

        Raises PromptTooLong before sending what does not fit, PromptCut if the model read less than was sent,
        Transient for a failure that may pass, and GenerationError for any other. A model's reasoning is not part of
        the text.
        """
        ...

    def close(self) -> None:
        """Release the model; calling it twice is harmless."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """What a language model adds at question time: names, or relations with labels, and what that cost."""

    names: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    spending: tuple[Spending, ...] = ()
    notes: tuple[str, ...] = ()
    """Why it found less than could be expected, such as a model that failed: recall goes on without it."""


class CueFinder(Protocol):
    """Reads the entities out of a question, beyond those matched by name."""

    def find_cues(self, question: str) -> Finding:
        """The names; a failure of the model is a note, never an error."""
        ...


class RelationLabeller(Protocol):
    """Says in a few words how two entities that a sentence joins are related."""

    def label_relations(self, question: str, relations: Sequence[Relation]) -> Finding:
        """The same relations in the same order, with labels where the model gave one; a failure is a note."""
        ...


class Ledger(Protocol):
    """Replies that were paid for, and what was spent, beside the store and apart from it. Safe for several threads.

    A reply is found by a key of all that determines it. What :meth:`keep` has returned from survives a killed process.
    """

    def find(self, key: str) -> Generation | None:
        """The reply kept under this key, with the usage it had when it was paid for."""
        ...

    def keep(self, key: str, reply: Generation, purpose: Purpose, model: str, documents: Sequence[str] = ()) -> None:
        """Keep a reply that was accepted, made of the text of these documents, and add its usage to the spending."""
        ...

    def find_vectors(self, keys: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """For each key the vector kept under it."""
        ...

    def keep_vectors(self, keys: Sequence[str], vectors: Vectors, cost: Spending, *, lasting: bool) -> None:
        """Keep vectors that were paid for, and add the cost to the spending; those not ``lasting`` until dropped."""
        ...

    def drop_vectors(self) -> None:
        """Remove the vectors that are not lasting: what they were paid for is in the store."""
        ...

    def spend(self, purpose: Purpose, model: str, usage: Usage) -> None:
        """Add to the spending what was paid for a reply that was not accepted."""
        ...

    def spending(self) -> tuple[Spending, ...]:
        """All that was ever spent, by purpose and model, in their order."""
        ...

    def history(self, purpose: Purpose, model: str) -> tuple[tuple[str, Usage], ...]:
        """(key, usage) of the accepted replies for this purpose by this model, newest first, at most 1,000."""
        ...

    def forget(self, documents: Sequence[str]) -> None:
        """Remove the replies that were made of the text of these documents, unreadably."""
        ...

    def close(self) -> None:
        """Release the file; calling it twice is harmless."""
        ...


class Replies(Protocol):
    """A ledger's file, as far as an erasure needs it."""

    def forget(self, documents: Sequence[str]) -> None:
        """Remove the replies that were made of the text of these documents, unreadably."""
        ...

    def scrub(self, needles: Sequence[bytes]) -> int:
        """Remove every reply in which one of these stands, unreadably; how many there were."""
        ...

    def held(self, needles: Sequence[bytes]) -> dict[int, str]:
        """For each of these, by its number, that a row still holds, the table."""
        ...


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document with all that was derived from it, ready to be committed."""

    document: Document
    chunks: tuple[Chunk, ...]
    extractions: tuple[Extraction, ...]
    """One a chunk."""
    vectors: Vectors
    """(len(chunks), d)."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """A document as the store has it, without what was found in its chunks."""

    document: Document
    content_hash: str
    chunks: tuple[Chunk, ...]
    extractors: tuple[str | None, ...]
    """For each chunk the identity of the extractor that extracted it; None if it failed."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A chunk of the store that a changed document still has, under the same title and headings."""

    ordinal: int
    """In the store's state of the document."""
    moves: tuple[tuple[int, int, int], ...] | None
    """(start, end, by) of spans of the former text: mentions in them move by so much, and else stay as they are. None:
    the chunk was extracted anew."""


@dataclass(frozen=True, slots=True)
class Revision:
    """What is to be changed of a document in the store."""

    basis: str
    """Content hash of the state that it changes."""
    document: Document
    chunks: tuple[Chunk, ...]
    kept: Mapping[int, Kept]
    """By ordinal."""
    extractions: Mapping[int, Extraction]
    """By ordinal, of the chunks that were extracted."""
    vectors: Vectors
    """(n, d) of the chunks that are not kept, in order."""


EXPORT_VERSION = 2
"""Of the lines that a store is exported as. 2: behind the documents come decisions about names, if there are any."""
PLAIN_EXPORT_VERSION = 1
"""Of an export without decisions, which earlier versions of this package read too."""
DECISION = "decision"
"""The one key of a line that holds a decision."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A document as an export holds it."""

    indexed: IndexedDocument
    """Its vectors are (chunks, 0) if the export has none."""
    extractor: str
    """The identity of the extractor of all chunks but those that another completed."""
    completed: Mapping[int, str]
    """By ordinal the extractors of chunks that had failed before."""


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as a view returns it."""

    chunk: Chunk
    title: str
    metadata: Mapping[str, JsonValue]


class View(Protocol):
    """A consistent reading of one generation; valid inside the ``with`` that made it."""

    @property
    def snapshot(self) -> Snapshot:
        """The arrays of this generation."""
        ...

    def terms(self, text: str) -> list[str]:
        """The text as terms of the lexical index, in order, repeats kept."""
        ...

    def matching(self, where: Where) -> NDArray[np.bool_]:
        """(n,) which chunks belong to documents that pass the filter. Raises InputError for one that is malformed."""
        ...

    def chunks(self, positions: Sequence[int]) -> list[StoredChunk]:
        """The chunks at these positions of the snapshot, in the order asked for."""
        ...

    def mentions(self, positions: Sequence[int]) -> list[list[Mention]]:
        """For each of these chunks the mentions in its text and title, by offset; linked names are not among them."""
        ...

    def entities(self, positions: Sequence[int]) -> list[Entity]:
        """The entities at these positions of the snapshot, in the order asked for."""
        ...

    def entity_vectors(self, encoder: Encoder) -> Vectors:
        """(m, d) vectors of name and defining sentence of all entities, computed on first need and cached."""
        ...


@dataclass(frozen=True, slots=True)
class PendingChunk:
    """A chunk that has no vector yet by the encoder that its store is moved to."""

    row: int
    """Of the chunk in the store."""
    title: str
    """Of its document."""
    chunk: Chunk
    content_hash: str
    """Of its document, by which a chunk is told from a later one in its row."""


class Reembedding(Protocol):
    """A move of a store to another encoder; the store is read and written as ever until it is finished."""

    @property
    def target(self) -> EncoderIdentity:
        """The encoder that the store is moved to."""
        ...

    def progress(self) -> tuple[int, int]:
        """How many chunks have a vector by the target, and how many there are."""
        ...

    def pending(self, limit: int, after: int = 0) -> list[PendingChunk]:
        """At most so many of the chunks beyond this row that have none, by row."""
        ...

    def put(self, chunks: Sequence[PendingChunk], vectors: Vectors) -> None:
        """Keep the vectors (len(chunks), d) of these chunks, but of those alone that are still as they were.

        What it has returned from survives a killed process.
        """
        ...

    def finish(self) -> bool:
        """Switch, at once and for all; False, and nothing changed, if chunks are pending.

        The store must then be opened again with the target.
        """
        ...


class Deciding(Protocol):
    """Decisions of the user about names: recorded, reversible, and followed when arrays are built."""

    def all(self) -> list[Decided]:
        """Every decision in the order in which they were made, those undone too, with what it does now."""
        ...

    def record(self, decisions: Iterable[Decision]) -> list[Decision]:
        """Record decisions as they are, in one transaction. Raises InputError for one that says nothing."""
        ...

    def merge(self, names: Sequence[str], into: str | None = None, reason: str = "") -> Decided:
        """Decide that these names are one thing. Raises EntityNotFound, and InputError if they are one name."""
        ...

    def split(self, name: str, qualifier: str, selection: Selection, reason: str = "") -> Decided:
        """Decide that these mentions are of another thing. Raises EntityNotFound, DocumentNotFound, InputError."""
        ...

    def undo(self, number: int) -> Decision:
        """Undo a decision. Raises EntityNotFound if none of this number is in force."""
        ...

    def places(self, name: str) -> list[Place]:
        """The mentions of the entity of this name, numbered. Raises EntityNotFound."""
        ...

    def resolved(self, indexed: IndexedDocument) -> IndexedDocument:
        """The document with the keys of the entities that its mentions are of."""
        ...


class Store(Protocol):
    """The truth: documents and what was derived from them."""

    @property
    def path(self) -> Path:
        """Where it is."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What its opening did that the user should know, such as bringing it up to date."""
        ...

    @property
    def encoder(self) -> EncoderIdentity:
        """Whose vectors it holds."""
        ...

    def commit(self, document: IndexedDocument) -> Literal["added", "updated"]:
        """Add the document, or replace the one with its id, in one transaction."""
        ...

    def earlier(self, id: str) -> Earlier | None:
        """The document's present state, for a revision of it; None if there is none."""
        ...

    def revise(self, revision: Revision) -> None:
        """Change what a revision changes, in one transaction; all else of the document keeps its rows.

        The extractor of all its chunks is then the present one. Raises DocumentNotFound, with nothing changed, if the
        document is gone or has another content by now.
        """
        ...

    def note_sources(self, sources: Mapping[str, str | None]) -> None:
        """Put down where documents of these ids are read from now; one that is not there is passed over."""
        ...

    def restore(self, document: Exported) -> Literal["added", "updated"]:
        """As :meth:`commit`, with the extractors that an export names in place of the present one."""
        ...

    def complete(self, id: str, content_hash: str, extractions: Mapping[int, Extraction]) -> None:
        """Put these extractions, by ordinal, in the place of those that failed; all else of the document stays.

        One transaction. An extraction may have failed again; chunks that have not failed are left as they are. Raises
        DocumentNotFound, with nothing changed, if the document is gone or has another content by now.
        """
        ...

    def incomplete(self) -> list[str]:
        """Ids of the documents with failed chunks, in order."""
        ...

    def flush(self) -> None:
        """Make all commits so far safe against loss of power; called before a report is given."""
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Forget these documents, all or none. Raises DocumentNotFound, naming those that are not there."""
        ...

    def move(self, moves: Sequence[tuple[str, str, str]]) -> None:
        """Give documents, by their ids, other ids and sources, all in one transaction; nothing is derived again.

        Raises DocumentNotFound, and InputError if a new id is another document's, with nothing changed.
        """
        ...

    def erase(self, ids: Sequence[str], replies: Replies | None = None) -> EraseReceipt:
        """Forget these documents so that no byte of the store's files, and of this ledger's, tells of them.

        Raises DocumentNotFound, with nothing changed, unless an erasure was begun before and is not finished.
        """
        ...

    def hashes(self, ids: Sequence[str]) -> dict[str, str]:
        """Content hash of each of these documents that is there."""
        ...

    def get(self, id: str) -> Document:
        """Raises DocumentNotFound."""
        ...

    def documents(self, where: Where | None = None) -> list[DocumentSummary]:
        """All documents that pass the filter, by id."""
        ...

    def indexed(self, id: str) -> IndexedDocument:
        """The document with its chunks, extractions, failed ones among them, and vectors. Raises DocumentNotFound."""
        ...

    def decisions(self) -> Deciding:
        """What is decided about names."""
        ...

    def reading(self) -> AbstractContextManager[View]:
        """A consistent view of the newest generation."""
        ...

    def status(self) -> StoreStatus:
        """Counts and sizes."""
        ...

    def reembed(self, target: EncoderIdentity) -> Reembedding:
        """Begin to move the store to this encoder, or go on with it; a move to another one is given up for it.

        A store of which the move is finished, by whomever, raises EncoderMismatch at the next reading or writing.
        """
        ...

    def close(self) -> None:
        """Release the file; calling it twice is harmless."""
        ...
