"""One question to a language model, asked until the reply can be used, and never paid for twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ecphoryrag.calls.budget import Budget
from ecphoryrag.calls.reading import Unusable, read_json
from ecphoryrag.errors import ModelError, Rejected
from ecphoryrag.ports import Generator, JsonSchema, Ledger
from ecphoryrag.types import Generation, JsonValue, Message, Purpose, Usage

T = TypeVar("T")

TOO_LONG = "the reply was cut off because it was too long"
KEY_BYTES = 20


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """What is asked of a model, and how its reply is taken."""

    purpose: Purpose
    messages: tuple[Message, ...]
    schema: JsonSchema
    max_tokens: int
    read: Callable[[JsonValue], T]
    """From the reply's JSON to what is wanted. Raises Unusable, with a reason, for what cannot be used."""
    documents: tuple[str, ...] = ()
    """Whose text is in the messages: the reply is forgotten with them."""
    attempts: int = 2
    """Calls in all."""
    corrected: Callable[[str], Sequence[Message]] | None = None
    """The messages that ask again and say why; without it the reason is a last line of the last message."""
    doubt: Callable[[T], str | None] | None = None
    """Why a reply that can be used is asked for once more all the same, if there is an attempt left. It is taken if
    the next is no better."""

    def again(self, reason: str) -> tuple[Message, ...]:
        """The messages after a reply that was refused for this reason."""
        if self.corrected is not None:
            return tuple(self.corrected(reason))
        *before, last = self.messages
        return (*before, replace(last, content=f"{last.content}\n{correction(reason)}"))


@dataclass(frozen=True, slots=True)
class Asked(Generic[T]):
    """What was wanted, what it cost, and why it was asked for more than once."""

    value: T
    usage: Usage
    notes: tuple[str, ...] = ()


def correction(reason: str) -> str:
    """What a model is told when it is asked again."""
    return f"Your last reply was refused: {reason}. Reply again, correctly."


def request_key(request: Request[T], generator: Generator) -> str:
    """Hexadecimal BLAKE2b-160 of all that determines the reply: model and parameters, messages, schema, length."""
    messages: list[JsonValue] = [[message.role, message.content] for message in request.messages]
    asked = [generator.identity, messages, request.schema, request.max_tokens]
    canonical = json.dumps(asked, ensure_ascii=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode("ascii"), digest_size=KEY_BYTES).hexdigest()


def ask(
    request: Request[T], generator: Generator, *, ledger: Ledger | None = None, budget: Budget | None = None
) -> Asked[T]:
    """The reply, from the ledger if it is there, else from the model.

    A reply that cannot be used is asked for again with the reason, ``request.attempts`` times in all; one that can is
    kept in the ledger under the key of the request as it was first asked. Raises Rejected if none can be used,
    BudgetSpent if the budget has no room for the call, and what the generator raises. Each ModelError raised bears
    the usage of the calls before it, and notes on them.
    """
    asking = _Asking(request, generator, ledger, budget)
    if ledger is not None:
        kept = ledger.find(asking.key())
        if kept is not None:
            try:
                return Asked(_value(request, kept), Usage(cached=1))
            except Unusable:
                # An earlier version could read it. Asking again replaces it.
                pass
    return asking.ask()


def _value(request: Request[T], reply: Generation) -> T:
    """Raises Unusable."""
    if reply.finish_reason == "length":
        raise Unusable(TOO_LONG)
    return request.read(read_json(reply.text, request.schema))


@dataclass(frozen=True, slots=True)
class _Asking(Generic[T]):
    """One run of :func:`ask`."""

    request: Request[T]
    generator: Generator
    ledger: Ledger | None
    budget: Budget | None

    def key(self) -> str:
        return request_key(self.request, self.generator)

    def ask(self) -> Asked[T]:
        usage, notes = Usage(), list[str]()
        messages = self.request.messages
        doubted: tuple[T, Generation] | None = None
        for attempt in range(1, self.request.attempts + 1):
            try:
                reply = self._call(messages)
            except ModelError as error:
                error.usage, error.notes = usage, tuple(notes)
                raise
            usage += reply.usage
            last = attempt == self.request.attempts
            try:
                value = _value(self.request, reply)
            except Unusable as unusable:
                self._spend(reply)
                if doubted is not None:
                    self._keep(doubted[1])
                    return Asked(doubted[0], usage, tuple(notes))
                if last:
                    raise Rejected(unusable.reason, usage, tuple(notes)) from None
                reason = unusable.reason
            else:
                doubt = None if last or doubted is not None or not self.request.doubt else self.request.doubt(value)
                if doubt is None:
                    self._keep(reply)
                    return Asked(value, usage, tuple(notes))
                self._spend(reply)
                doubted = (value, replace(reply, usage=Usage()))  # what it cost is told already
                reason = doubt
            notes.append(f"asked again, since {reason}")
            messages = self.request.again(reason)
        raise AssertionError("a request has at least one attempt")

    def _call(self, messages: tuple[Message, ...]) -> Generation:
        schema, most = self.request.schema, self.request.max_tokens
        if self.budget is None:
            return self.generator.generate(messages, schema, most)
        with self.budget.reserved(self.generator.count_tokens(messages, schema) + most) as spent:
            reply = self.generator.generate(messages, schema, most)
            spent.tokens = reply.usage.input_tokens + reply.usage.output_tokens
            return reply

    def _spend(self, reply: Generation) -> None:
        if self.ledger is not None:
            self.ledger.spend(self.request.purpose, self.generator.name, reply.usage)

    def _keep(self, reply: Generation) -> None:
        if self.ledger is not None:
            name, documents = self.generator.name, self.request.documents
            self.ledger.keep(self.key(), reply, self.request.purpose, name, documents)
