"""The generator ``openai``: any server that speaks the OpenAI chat API, such as OpenAI, vLLM, llama.cpp, LM Studio."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ecphoryrag.calls.reasoning import without_reasoning
from ecphoryrag.errors import GenerationError, PromptTooLong, Transient
from ecphoryrag.models.cuts import CutCheck, Figure, Sizes
from ecphoryrag.models.gbnf import grammar
from ecphoryrag.models.openai_about import About, Chat, Inquiry
from ecphoryrag.models.openai_client import OpenAIClient, place_of
from ecphoryrag.models.openai_forms import Dialect, Dialects, Structured, response_format, worded
from ecphoryrag.models.served import Refusal, as_error, not_the_api, sendable, whole
from ecphoryrag.ports import JsonSchema
from ecphoryrag.settings.models import OpenAISettings
from ecphoryrag.types import Generation, JsonValue, Message, Usage

CHAT = "/chat/completions"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_COUNTS = 64
"""How many prompts' sizes are remembered: a prompt is counted before it is sent, and often before that."""
_MEASURING = 1


@dataclass(frozen=True, slots=True)
class _Sent:
    """Messages as a dialect sends them, and their size."""

    messages: Sequence[Message]
    tokens: int
    exact: bool


class OpenAIGenerator:
    """A language model on a server. Opens no connection before it is used. See :class:`ecphoryrag.ports.Generator`."""

    def __init__(self, model: str, settings: OpenAISettings) -> None:
        self._model = model
        self._settings = settings
        self._place = place_of(self.name, settings)
        self._client = OpenAIClient(settings, self._place)
        self._inquiry = Inquiry(self._client, model, settings.context)
        self._dialects = Dialects(settings.structured)
        self._sizes = Sizes()
        self._check = CutCheck(
            self.name, self._sizes, "Set models.openai.context to the context that the server has, or enlarge it there"
        )
        self._lock = threading.Lock()
        self._counts: OrderedDict[str, int] = OrderedDict()

    @property
    def name(self) -> str:
        """``openai/`` and the model's name."""
        return f"openai/{self._model}"

    @property
    def identity(self) -> str:
        """The name, the server unless it is on this machine, what tells the weights apart, and the parameters.

        Asks the server. Raises ModelNotAvailable if it is not there.
        """
        host = urlsplit(self._settings.base_url).hostname or ""
        where = "" if host in _LOOPBACK else self._settings.base_url
        parts = (self.name, where, self._inquiry.about().fingerprint, self._settings.structured, "temperature 0 seed 0")
        return " ".join(part for part in parts if part)

    @property
    def context_size(self) -> int:
        """Tokens of prompt and reply together: the settings', the server's, or 8192. Asks the server."""
        return self._inquiry.about().context

    @property
    def context_assumed(self) -> bool:
        """Whether neither the settings nor the server name the context."""
        return self._inquiry.about().assumed

    @property
    def counts_exactly(self) -> bool:
        """Whether the server counts for us, by the model's tokenizer and template. Asks the server."""
        return self._exactly([Message("user", "one")]) is not None

    @property
    def structured(self) -> str:
        """How replies are held to a schema at present, in words: servers are found out by what they refuse."""
        return f"replies held to a schema by {self._dialects.now.form}"

    @property
    def structured_mode(self) -> Structured:
        """The same as the settings call it."""
        return self._dialects.now.form

    @property
    def notice(self) -> str | None:
        """What the user should know of this server; None if nothing."""
        if self.context_assumed:
            return f"the server does not say its context: {self.context_size} is assumed; set models.openai.context"
        return None

    def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
        """Prompt tokens as :meth:`generate` would send them: counted by the server, else estimated on the high side."""
        return self._sized(messages, schema, self._dialects.now).tokens

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        """A reply at temperature 0. See :meth:`ecphoryrag.ports.Generator.generate`.

        Raises PromptTooLong, PromptCut, Transient, GenerationError, and ModelNotAvailable if the package, the server,
        the model or the key is missing.
        """
        about = self._inquiry.about()
        start = time.perf_counter()
        sent: list[_Sent] = []

        def build(dialect: Dialect) -> Mapping[str, Any]:
            sized = self._sized(messages, schema, dialect)
            self._fits(sized, max_tokens, about)
            sent.append(sized)
            return self._request(sized.messages, schema, max_tokens, dialect, about)

        reply = self._posted(build)
        text, finish = self._said(reply)
        figure, written = _figures(reply)
        cost = self._checked(sent[-1], figure)
        estimated = figure is None or written is None or self._check.skips_cached
        read = sent[-1].tokens if not figure or self._check.skips_cached else figure
        output = self._estimated_output(text) if written is None else written
        usage = Usage(1, read, output, seconds=time.perf_counter() - start, estimated=estimated)
        return Generation(without_reasoning(text) or "", finish, usage + cost)

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        self._client.close()

    def _request(
        self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int, dialect: Dialect, about: About
    ) -> Mapping[str, Any]:
        limit = "max_completion_tokens" if dialect.completion_tokens else "max_tokens"
        request: dict[str, Any] = {"model": self._model, "messages": _chat(messages), limit: max_tokens}
        optional = {"temperature": 0, "seed": 0, "chat_template_kwargs": about.template_options}
        request |= {name: value for name, value in optional.items() if value is not None}
        if schema is not None:
            request |= _held_to(schema, dialect, about)
        return {name: value for name, value in request.items() if name not in dialect.left_out}

    def _posted(self, build: Any) -> Mapping[str, Any]:
        try:
            return self._dialects.send(build, lambda body: self._client.post(CHAT, body))
        except Refusal as refusal:
            raise as_error(refusal, self._place) from None

    def _fits(self, sized: _Sent, max_tokens: int, about: About) -> None:
        if sized.tokens + max_tokens <= about.context:
            return
        known = "counted" if sized.exact else "estimated"
        source = " (assumed, since the server does not say)" if about.assumed else ""
        raise PromptTooLong(
            f"the prompt has {sized.tokens} tokens ({known}) and the reply may take {max_tokens}, more than the "
            f"context of {about.context}{source} of {self.name}: give less evidence (answering.evidence_tokens), "
            "smaller chunks, or a server with a larger context (models.openai.context)"
        )

    def _sized(self, messages: Sequence[Message], schema: JsonSchema | None, dialect: Dialect) -> _Sent:
        sent = sendable(worded(messages, schema, dialect))
        exact = self._exactly(sent)
        return _Sent(sent, self._sizes.estimate(sent) if exact is None else exact, exact is not None)

    def _exactly(self, messages: Sequence[Message]) -> int | None:
        key = hashlib.blake2b(repr(messages).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        with self._lock:
            known = self._counts.get(key)
            if known is not None:
                self._counts.move_to_end(key)
                return known
        options = self._inquiry.about().template_options
        left_out = "chat_template_kwargs" in self._dialects.now.left_out
        counted = self._inquiry.count(_chat(messages), None if left_out else options)
        if counted is not None:
            with self._lock:
                self._counts[key] = counted
                while len(self._counts) > _COUNTS:
                    self._counts.popitem(last=False)
        return counted

    def _checked(self, sent: _Sent, read: int | None) -> Usage:
        """What it cost to make sure that the prompt was read whole. Raises PromptCut."""
        figure = Figure(read)
        if sent.exact:
            return self._check.against_count(sent.messages, sent.tokens, figure, self._measured)
        return self._check.against_estimate(sent.messages, figure, self._measured)

    def _measured(self, messages: Sequence[Message]) -> Figure:
        """The server's figure for a prompt; no figure where it refuses to say so little."""
        about = self._inquiry.about()
        start = time.perf_counter()
        try:
            reply = self._posted(lambda dialect: self._request(messages, None, _MEASURING, dialect, about))
        except Transient:
            raise
        except GenerationError:
            return Figure(None)
        read, written = _figures(reply)
        return Figure(read, Usage(1, read or 0, written or 0, seconds=time.perf_counter() - start))

    def _estimated_output(self, text: str) -> int:
        return self._sizes.estimate([Message("assistant", text)])

    def _said(self, reply: Mapping[str, Any]) -> tuple[str, str]:
        """What the model wrote, and why it ended."""
        choices = reply.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise not_the_api(self._place, reply)
        content = message.get("content")
        if isinstance(content, list):  # some servers give it in parts
            content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
        if not content and message.get("refusal"):
            return "", "refusal"
        return str(content or ""), str(choice.get("finish_reason") or "stop")


def _chat(messages: Sequence[Message]) -> Chat:
    return [{"role": message.role, "content": message.content} for message in messages]


def _held_to(schema: JsonSchema, dialect: Dialect, about: About) -> dict[str, JsonValue]:
    """The fields that hold the reply to the schema: a compact grammar where the server takes one."""
    if about.takes_grammar and dialect.grammar and dialect.form == "json_schema":
        compact = grammar(schema)
        if compact is not None:
            return {"grammar": compact}
    form = response_format(schema, dialect)
    return {} if form is None else {"response_format": form}


def _figures(reply: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Tokens read and written as the server reports them; None where it does not.

    Where more was cached than read, the figure holds only what was not cached (the API's own figure holds both).
    """
    usage = reply.get("usage")
    if not isinstance(usage, dict):
        return None, None
    read, written = whole(usage.get("prompt_tokens")), whole(usage.get("completion_tokens"))
    details = usage.get("prompt_tokens_details")
    cached = whole(details.get("cached_tokens")) if isinstance(details, dict) else None
    if read is not None and cached and cached > read:
        read += cached
    return read or None, written
