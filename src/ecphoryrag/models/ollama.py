"""The generator ``ollama``: a model of an Ollama server, by Ollama's own API.

Ollama gives a model a context of a few thousand tokens unless it is asked for another, and cuts the beginning off
whatever does not fit. So each call asks for what its prompt and reply need, and what was read is checked afterwards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ecphoryrag.calls.reasoning import without_reasoning
from ecphoryrag.errors import GenerationError, PromptCut, PromptTooLong, Transient
from ecphoryrag.models.cuts import CutCheck, Figure, Sizes
from ecphoryrag.models.ollama_client import OllamaClient, keep_alive, names, place_of
from ecphoryrag.models.served import (
    ASSUMED_CONTEXT,
    Refusal,
    as_error,
    is_about_size,
    sendable,
    whole,
    with_schema,
)
from ecphoryrag.ports import JsonSchema
from ecphoryrag.settings.models import OllamaSettings
from ecphoryrag.types import Generation, Message, Usage

if TYPE_CHECKING:
    from ollama import ChatResponse

STEP = 2048
"""Contexts are asked for in multiples of this: for every other size the server would load the model again."""
REMEDY = "Give the server OLLAMA_CONTEXT_LENGTH in its environment, or install a newer Ollama"
TRIES = 3
"""How often a server that does not answer is asked about the model, before what is assumed stays assumed."""
_MEASURING = 1


@dataclass(frozen=True, slots=True)
class _About:
    """The model, as far as the server describes it."""

    context: int
    assumed: bool
    digest: str
    think: bool | str | None
    """What to send so that it does not reason first, or as little as it can; None for a model that does not."""


class OllamaGenerator:
    """A model of an Ollama server. Opens no connection before it is used. See :class:`ecphoryrag.ports.Generator`."""

    counts_exactly = False
    """Ollama has no route for its tokenizer."""

    def __init__(self, model: str, settings: OllamaSettings) -> None:
        self._model = model
        self._settings = settings
        self._place = place_of(self.name, settings)
        self._client = OllamaClient(settings, self._place)
        self._sizes = Sizes()
        self._check = CutCheck(self.name, self._sizes, REMEDY)
        self._lock = threading.Lock()
        self._known: _About | None = None
        self._failed = 0
        self._asked_for = 0
        self._given: dict[int, int | None] = {}
        self._takes_schema = True

    @property
    def name(self) -> str:
        """``ollama/`` and the model's name."""
        return f"ollama/{self._model}"

    @property
    def identity(self) -> str:
        """The name, the digest of the model's files, and the parameters.

        Asks the server. Raises ModelNotAvailable if it is not there, or has no such model.
        """
        return f"{self.name} {self._about().digest} temperature 0 seed 0"

    @property
    def context_size(self) -> int:
        """Tokens of prompt and reply together: what the model was made for, or less if the settings say so."""
        return self._about().context

    @property
    def context_assumed(self) -> bool:
        """Whether neither the settings nor the server name the context."""
        return self._about().assumed

    @property
    def structured(self) -> str:
        """How replies are held to a schema at present, in words."""
        return f"replies held to a schema by {'format' if self._takes_schema else 'JSON mode'}"

    @property
    def notice(self) -> str | None:
        """What the user should know of this server; None if nothing."""
        if self.context_assumed:
            return f"the server does not say the model's context: {self.context_size} is assumed"
        return None

    def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
        """Prompt tokens, estimated on the high side; closer once the server has given a few figures."""
        return self._sizes.estimate(self._worded(messages, schema))

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        """A reply at temperature 0. See :meth:`ecphoryrag.ports.Generator.generate`.

        Raises PromptTooLong, PromptCut, Transient, GenerationError, and ModelNotAvailable if the package, the server,
        the model or the key is missing.
        """
        about = self._about()
        start = time.perf_counter()
        sent, reply, asked_for = self._sent(messages, schema, max_tokens, about)
        read, written = whole(reply.prompt_eval_count) or None, whole(reply.eval_count)
        cost = self._checked(sent, read, written or 0, asked_for)
        text = reply.message.content or ""
        estimated = read is None or written is None or self._check.skips_cached
        usage = Usage(
            1,
            self._sizes.estimate(sent) if read is None or self._check.skips_cached else read,
            self._sizes.estimate([Message("assistant", text)]) if written is None else written,
            seconds=time.perf_counter() - start,
            estimated=estimated,
        )
        return Generation(without_reasoning(text) or "", reply.done_reason or "stop", usage + cost)

    def close(self) -> None:
        """Close the connections; the next use opens them again. The server keeps the model as long as it was told."""
        self._client.close()

    def _sent(
        self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int, about: _About
    ) -> tuple[Sequence[Message], ChatResponse, int]:
        """What was sent, the reply, and the context it was asked to be read in."""
        larger = 0
        while True:
            takes_schema = self._takes_schema
            sent = self._worded(messages, schema)
            asked_for = self._room(self._sizes.estimate(sent), max_tokens, about, larger)
            request = self._request(sent, max_tokens, about, asked_for)
            if schema is not None:
                request["format"] = dict(schema) if takes_schema else "json"
            try:
                return sent, self._client.chat(request), asked_for
            except Refusal as refusal:
                if is_about_size(refusal) and asked_for < about.context:
                    larger = 2 * asked_for  # our estimate was too low for this text
                elif schema is not None and takes_schema and _is_about_format(refusal):
                    self._takes_schema = False
                else:
                    raise as_error(refusal, self._place) from None

    def _request(self, messages: Sequence[Message], max_tokens: int, about: _About, context: int) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "stream": False,
            "options": {"temperature": 0, "seed": 0, "num_ctx": context, "num_predict": max_tokens},
            "keep_alive": keep_alive(self._settings),
            "truncate": False,  # versions that know these two refuse what does not fit, in place of cutting it
            "shift": False,
        }
        if about.think is not None:
            request["think"] = about.think
        return request

    def _room(self, prompt: int, max_tokens: int, about: _About, larger: int) -> int:
        """The context to ask for: enough, in whole steps, and never less than before. Raises PromptTooLong."""
        need = prompt + max_tokens
        if need > about.context:
            assumed = " (assumed, since the server does not say)" if about.assumed else ""
            raise PromptTooLong(
                f"the prompt has about {prompt} tokens and the reply may take {max_tokens}, more than the context of "
                f"{about.context}{assumed} of {self.name}: give less evidence (answering.evidence_tokens), smaller "
                "chunks, or a model with a larger context (models.ollama.context)"
            )
        with self._lock:
            steps = -(-max(need, larger) // STEP) * STEP
            self._asked_for = min(max(self._asked_for, steps), about.context)
            return self._asked_for

    def _checked(self, sent: Sequence[Message], read: int | None, written: int, asked_for: int) -> Usage:
        """What it cost to make sure that the prompt was read whole. Raises PromptCut."""
        given = self._context_given(asked_for)
        kept = given is not None and given >= asked_for
        if kept:
            given = None
        if given is not None and read is not None and read + written > given:
            raise PromptCut(
                f"{self.name} runs in a context of {given} tokens, though {asked_for} were asked for, and prompt and "
                f"reply had {read + written}: their beginning was lost. {REMEDY}"
            )
        return self._check.against_estimate(sent, Figure(read), self._measured, limit=given, kept=kept)

    def _measured(self, messages: Sequence[Message]) -> Figure:
        """The server's figure for a prompt; no figure where it refuses to say so little."""
        about = self._about()
        start = time.perf_counter()
        with self._lock:
            context = self._asked_for
        try:
            reply = self._client.chat(self._request(messages, _MEASURING, about, context))
        except Refusal as refusal:
            error = as_error(refusal, self._place)
            if isinstance(error, GenerationError) and not isinstance(error, Transient):
                return Figure(None)
            raise error from None
        read, written = whole(reply.prompt_eval_count), whole(reply.eval_count)
        return Figure(read, Usage(1, read or 0, written or 0, seconds=time.perf_counter() - start))

    def _context_given(self, asked_for: int) -> int | None:
        """The context that the model was loaded with when so much was asked for; None if the server does not say."""
        with self._lock:
            if asked_for in self._given:
                return self._given[asked_for]
        try:
            models = self._client.loaded().models
        except (Refusal, Transient):
            return None
        ours = next((one for one in models if names(self._model, one.model, one.name)), None)
        given = ours.context_length if ours is not None else None
        with self._lock:
            self._given[asked_for] = given
        return given

    def _worded(self, messages: Sequence[Message], schema: JsonSchema | None) -> Sequence[Message]:
        return sendable(messages if schema is None or self._takes_schema else with_schema(messages, schema))

    def _about(self) -> _About:
        with self._lock:
            if self._known is not None:
                return self._known
            try:
                found = self._described()
            except Refusal as refusal:
                raise as_error(refusal, self._place) from None
            except Transient:
                self._failed += 1
                if self._failed < TRIES:
                    raise
                found = _About(self._settings.context or ASSUMED_CONTEXT, self._settings.context is None, "", None)
            self._known = found
            return found

    def _described(self) -> _About:
        shown = self._client.show(self._model)
        info = shown.modelinfo or {}
        most = whole(info.get(f"{info.get('general.architecture')}.context_length"))
        wanted = self._settings.context
        context = min(one for one in (most, wanted or most or ASSUMED_CONTEXT) if one)
        family = shown.details.family if shown.details else None
        think: bool | str | None = None
        if "thinking" in (shown.capabilities or ()):
            think = "low" if family in {"gptoss", "gpt-oss"} else False  # these cannot do without
        listed = self._client.listed().models
        digest = next((one.digest for one in listed if names(self._model, one.model) and one.digest), "")
        return _About(context, most is None and wanted is None, digest.removeprefix("sha256:")[:16], think)


def _is_about_format(refusal: Refusal) -> bool:
    """Versions before 0.5 know ``"json"`` alone, and others fail at schemas that they cannot turn into a grammar."""
    words = refusal.message.casefold()
    return refusal.status in {400, 422, 500} and any(word in words for word in ("format", "grammar", "schema"))
