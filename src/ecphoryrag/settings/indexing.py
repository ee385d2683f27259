"""Settings of indexing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ecphoryrag.settings.base import Count, Group

ExtractorName = Literal["names"]
StdinFormat = Literal["auto", "text", "markdown", "json", "jsonl"]
EncoderName = Literal["static", "minilm", "none"]


class ChunkSettings(Group):
    """How a document is cut."""

    budget: Annotated[int, Field(ge=16)] = 512
    """Tokens a chunk may hold: the publication's range, and a whole encyclopedia introduction."""
    overlap: Annotated[int, Field(ge=0)] = 64
    """Tokens of whole sentences repeated at the start of the next chunk, so that a fact that two sentences state
    together is in one chunk. Of a small budget never more than half is overlap."""


class IndexingSettings(Group):
    """From documents to the store."""

    extractor: ExtractorName = "names"
    """Deterministic, needs no model, costs no token."""
    encoder: EncoderName = "static"
    """Fits every machine; `minilm` recalls better and indexes more slowly; `none` is the smallest install."""
    chunks: ChunkSettings = ChunkSettings()
    """How a document is cut."""
    max_file_bytes: Count = 32 * 2**20
    """A larger file, or line of JSONL, is refused by name rather than read into memory: five million words, more than
    the longest book, and what is derived from them still fits a small machine. A JSONL file may be of any size."""
    stdin_format: StdinFormat = "auto"
    """How standard input is read; `auto` looks whether it is JSONL or JSON, and takes it for text if not."""
    batch: Count = 64
    """Documents prepared together: encoders are faster on many texts at once; each is still its own transaction."""
