"""The models as a run hands them to its methods: shared, counted, and never paid twice.

Whatever a method says of its own cost, what a question took is counted here, in the same way for all methods.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Literal

from ecphoryrag.calls.budget import Budget
from ecphoryrag.errors import InputError, JobStopped, ModelError, ModelNotAvailable
from ecphoryrag.evaluation.baselines.port import Clock
from ecphoryrag.models.delegating import EncoderAround, GeneratorAround
from ecphoryrag.ports import Encoded, Encoder, Generator, JsonSchema
from ecphoryrag.types import Generation, JsonValue, Message, Usage

REPLIES = "replies.jsonl"
"""Name of the file in a run's folder."""


class Meter:
    """Adds up what models took since it was last read. May be told from several threads."""

    def __init__(self) -> None:
        self.clock = Clock()
        """For what indexing takes."""
        self._lock = threading.Lock()
        self._usage = Usage()
        self._replayed = 0.0

    def add(self, usage: Usage, *, replayed: float = 0.0) -> None:
        """``replayed`` are the seconds that a reply which was kept had taken."""
        with self._lock:
            self._usage += usage
            self._replayed += replayed
            self.clock.skip(replayed)

    def take(self) -> tuple[Usage, float]:
        """The usage since the last time, and the seconds of it that did not pass now; both start again at nothing."""
        with self._lock:
            taken = self._usage, self._replayed
            self._usage, self._replayed = Usage(), 0.0
        return taken


class MeteredEncoder(EncoderAround):
    """An encoder whose tokens are counted. Closing it is the run's affair: a method's ``close`` does nothing."""

    def __init__(self, inner: Encoder, meter: Meter) -> None:
        super().__init__(inner)
        self._meter = meter

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        """(len(texts), dimension) float32, as the encoder."""
        encoded = self._inner.encode(texts, kind)
        self._meter.add(Usage(embedding_tokens=encoded.tokens, estimated=encoded.estimated))
        return encoded


class Replies:
    """Replies that were paid for, by a hash of all that determines them. A last line that was cut off is dropped."""

    def __init__(self, path: Path) -> None:
        """Raises InputError for a line that is no reply."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._kept: dict[str, Generation] = {}
        self._file: IO[bytes] = path.open("a+b")
        self._file.seek(0)
        whole = 0
        for number, line in enumerate(self._file.read().splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            try:
                record = json.loads(line)
                reply = Generation(record["text"], record["finish_reason"], Usage(**record["usage"]))
                self._kept[record["key"]] = reply
            except (ValueError, KeyError, TypeError) as error:
                self._file.close()
                raise InputError(
                    f"{path}, line {number}: not a kept reply; remove the line (the reply is paid for again) or "
                    "restore the file"
                ) from error
        self._file.truncate(whole)

    def find(self, key: str) -> Generation | None:
        """The reply, with the usage it had when it was paid for."""
        with self._lock:
            return self._kept.get(key)

    def keep(self, key: str, reply: Generation) -> None:
        """On the disk when it returns."""
        record = {"key": key, "text": reply.text, "finish_reason": reply.finish_reason, "usage": asdict(reply.usage)}
        with self._lock:
            self._kept[key] = reply
            self._file.write(json.dumps(record, ensure_ascii=True).encode("ascii") + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; calling it twice is harmless."""
        self._file.close()


class PaidGenerator(GeneratorAround):
    """A language model whose calls are counted, kept, and limited.

    A reply that is kept costs nothing now; it is counted with what it cost when it was paid, so that a table does not
    depend on the sittings in which it was made. ``stopped`` is the error after which no more calls are made: a method,
    or the reader, may take it for a failure of one question, so the run looks here. ``paid`` are
    the tokens of prompts and replies that were paid for now.
    """

    def __init__(self, inner: Generator, meter: Meter, replies: Replies, budget: Budget, *, limited: bool) -> None:
        """``limited``: the budget has a limit, so that a call's cost must be known before it is made."""
        super().__init__(inner)
        self._meter = meter
        self._replies = replies
        self._budget = budget
        self._limited = limited
        self.stopped: ModelError | None = None
        self.paid = 0
        self._lock = threading.Lock()

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        """The kept reply, or a new one. Raises what the model raises, and BudgetSpent."""
        if self.stopped is not None:
            raise self.stopped
        key = self._key(messages, schema, max_tokens)
        kept = self._replies.find(key)
        if kept is not None:
            self._meter.add(kept.usage, replayed=kept.usage.seconds)
            return kept
        try:
            reply = self._pay(messages, schema, max_tokens)
        except (JobStopped, ModelNotAvailable) as error:
            self.stopped = error
            raise
        self._replies.keep(key, reply)
        self._meter.add(reply.usage)
        return reply

    def close(self) -> None:
        """Does nothing: closing the model is the run's affair."""

    def _pay(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        most = self._inner.count_tokens(messages, schema) + max_tokens if self._limited else 0
        with self._budget.reserved(most) as spent:
            start = time.perf_counter()
            reply = self._inner.generate(messages, schema, max_tokens)
            seconds = reply.usage.seconds or time.perf_counter() - start
            spent.tokens = reply.usage.input_tokens + reply.usage.output_tokens
        with self._lock:
            self.paid += spent.tokens
        return replace(reply, usage=replace(reply.usage, seconds=seconds))

    def _key(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> str:
        said: list[JsonValue] = [[message.role, message.content] for message in messages]
        content = json.dumps([self._inner.identity, said, schema, max_tokens], ensure_ascii=True, sort_keys=False)
        return hashlib.blake2b(content.encode("ascii"), digest_size=20).hexdigest()
