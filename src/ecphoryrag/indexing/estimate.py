"""What adding documents would cost, told from their chunks; nothing is called and nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ecphoryrag.indexing.items import Loaded
from ecphoryrag.indexing.passages import texts_read
from ecphoryrag.indexing.tally import Tally
from ecphoryrag.indexing.works import works_of
from ecphoryrag.ports import Encoder, Extractor, Store
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.text.tokens import count_tokens
from ecphoryrag.types import Estimate, Usage


@dataclass(frozen=True, slots=True)
class History:
    """What is known of earlier calls of the extractor's model."""

    seconds_a_call: float | None = None
    """Mean time of a call; None if there was none."""
    basis: str = "no earlier calls"
    """What the extractor's estimate of its output rests on, in words."""


def estimate(
    items: Iterable[Loaded],
    store: Store | None,
    encoder: Encoder,
    extractor: Extractor,
    settings: IndexingSettings,
    history: History,
) -> Estimate:
    """The cost of adding these documents to the store, None if it is not there yet.

    Of new documents all chunks count, of changed ones those that changed, of incomplete ones those that failed.
    Embedding tokens are estimated without a tokenizer (:func:`count_tokens`); the calls' time is divided by how many
    are made at once.
    """
    tally = Tally()
    documents = chunks = embedding = 0
    usage = Usage()
    for work in works_of(items, store, extractor, settings, tally, dry=True):
        documents += 1
        chunks += len(work.wanted)
        usage += extractor.estimate(work.document, work.wanted)
        if not work.stored and encoder.identity.dimension:
            embedding += sum(map(count_tokens, texts_read(work.heads(), work.texts(), encoder)))
    seconds = history.seconds_a_call
    return Estimate(
        documents=documents,
        chunks=chunks,
        calls=usage.calls,
        cached=usage.cached,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        embedding_tokens=embedding,
        seconds=None if seconds is None else usage.calls * seconds / extractor.parallel,
        exact_input=not usage.estimated,
        basis=history.basis if extractor.model else "no language model is called",
        failed=tuple(tally.failed),
        left_out=tuple(tally.left_out),
    )
