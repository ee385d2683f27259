"""Settings of indexing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ecphoryrag.settings.base import Count, Group

StdinFormat = Literal["auto", "text", "markdown", "json", "jsonl"]


class ChunkSettings(Group):
    """How a document is cut."""

    budget: Annotated[int, Field(ge=16)] = 512
    """Tokens a chunk may hold: the publication's range, and a whole encyclopedia introduction."""
    overlap: Annotated[int, Field(ge=0)] = 64
    """Tokens of whole sentences repeated at the start of the next chunk, so that a fact that two sentences state
    together is in one chunk. Of a small budget never more than half is overlap."""


class ExtractionSettings(Group):
    """The extractor `llm`: one call of a language model a chunk."""

    types: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=40)], ...], Field(min_length=1)] = (
        *("person", "organization", "place", "work", "event", "product", "concept", "date"),
    )
    """The types an entity may have; what the model cannot place among them is `other`."""
    entities: Annotated[int, Field(ge=1, le=100)] = 24
    """Entities of one chunk, at most: a small model that repeats itself would otherwise never end."""
    description_words: Annotated[int, Field(ge=0, le=60)] = 10
    """Words that a description is asked to have, at most; output tokens are the cost. 0: names and types only."""
    max_tokens: Count = 768
    """Tokens a reply may take. A reply that is cut off there is a failure, never half a success."""
    attempts: Annotated[int, Field(ge=1, le=5)] = 2
    """Calls for one chunk: after a reply that cannot be used, the next is told why. Then the chunk is marked failed."""


class IndexingSettings(Group):
    """From documents to the store."""

    chunks: ChunkSettings = ChunkSettings()
    """How a document is cut."""
    max_file_bytes: Count = 32 * 2**20
    """A larger file, or line of JSONL, is refused by name rather than read into memory: five million words, more than
    the longest book, and what is derived from them still fits a small machine. A JSONL file may be of any size."""
    stdin_format: StdinFormat = "auto"
    """How standard input is read; `auto` looks whether it is JSONL or JSON, and takes it for text if not."""
    llm: ExtractionSettings = ExtractionSettings()
    """The extractor `llm`."""
    batch: Count = 64
    """Documents prepared together: encoders are faster on many texts at once; each is still its own transaction."""
