"""A model that makes vectors, as :mod:`ecphoryrag.models.served_encoder` asks for them: one request at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.calls.budget import Budget
from ecphoryrag.errors import BadVectors, ModelError, PromptCut, PromptTooLong
from ecphoryrag.models.served import Place, Refusal, as_error
from ecphoryrag.ports import Ledger
from ecphoryrag.settings.models import ServerSettings

SMALLEST = 64
"""Characters of a text that no model refuses for its length; one that does has another reason."""
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|size|window)|too (?:large|long|many (?:input )?tokens)|(?:less|fewer) than \d+ tokens"
    r"|exceed|larger than the max|maximum (?:\w+ ){0,3}(?:tokens|length)",
    re.IGNORECASE,
)
"""How llama.cpp, vLLM, Ollama, OpenAI, Text Embeddings Inference and others say that a text is too long. Wider than for
prompts, since a mistake costs a few more requests and no more."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a server says about its model."""

    digest: str = ""
    """Of the model's file; empty where the server does not say."""
    context: int | None = None
    """Tokens of one text, at most."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """One reply: (texts, d) numbers as the server gave them, and the tokens it says it read."""

    vectors: NDArray[np.floating[Any]]
    tokens: int | None = None


class Embedder(Protocol):
    """A model that makes vectors of texts, one request a call. May be called from several threads."""

    @property
    def name(self) -> str:
        """As in the settings: backend and model."""
        ...

    @property
    def manner(self) -> str:
        """Whatever changes the vectors beside the model and the prefixes, such as the pooling; empty for nothing."""
        ...

    def describe(self) -> Described:
        """Raises ModelError; one that names the model if the server does not have it."""
        ...

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of the texts, in their order, as the model makes them.

        Raises PromptTooLong if a text is too long, and Transient, ModelNotAvailable, GenerationError or BadVectors.
        """
        ...

    def close(self) -> None:
        """Release the connection or the model; calling it twice is harmless."""
        ...


class Guarding(Protocol):
    """What makes the requests: see :class:`ecphoryrag.models.guard.Guard`."""

    def call(self, tokens: int, send: Callable[[], Embedded], spent: Callable[[Embedded], int]) -> Embedded:
        """The result of ``send``, which may take so many tokens; ``spent`` reads from it how many it took.

        Raises what ``send`` raises and, from a Transient, GenerationError when it is not tried again any more.
        """
        ...


class Unguarded:
    """Once, at once."""

    def call(self, tokens: int, send: Callable[[], Embedded], spent: Callable[[Embedded], int]) -> Embedded:
        """The result of ``send``."""
        del tokens, spent
        return send()


@dataclass(frozen=True, slots=True)
class Means:
    """What an encoder's requests go through."""

    ledger: Ledger | None = None
    budget: Budget | None = None
    """What passages may cost; questions are never refused."""
    guard: Guarding = field(default_factory=Unguarded)
    batch: int = 32
    """Texts of one request."""
    concurrency: int = 1
    """Requests under way at once."""

    @classmethod
    def of(
        cls,
        settings: ServerSettings,
        ledger: Ledger | None = None,
        budget: Budget | None = None,
        guard: Guarding | None = None,
    ) -> Means:
        """With the settings' sizes."""
        return cls(ledger, budget, guard or Unguarded(), settings.embedding_batch, settings.concurrency)


def refused(refusal: Refusal, place: Place) -> ModelError:
    """What a server's refusal to embed is: see :func:`ecphoryrag.models.served.as_error`."""
    if refusal.status in {400, 413, 422, 500} and is_too_long(refusal.message):
        return PromptTooLong(f"{place.name} at {place.address} answers {refusal.status}: {refusal.message}")
    return as_error(refusal, place)


def is_too_long(message: str) -> bool:
    """Whether servers say so of a text, each in its own words."""
    return bool(_TOO_LONG.search(message))


def as_rows(vectors: Sequence[Any], name: str) -> NDArray[np.float64]:
    """(n, d) from a reply's lists. Raises BadVectors if they are not numbers, or not equally many."""
    try:
        rows = np.asarray(vectors, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadVectors(f"{name} returned what are no vectors of one length: {error}") from error
    return rows if len(vectors) else rows.reshape(0, 0)


def check_read(texts: Sequence[str], tokens: int | None, name: str) -> None:
    """Raise PromptCut if a server read fewer tokens than the texts have words: it cut them.

    Every word is a token at least, in all tokenizers that do not join words. Short texts are left alone: no model cuts
    these, so that a low figure says only that the server does not count.
    """
    words = sum(len([word for word in text.split() if any(map(str.isalnum, word))]) for text in texts)
    if tokens and tokens < words and max(map(len, texts)) >= SMALLEST * 8:
        raise PromptCut(
            f"{name} read {tokens} tokens of texts that have {words} words: the server cuts what is too long. Set the "
            "context that it has in the settings, or lower indexing.chunks.budget"
        )
