"""The seams: what a stage needs of an adapter. Each implementation passes the contract suite in ``tests/contract``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.snapshot import Snapshot
from ecphoryrag.types import (
    Chunk,
    Document,
    DocumentSummary,
    EncoderIdentity,
    Entity,
    Extraction,
    Generation,
    JsonValue,
    Mention,
    Message,
    StoreStatus,
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


class Extractor(Protocol):
    """Chunks to mentions."""

    @property
    def identity(self) -> str:
        """Name and version; changes whenever the output would."""
        ...

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> Sequence[Extraction]:
        """One extraction a chunk, in order; what it returns depends on this document alone."""
        ...


class Generator(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """As shown to the user."""
        ...

    @property
    def context_size(self) -> int:
        """Tokens that prompt and reply may take together."""
        ...

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Prompt tokens of the messages, chat template included, by the model's own tokenizer."""
        ...

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        """A reply that follows the schema, if one is given. Deterministic for equal input.

        Raises PromptTooLong before sending what does not fit, and GenerationError if the model fails.
        """
        ...

    def close(self) -> None:
        """Release the model; calling it twice is harmless."""
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


class Store(Protocol):
    """The truth: documents and what was derived from them."""

    @property
    def encoder(self) -> EncoderIdentity:
        """Whose vectors it holds."""
        ...

    def commit(self, document: IndexedDocument) -> Literal["added", "updated"]:
        """Add the document, or replace the one with its id, in one transaction."""
        ...

    def flush(self) -> None:
        """Make all commits so far safe against loss of power; called before a report is given."""
        ...

    def delete(self, ids: Sequence[str]) -> None:
        """Forget these documents, all or none. Raises DocumentNotFound, naming those that are not there."""
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
        """The document with its chunks, mentions and vectors. Raises DocumentNotFound."""
        ...

    def reading(self) -> AbstractContextManager[View]:
        """A consistent view of the newest generation."""
        ...

    def status(self) -> StoreStatus:
        """Counts and sizes."""
        ...

    def close(self) -> None:
        """Release the file; calling it twice is harmless."""
        ...
