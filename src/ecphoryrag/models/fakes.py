"""Small deterministic stand-ins for the models, for tests and for trying things out. They are never a default."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from ecphoryrag.errors import GenerationError, PromptTooLong
from ecphoryrag.ports import Encoded, JsonSchema
from ecphoryrag.types import EncoderIdentity, Generation, Message, Usage

Script: TypeAlias = Callable[[Sequence[Message]], str]

_WORD = re.compile(r"\w+")


class HashEncoder:
    """A bag of hashed words: equal texts get equal vectors, and the more words two texts share the nearer they are."""

    def __init__(self, dimension: int = 64) -> None:
        self._dimension = dimension
        self.identity = EncoderIdentity("hash", "1", dimension, f"blake2b-{dimension}")

    @property
    def title_share(self) -> float:
        """0: title and text are read together."""
        return 0.0

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        """(len(texts), dimension) float32 unit rows; a text without a word is a zero row. A token is a word."""
        del kind
        vectors = np.zeros((len(texts), self._dimension), np.float32)
        tokens = 0
        for at, text in enumerate(texts):
            words = _WORD.findall(text.casefold())
            tokens += len(words)
            if words:
                total = np.sum([self._vector(word) for word in words], axis=0)
                vectors[at] = total / np.linalg.norm(total)
        return Encoded(vectors, tokens)

    def close(self) -> None:
        """Nothing to release."""

    def _vector(self, word: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        seed = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return np.random.default_rng(int.from_bytes(seed, "big")).standard_normal(self._dimension)


class ScriptedGenerator:
    """A generator that says what it was told to say, and remembers what it was asked. A token is a word.

    ``replies`` is a list that is worked off, one reply a call, or a function of the messages. A list that has run out
    raises GenerationError.
    """

    name = "scripted"
    identity = "scripted"
    counts_exactly = True

    def __init__(
        self, replies: Iterable[str] | Script, *, context_size: int = 4096, finish_reason: str = "stop"
    ) -> None:
        self._script = replies if callable(replies) else None
        self._replies = iter(()) if callable(replies) else iter(replies)
        self._finish_reason = finish_reason
        self.context_size = context_size
        self.asked: list[tuple[Message, ...]] = []
        self.schemas: list[JsonSchema | None] = []

    def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
        """Words of all messages."""
        del schema  # it is followed, not read
        return sum(len(message.content.split()) for message in messages)

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        """The next reply, cut to ``max_tokens`` words with finish reason ``length`` if it is longer."""
        prompt = self.count_tokens(messages)
        if prompt + max_tokens > self.context_size:
            raise PromptTooLong(
                f"the prompt has {prompt} tokens and the reply may take {max_tokens}, more than the context of "
                f"{self.context_size}: give less evidence or a larger context"
            )
        self.asked.append(tuple(messages))
        self.schemas.append(schema)
        text = self._script(messages) if self._script else next(self._replies, None)
        if text is None:
            raise GenerationError("the script has no reply left: give as many replies as there are calls")
        words = text.split()
        if len(words) > max_tokens:
            return Generation(" ".join(words[:max_tokens]), "length", Usage(1, prompt, max_tokens))
        return Generation(text, self._finish_reason, Usage(1, prompt, len(words)))

    def close(self) -> None:
        """Nothing to release."""
