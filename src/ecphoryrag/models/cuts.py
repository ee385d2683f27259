"""Whether a server has read all of a prompt.

Some servers cut a prompt that does not fit their context and say nothing: Ollama, LM Studio, some gateways. What they
report as read then is less than was sent. With the model's own tokenizer that is plain to see. Without it, the size of
a prompt is our estimate times a ratio, which is learnt from the server's figures for prompts too short to be cut, apart
for each mixture of scripts, since tokenizers differ most there.

A figure that looks too small is a suspicion, and never more than that, until it is measured: a sample drawn from all
over the same prompt gives the ratio of this very text, and the prompt sent once more behind a few random signs tells
whether the server only leaves out what it had in its cache. Both ask for one token in reply.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ecphoryrag.errors import PromptCut
from ecphoryrag.text.tokens import count_tokens, fitting
from ecphoryrag.types import Message, Usage

Measure: TypeAlias = Callable[[Sequence[Message]], "Figure"]
"""Sends messages for the sake of the server's count; the reply is not wanted."""

TURN_TOKENS = 6
"""What a chat template puts round each message, at least in common ones."""
CHAT_TOKENS = 8
"""What it puts round the whole."""
UNLEARNT = 1.15
"""On the high side of the estimate before a server's figures are known."""
MARGIN = 1.1
"""The same afterwards: two texts of one mixture of scripts differ by less in nearly all cases."""
LEAST = 200
"""Estimated tokens below which a figure teaches nothing, being mostly template, and is above suspicion."""
LONG = 1500
"""Estimated tokens from which a prompt may have been cut: contexts of less than 2,048 tokens are not in use."""
SUSPICIOUS = 0.8
"""Share of what is expected below which a figure is looked into."""
CUT = 0.75
"""Share of the sampled size below which a prompt was cut, all else being ruled out. A sample is a few per cent off,
mostly upward by its own template; Ollama leaves half of the context or less."""
UNLIKELY = 0.5
"""The ratio to our estimate that no tokenizer is known to go below, where nothing else is known."""
SAMPLE = 400
"""Estimated tokens of a sample."""
PIECES = 16
"""Places that a sample is drawn from."""
SLACK = 8
"""Tokens by which two exact counts may differ: a mark at the beginning, counted or not."""
_MEMORY = 20
"""How many figures the mean goes back over."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What a server says it read."""

    tokens: int | None
    """Of the prompt; None or 0 where it says nothing."""
    usage: Usage = field(default_factory=Usage)
    """What asking for it cost."""


class Sizes:
    """Estimates of prompts in a model's tokens, made better by the server's figures. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._learnt: dict[int, tuple[int, float]] = {}

    def estimate(self, messages: Sequence[Message]) -> int:
        """Tokens of the messages and their template, on the high side."""
        ratio = self.ratio(messages)
        return math.ceil(plain_size(messages) * (UNLEARNT if ratio is None else ratio * MARGIN))

    def ratio(self, messages: Sequence[Message]) -> float | None:
        """The model's tokens for each of ours in such text; None if nothing is known."""
        with self._lock:
            learnt = self._learnt.get(_mixture(messages))
        return None if learnt is None else learnt[1]

    def learn(self, messages: Sequence[Message], tokens: int) -> None:
        """Take a server's figure for a prompt that was read whole."""
        size = plain_size(messages)
        if size < LEAST or tokens <= 0:
            return
        key = _mixture(messages)
        with self._lock:
            count, mean = self._learnt.get(key, (0, 0.0))
            count = min(count + 1, _MEMORY)
            self._learnt[key] = (count, mean + (tokens / size - mean) / count)


class CutCheck:
    """Finds prompts that were cut. Safe for several threads."""

    def __init__(self, name: str, sizes: Sizes, remedy: str) -> None:
        self._name = name
        self._sizes = sizes
        self._remedy = remedy
        self._skips_cached = False
        self._verified = 0

    @property
    def skips_cached(self) -> bool:
        """Whether this server was found to report only what it had not in its cache: its figures are no sizes."""
        return self._skips_cached

    def against_count(self, messages: Sequence[Message], counted: int, figure: Figure, measure: Measure) -> Usage:
        """What the check cost. Raises PromptCut if less was read than the model's own tokenizer counted."""
        read = figure.tokens
        if not read or read >= counted - max(SLACK, counted // 100) or self._skips_cached:
            return Usage()
        again = measure(unseen(messages))
        if again.tokens and again.tokens >= counted - max(SLACK, counted // 100):
            self._skips_cached = True
            return again.usage
        raise self._cut(read, counted)

    def against_estimate(
        self,
        messages: Sequence[Message],
        figure: Figure,
        measure: Measure,
        *,
        limit: int | None = None,
        kept: bool = False,
    ) -> Usage:
        """What the check cost. Raises PromptCut if less was read than was sent, as far as can be measured.

        ``limit`` is a context that the server is known to have: what does not fit into it was cut. ``kept``: it says
        that its context is as large as the prompt needs by our estimate, so that only a plainly small figure counts.
        """
        read = figure.tokens
        if not read or not self._is_suspect(messages, read, limit, kept=kept):
            if read and not self._skips_cached:
                self._sizes.learn(messages, read)
            return Usage()
        drawn = unseen(sample_of(messages))
        sample = measure(drawn)
        if not sample.tokens:
            return sample.usage
        expected = round(plain_size(messages) * sample.tokens / plain_size(drawn))
        if read >= CUT * expected and (limit is None or expected <= limit):
            self._sizes.learn(messages, read)
            return sample.usage
        again = measure(unseen(messages))
        spent = sample.usage + again.usage
        if again.tokens and again.tokens >= CUT * expected and (limit is None or again.tokens < limit):
            self._skips_cached = self._skips_cached or again.tokens > read + SLACK + SLACK
            self._verified = max(self._verified, plain_size(messages))
            self._sizes.learn(messages, again.tokens)
            return spent
        raise self._cut(read, expected)

    def _is_suspect(self, messages: Sequence[Message], read: int, limit: int | None, *, kept: bool) -> bool:
        size = plain_size(messages)
        if size < LEAST:
            return False
        ratio = self._sizes.ratio(messages)
        if limit is not None and size * (UNLEARNT if ratio is None else ratio * MARGIN) > limit:
            return True
        if self._skips_cached:  # its figure says nothing: one that is longer than any before is measured
            return size >= LONG and size > self._verified and not kept
        if ratio is None:
            return (size >= LONG and not kept) or read < UNLIKELY * size
        return read < SUSPICIOUS * ratio * size

    def _cut(self, read: int, sent: int) -> PromptCut:
        return PromptCut(
            f"{self._name} read {read} tokens of a prompt that has about {sent}: the server cuts what does not fit its "
            f"context, and says nothing. {self._remedy}"
        )


def plain_size(messages: Sequence[Message]) -> int:
    """Tokens of the messages and a template, by our own estimate, neither high nor low."""
    return CHAT_TOKENS + sum(TURN_TOKENS + count_tokens(message.content) for message in messages)


def sample_of(messages: Sequence[Message]) -> list[Message]:
    """One message made of pieces from all over these: the same text for the same messages."""
    text = "\n".join(message.content for message in messages)
    if count_tokens(text) <= SAMPLE:
        return [Message("user", text)]
    starts = [len(text) * at // PIECES for at in range(PIECES)]
    pieces = [text[start : fitting(text, start, len(text), SAMPLE // PIECES)] for start in starts]
    return [Message("user", "\n".join(pieces))]


def unseen(messages: Sequence[Message]) -> list[Message]:
    """The messages behind a few random signs, so that no server has their beginning in its cache."""
    first = messages[0]
    return [replace(first, content=f"{secrets.token_hex(6)}\n{first.content}"), *messages[1:]]


def _mixture(messages: Sequence[Message]) -> int:
    """0 to 4 by the share of letters that are not ASCII: none to speak of, few, a third, most, all but a few."""
    signs = outside = 0
    for message in messages:
        signs += len(message.content)
        outside += sum(1 for sign in message.content if sign > "\u024f")
    share = outside / max(signs, 1)
    return sum(share > bound for bound in (0.02, 0.15, 0.4, 0.7))
