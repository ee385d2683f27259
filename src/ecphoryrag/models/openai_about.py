"""What a server of the OpenAI API says of itself on routes of its own: its context, and its tokenizer."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from ecphoryrag.errors import Transient
from ecphoryrag.models.openai_client import OpenAIClient
from ecphoryrag.models.served import ASSUMED_CONTEXT, PROBE_SECONDS, Refusal, whole
from ecphoryrag.types import JsonValue

Kind: TypeAlias = Literal["llama.cpp", "vllm", "lm studio", "other"]
Chat: TypeAlias = list[dict[str, JsonValue]]

TRIES = 3
"""How often a server that does not answer is asked about itself, before what is assumed stays assumed."""
_CONTEXTS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""What vLLM, and several gateways, call a model's context in their list of models."""
_FINGERPRINTS = ("n_params", "size", "n_vocab", "n_embd")
_NO_THOUGHT = {"enable_thinking": False}


@dataclass(frozen=True, slots=True)
class About:
    """A server, as far as it is known."""

    kind: Kind = "other"
    context: int = ASSUMED_CONTEXT
    assumed: bool = True
    """Whether nobody has named the context."""
    fingerprint: str = ""
    """Of the weights, where the server gives anything to tell them by."""
    takes_grammar: bool = False
    """Whether the model's first word may be held to a grammar: it does not have to think or name a channel before."""

    @property
    def template_options(self) -> dict[str, JsonValue] | None:
        """For the chat template: a model that can reason first is not to, as far as its template heeds it."""
        return dict(_NO_THOUGHT) if self.kind in {"llama.cpp", "vllm"} else None


class Inquiry:
    """Asks a server about itself when that is first needed, and once. Safe for several threads."""

    def __init__(self, client: OpenAIClient, model: str, context: int | None) -> None:
        self._client = client
        self._model = model
        self._context = context
        self._lock = threading.Lock()
        self._known: About | None = None
        self._routes: tuple[str, ...] | None = None
        self._failed = 0

    def about(self) -> About:
        """The server. Raises ModelNotAvailable if nothing is there."""
        with self._lock:
            if self._known is not None:
                return self._known
            failed = self._failed
            found = self._found()
            if self._failed == failed or self._failed >= TRIES:
                self._known = found
            return found

    def count(self, chat: Chat, options: Mapping[str, JsonValue] | None) -> int | None:
        """Prompt tokens of the chat by the model's own tokenizer and template; None where the server has no such route.

        A route that fails for once is no reason to fail: None, too.
        """
        for route in self._candidates():
            try:
                counted = self._counted(route, chat, options)
            except Refusal as refusal:
                if refusal.status < 500:
                    self._drop(route)
                continue
            except Transient:
                return None
            if counted is not None:
                return counted
            self._drop(route)
        return None

    def _candidates(self) -> tuple[str, ...]:
        kind = self.about().kind
        with self._lock:
            if self._routes is None:
                own = {"llama.cpp": ("input_tokens", "template"), "vllm": ("messages",)}
                self._routes = own.get(kind, ())
            return self._routes

    def _drop(self, route: str) -> None:
        with self._lock:
            self._routes = tuple(one for one in self._routes or () if one != route)

    def _counted(self, route: str, chat: Chat, options: Mapping[str, JsonValue] | None) -> int | None:
        client = self._client
        request: dict[str, JsonValue] = {"model": self._model, "messages": list(chat)}
        if options:
            request["chat_template_kwargs"] = dict(options)
        if route == "input_tokens":
            return whole(client.post("/chat/completions/input_tokens", request).get("input_tokens"))
        if route == "messages":
            return whole(client.post(f"{client.root}/tokenize", request | {"add_generation_prompt": True}).get("count"))
        prompt = client.post(f"{client.root}/apply-template", request).get("prompt")
        if not isinstance(prompt, str):
            return None
        body = {"content": prompt, "add_special": True, "parse_special": True}
        tokens = client.post(f"{client.root}/tokenize", body).get("tokens")
        return len(tokens) if isinstance(tokens, list) else None

    def _found(self) -> About:
        client = self._client
        props = {} if client.is_openai else self._asked(f"{client.root}/props")
        defaults = props.get("default_generation_settings")
        slot = whole(defaults.get("n_ctx")) if isinstance(defaults, dict) else None
        listed = self._listed()
        if slot:
            meta = listed.get("meta")
            told = [f"{name}={meta[name]}" for name in _FINGERPRINTS if name in meta] if isinstance(meta, dict) else []
            about = self._with("llama.cpp", slot, " ".join(told))
            return replace(about, takes_grammar=_speaks_at_once(str(props.get("chat_template") or "")))
        context = next((found for name in _CONTEXTS if (found := whole(listed.get(name)))), None)
        if context:
            return self._with("vllm" if "max_model_len" in listed else "other", context)
        if client.is_openai:
            return self._with("other", None)
        studio = self._asked(f"{client.root}/api/v0/models/{quote(self._model, safe='/')}")
        loaded = whole(studio.get("loaded_context_length"))
        most = whole(studio.get("max_context_length"))
        return self._with("lm studio" if most or loaded else "other", loaded or most)

    def _with(self, kind: Kind, context: int | None, fingerprint: str = "") -> About:
        """What the settings say of the context comes before what the server says, unless the server has less."""
        if self._context is not None:
            return About(kind, min(self._context, context or self._context), assumed=False, fingerprint=fingerprint)
        return About(kind, context or ASSUMED_CONTEXT, assumed=not context, fingerprint=fingerprint)

    def _listed(self) -> Mapping[str, Any]:
        """The model's entry in the server's list; llama.cpp lists one model, whatever it is called."""
        data = self._asked("/models").get("data")
        entries: Sequence[Any] = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
        named: Mapping[str, Any] | None = next((one for one in entries if one.get("id") == self._model), None)
        if named is not None:
            return named
        return entries[0] if len(entries) == 1 else {}

    def _asked(self, path: str) -> Mapping[str, Any]:
        """What the server says there; empty where it has no such route, or does not say."""
        try:
            return self._client.get(path, PROBE_SECONDS)
        except Refusal:
            return {}
        except Transient:
            self._failed += 1
            return {}


def _speaks_at_once(template: str) -> bool:
    """Whether a chat template leaves the beginning of a reply to us, thinking being off where it can be."""
    return "<|channel|>" not in template and ("think" not in template or "enable_thinking" in template)
