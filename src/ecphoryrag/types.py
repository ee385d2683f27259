"""The values that travel between the parts: frozen, slotted, without behaviour beyond arithmetic on themselves.

Offsets are counted in characters (Python code points), half-open: ``text[start:end]``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
Metadata: TypeAlias = Mapping[str, JsonValue]
Field: TypeAlias = Literal["text", "title"]
AboutKind: TypeAlias = Literal["title", "heading", "subject", "frequent"]
"""Why a chunk is held to be *about* an entity: it bears the document's title, a heading above the chunk, the subject
of the chunk's first sentence, or the name the chunk repeats most."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a structured document; ``document.text[start:end] == text``. Level 1 is the outermost."""

    level: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """What is remembered as one thing, updated as one thing and forgotten as one thing."""

    id: str
    text: str
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    headings: tuple[Heading, ...] = ()
    source: str | None = None
    """Where it was read from, for the reader of a report; not part of the content."""

    @property
    def content_hash(self) -> str:
        """Hexadecimal BLAKE2b-128 of title, text, metadata and headings: equal exactly if the content is."""
        content = [self.title, self.text, self.metadata, [[h.level, h.start, h.end] for h in self.headings]]
        canonical = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(canonical.encode("ascii"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence; offsets into the text it was split from."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document: ``document.text[start:end] == text``. ``ordinal`` counts from 0 within the document."""

    document_id: str
    ordinal: int
    text: str
    start: int
    end: int
    headings: tuple[str, ...] = ()
    """The headings the chunk stands under, outermost first."""


@dataclass(frozen=True, slots=True)
class Mention:
    """One occurrence of an entity's name: ``getattr(document, field)[start:end] == name``."""

    name: str
    key: str
    """The normalised name; mentions with equal keys are mentions of one entity."""
    start: int
    end: int
    field: Field = "text"
    type: str = "name"
    description: str = ""
    """The sentence that defines the entity here, or an extractor's own words."""
    importance: int = 3
    """1 (passing) to 5 (what the chunk is about)."""
    about: AboutKind | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent. Token counts come from the model's own counting unless ``estimated``."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    embedding_tokens: int = 0
    seconds: float = 0.0
    estimated: bool = False
    cached: int = 0
    """Replies that the ledger held: no call was made and nothing was spent for them."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.embedding_tokens + other.embedding_tokens,
            self.seconds + other.seconds,
            self.estimated or other.estimated,
            self.cached + other.cached,
        )


Purpose: TypeAlias = Literal["index", "cue", "relation", "answer", "embed"]
"""What a model was called for."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What was spent for one purpose with one model."""

    purpose: Purpose
    model: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class Extraction:
    """What an extractor found in one chunk."""

    mentions: tuple[Mention, ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    """Pairs of entity keys that the text itself says name one thing, such as an acronym and its expansion."""
    usage: Usage = Usage()
    dropped: int = 0
    """Names that the extractor gave and that do not stand in the chunk."""
    failure: str | None = None
    """Why this chunk has no extraction; the document is then incomplete, and adding it again tries these chunks."""


@dataclass(frozen=True, slots=True)
class Entity:
    """An engram: a name, what is known of it, and how often it was met."""

    key: str
    name: str
    type: str
    description: str
    importance: int
    aliases: tuple[str, ...]
    """Every spelling it was met under, ``name`` included, most frequent first."""
    mention_count: int
    chunk_count: int


@dataclass(frozen=True, slots=True)
class Cue:
    """What of the question starts the recall: an entity named in it, or one that a language model reads out of it."""

    text: str
    """The words of the question, or the model's."""
    start: int | None
    """None for a cue that does not stand in the question."""
    end: int | None
    entity_key: str
    entity_name: str
    weight: float
    """Share of the cue activation; the weights of a question's cues sum to 1."""


@dataclass(frozen=True, slots=True)
class Step:
    """One station on a path: a cue of the question, an entity, or the sentence that led on from one to the next."""

    kind: Literal["question", "cue", "entity", "sentence", "chunk"]
    text: str
    document_id: str | None = None
    start: int | None = None
    end: int | None = None
    field: Field = "text"


@dataclass(frozen=True, slots=True)
class Path:
    """How a chunk was reached: ``direct`` (like the question), ``spread`` (over entities), ``chain`` (a next hop)."""

    kind: Literal["direct", "spread", "chain"]
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """A ranked chunk: ``number`` counts from 1, best first."""

    number: int
    chunk: Chunk
    title: str
    score: float
    signals: Mapping[str, float]
    """The parts the score was made of, by name, such as ``dense``, ``bm25``, ``activation``, ``chain``."""
    path: Path
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankedEntity:
    """An activated entity: ``rank`` counts from 1, most active first."""

    rank: int
    entity: Entity
    score: float


@dataclass(frozen=True, slots=True)
class Relation:
    """An implicit relation: a sentence that joins two activated entities, found at question time."""

    subject: str
    object: str
    sentence: str
    document_id: str
    start: int
    end: int
    score: float
    label: str | None = None
    """The relation in a few words, subject first, if a language model was asked for it."""


@dataclass(frozen=True, slots=True)
class Recall:
    """What a question brought back, before any language model."""

    question: str
    method: str
    chunks: tuple[Evidence, ...]
    entities: tuple[RankedEntity, ...] = ()
    cues: tuple[Cue, ...] = ()
    relations: tuple[Relation, ...] = ()
    reason: str | None = None
    """Why nothing, or less than could be expected, was recalled; None if all is well."""
    usage: Usage = Usage()
    spending: tuple[Spending, ...] = ()
    """The same by purpose and model."""
    notes: tuple[str, ...] = ()
    """Whatever was done short of what was asked: a language model that gave no cues."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and all it rests on. ``text`` is None if the evidence or the model did not give one: see ``reason``."""

    question: str
    text: str | None
    reasoning: str
    evidence: tuple[Evidence, ...]
    """The evidence that was in the prompt, numbered as the model saw it."""
    cited: tuple[int, ...]
    """Numbers of the evidence that the answer says it used."""
    recall: Recall
    usage: Usage
    reason: str | None = None
    model: str | None = None
    notes: tuple[str, ...] = ()
    """Whatever was done short of what was asked: evidence left out or shortened to fit, a retry."""
    spending: tuple[Spending, ...] = ()
    """``usage`` by purpose and model."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A document or file that could not be taken in, and why."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class AddReport:
    """The outcome of adding documents: each given document is counted in exactly one of the first four groups."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    failed: tuple[Failure, ...] = ()
    left_out: tuple[Failure, ...] = ()
    """Files passed over by rule (hidden, git-ignored, symbolic links), with the rule."""
    chunks: int = 0
    """That were extracted."""
    mentions: int = 0
    """Found in them."""
    reused: int = 0
    """Chunks of updated documents that were as before: neither extracted nor encoded again."""
    empty_chunks: tuple[tuple[str, int], ...] = ()
    """(document id, chunk ordinal) of chunks in which the extractor found nothing."""
    incomplete: tuple[Failure, ...] = ()
    """Documents, of those added or updated, with chunks that could not be extracted, and why. Their text is searched;
    adding them again, or ``retry``, tries just those chunks."""
    dropped: int = 0
    """Names that the extractor gave and that do not stand in the text."""
    usage: Usage = Usage()
    spending: tuple[Spending, ...] = ()
    """``usage`` by purpose and model."""
    seconds: float = 0.0
    interrupted: bool = False
    """True if stopped by Ctrl-C; what is listed as added or updated is committed."""
    notices: tuple[str, ...] = ()
    """What the user should know, such as a ledger that cannot be written."""
    stopped: str | None = None
    """Why the work ended before its end: the budget was spent, or the model failed too often. The rest is not counted
    in any group; adding it again goes on from there."""


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """The outcome of moving a store to another encoder."""

    encoder: EncoderIdentity
    switched: bool
    """Whether the store is the new encoder's now. If not, what was encoded is kept, and the next run goes on."""
    encoded: int = 0
    """Chunks encoded by this run."""
    chunks: int = 0
    """Chunks of the store."""
    failed: tuple[Failure, ...] = ()
    """Documents with a chunk that could not be encoded, and why: with one of these the store is not switched."""
    usage: Usage = field(default_factory=Usage)
    spending: tuple[Spending, ...] = ()
    """``usage`` by purpose and model."""
    seconds: float = 0.0
    interrupted: bool = False
    """True if stopped by Ctrl-C."""
    stopped: str | None = None
    """Why the work ended before its end: the budget was spent, or the model failed too often."""
    already: bool = False
    """Whether the store was the encoder's before: there was nothing to do."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What adding documents would cost, from their chunks; nothing was called and nothing was stored."""

    documents: int
    """That need work: new, changed or incomplete."""
    chunks: int
    calls: int
    """Calls of the language model that the ledger does not hold."""
    cached: int
    """Calls that the ledger holds."""
    input_tokens: int
    output_tokens: int
    embedding_tokens: int
    seconds: float | None
    """From how long earlier calls of this model took; None if there were none."""
    exact_input: bool
    """Whether ``input_tokens`` was counted by the model's own tokenizer."""
    basis: str
    """What the estimate of the output rests on, in words."""
    failed: tuple[Failure, ...] = ()
    """What could not be read."""
    left_out: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Which vectors these are. Vectors of different identities are never compared."""

    name: str
    version: str
    dimension: int
    """0 for the encoder ``none``."""
    fingerprint: str
    """Hash of the weights and of all that changes the vectors."""


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What a store holds."""

    path: str
    format: int
    generation: int
    documents: int
    chunks: int
    entities: int
    mentions: int
    empty_chunks: int
    encoder: EncoderIdentity
    extractor: str
    bytes: int
    text_bytes: int
    incomplete: tuple[Failure, ...] = ()
    """Documents with chunks that could not be extracted, and why; the first hundred by id."""
    incomplete_documents: int = 0
    """How many such documents there are."""
    failed_chunks: int = 0
    """Their chunks without an extraction."""
    spending: tuple[Spending, ...] = ()
    """All that language models and servers were paid for this store, by purpose and model."""
    notices: tuple[str, ...] = ()
    """What the user should know, such as a ledger that cannot be written, or a copy from before the store was brought
    up to date."""
    erasure: str | None = None
    """What to do, if an erasure was begun and is not finished."""
    reembedding: str | None = None
    """How far a move to another encoder has come, if one is under way."""


Severity: TypeAlias = Literal["lost", "mendable", "note"]
"""How bad a flaw of a store is: something cannot be had back from the file; `repair` mends it; nothing is wrong, but it
is as well to know."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong with a store."""

    kind: str
    """The check that found it, such as ``integrity``, ``vector`` or ``fts``."""
    where: str
    """The document and chunk, the table or the file."""
    severity: Severity
    what: str
    remedy: str
    """What to do."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The outcome of checking a store; nothing was changed."""

    path: str
    deep: bool
    """Whether every row was looked at."""
    documents: int
    chunks: int
    entities: int
    mentions: int
    flaws: tuple[Flaw, ...] = ()
    """The first hundred of each kind."""
    unlisted: int = 0
    """How many there are beyond those."""
    seconds: float = 0.0

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong; notes may be there."""
        return not any(flaw.severity != "note" for flaw in self.flaws)


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The outcome of repairing a store."""

    path: str
    mended: tuple[Flaw, ...] = ()
    """What was wrong and is right now."""
    remaining: tuple[Flaw, ...] = ()
    """What is still wrong, found by checking all of it again."""
    pending: tuple[str, ...] = ()
    """Documents whose chunks must still be made again from their text, for which an encoder is needed."""
    indexed: tuple[str, ...] = ()
    """Documents whose chunks were made again from their text."""
    upgraded: str | None = None
    """That the store was brought up to date first, and where a copy of it as it was is."""
    receipt: EraseReceipt | None = None
    """Of an erasure that had been begun and was finished."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ExportReport:
    """The outcome of exporting a store."""

    documents: int
    chunks: int
    left_out: tuple[Failure, ...] = ()
    """Documents that cannot be read, and why."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class GraphReport:
    """The outcome of writing the graph of a store for other tools."""

    documents: int
    chunks: int
    entities: int
    edges: int
    replaced: int = 0
    """Characters that the format cannot hold, and in whose place U+FFFD stands."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class BackupReport:
    """The outcome of copying a store."""

    path: str
    """The copy."""
    bytes: int
    documents: int
    chunks: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ErasedFile:
    """A file of a store, or beside it, after an erasure."""

    name: str
    what: Literal["searched", "removed"]
    bytes_before: int
    bytes_after: int
    traces: int
    """How much of what was searched for is in it, and in no document that is left."""


@dataclass(frozen=True, slots=True)
class EraseReceipt:
    """What was removed where by an erasure, checked by reading the bytes of every file."""

    path: str
    documents: tuple[str, ...]
    """Ids of those that were erased now."""
    already_gone: tuple[str, ...]
    """Ids that an erasure begun before had removed, or that were never there; only where one was begun before."""
    rows: Mapping[str, int]
    """Rows removed, by table; ``ledger`` are replies found by their content, beside those made of the documents."""
    files: tuple[ErasedFile, ...]
    needles: int
    """Words, runs of text, and numbers made of them, that were searched for."""
    needles_left_out: int
    """How many more there were."""
    shared_needles: int
    """How many of them other documents hold: these stay."""
    shared_entities: tuple[str, ...]
    """Keys of the erased documents' entities that other documents mention: these stay, with what those say of them."""
    remaining: tuple[Failure, ...]
    """Files of the store in which something is left, or that could not be read."""
    copies: tuple[Failure, ...]
    """Files beside the store that are not its own, and hold something of what was erased."""
    pending: str | None
    """Why the erasure is not finished."""
    beyond: tuple[str, ...]
    """What an erasure does not reach."""
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether no byte of the store's own files tells of what was erased."""
        return self.pending is None and not self.remaining


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """The outcome of forgetting the documents that were chosen by a description."""

    documents: tuple[str, ...]
    """Their ids."""
    forgotten: bool
    """False if that was only tried."""
    receipt: EraseReceipt | None = None
    """Where they were erased."""


@dataclass(frozen=True, slots=True)
class SyncReport:
    """The outcome of mirroring a folder, or what it would be."""

    folder: str
    """By the one path that it has."""
    dry_run: bool
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    """Former id and id: the same content in another place, which was not worked on again."""
    forgotten: tuple[str, ...] = ()
    unchanged: int = 0
    kept: tuple[Failure, ...] = ()
    """Documents that are no longer read from the folder, and why they were not forgotten."""
    failed: tuple[Failure, ...] = ()
    left_out: tuple[Failure, ...] = ()
    indexed: AddReport | None = None
    """What came of those added and updated; None if there was nothing to do, or it was only tried."""
    postponed: str | None = None
    """What was not done, and why; the next run does it."""
    refused: str | None = None
    """Of one that was only tried: why it would be refused, unless that is allowed."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A line of the list of documents."""

    id: str
    title: str
    chunks: int
    characters: int
    metadata: Metadata
    content_hash: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A turn of a chat prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Generation:
    """What a language model returned. ``finish_reason`` is ``stop``, ``length``, or the server's own word."""

    text: str
    finish_reason: str
    usage: Usage
