"""Which chunks' replies a store's ledger holds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ecphoryrag.models.llm_extractor import LLMExtractor
from ecphoryrag.models.openai import OpenAIGenerator
from ecphoryrag.ports import JsonSchema
from ecphoryrag.settings import Settings, split_name
from ecphoryrag.store.ledger import open_ledger
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.types import Document, Generation, Message
from tests.support.ordeals import Place


@dataclass(frozen=True)
class Silent:
    """A generator that is known by its identity alone: the ledger is asked about it, and no server."""

    name: str
    identity: str
    context_size: int = 4096
    counts_exactly: bool = False

    def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
        """Of no interest."""
        return 1

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        """Never."""
        raise AssertionError("asking what was paid calls no model")

    def close(self) -> None:
        """Nothing is held."""


def paid_places(store: Path, settings: Settings, documents: Sequence[Document]) -> set[Place]:
    """The chunks that would be extracted without a call, by the model that the settings name."""
    with closing(OpenAIGenerator(split_name(settings.generator)[1], settings.models.openai)) as generator:
        silent = Silent(generator.name, generator.identity)
    with closing(open_ledger(store)) as ledger:
        extractor = LLMExtractor(silent, settings.indexing.llm, ledger)
        return {
            (document.id, chunk.ordinal)
            for document in documents
            for chunk in chunk_document(document, settings.indexing.chunks)
            if extractor.estimate(document, [chunk]).cached
        }
