"""What wraps a model and hands on all but what it is there for."""

from __future__ import annotations

from collections.abc import Sequence

from ecphoryrag.ports import Encoder, Generator, JsonSchema
from ecphoryrag.types import EncoderIdentity, Message


class GeneratorAround:
    """The part of a generator (port ``Generator``) that is another's: all but generating and closing."""

    def __init__(self, inner: Generator) -> None:
        self._inner = inner

    @property
    def inner(self) -> Generator:
        """The generator that is wrapped."""
        return self._inner

    @property
    def name(self) -> str:
        """Of the model."""
        return self._inner.name

    @property
    def identity(self) -> str:
        """Of the model: how it is called does not change its replies."""
        return self._inner.identity

    @property
    def context_size(self) -> int:
        """Of the model."""
        return self._inner.context_size

    @property
    def counts_exactly(self) -> bool:
        """Of the model."""
        return self._inner.counts_exactly

    def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
        """By the model."""
        return self._inner.count_tokens(messages, schema)


class EncoderAround:
    """The part of an encoder (port ``Encoder``) that is another's, whose owner closes it: all but encoding."""

    def __init__(self, inner: Encoder) -> None:
        self._inner = inner

    @property
    def identity(self) -> EncoderIdentity:
        """Of the encoder."""
        return self._inner.identity

    @property
    def title_share(self) -> float:
        """Of the encoder."""
        return self._inner.title_share

    def close(self) -> None:
        """Does nothing: whoever made the encoder closes it."""
