"""The generator ``local``: any GGUF file, run in this process by llama.cpp through ``xllamacpp``."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ecphoryrag.errors import GenerationError, PromptTooLong
from ecphoryrag.models.files import MODEL_NAME, resolve_model
from ecphoryrag.models.llama_cpp import LlamaCpp, raise_for
from ecphoryrag.models.packaged import encodable
from ecphoryrag.ports import JsonSchema
from ecphoryrag.settings.models import LocalModelSettings
from ecphoryrag.types import Generation, JsonValue, Message, Usage

_CONTROL_CANDIDATE = re.compile(r"[<\[{|｜][^\s<>\[\]{}]{0,40}[>\]}|｜]")
"""What the control tokens of chat models look like, such as ``<|im_end|>``, ``</s>``, ``[INST]``."""


class LocalGenerator:
    """A language model in this process. It is loaded when first used; loading takes seconds.

    Replies are greedy (temperature 0, fixed seed). Calls from several threads queue up.
    """

    def __init__(self, settings: LocalModelSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._loaded: _Server | None = None

    @property
    def name(self) -> str:
        """``local/`` and the model file's name without its ending."""
        return f"local/{MODEL_NAME if self._settings.path is None else self._settings.path.stem}"

    @property
    def identity(self) -> str:
        """The name, and the file's size: another file under the name would answer otherwise. Greedy."""
        path = resolve_model(self._settings)
        return f"{self.name} {path.stat().st_size} greedy"

    @property
    def counts_exactly(self) -> bool:
        """Always: by the model's own tokenizer and template."""
        return True

    @property
    def context_size(self) -> int:
        """Tokens of prompt and reply together. Loads the model."""
        return self._server().context

    def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
        """Prompt tokens of the messages as :meth:`generate` sends them, chat template included. Loads the model."""
        del schema  # it constrains the reply and is not part of the prompt
        server = self._server()
        return server.count(_chat(server, messages))

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        """A reply that follows the schema, if one is given. Loads the model.

        Text in the messages that spells one of the model's control tokens is broken up, so that a document cannot end
        its turn and begin another. Raises PromptTooLong before sending what does not fit, and GenerationError if
        llama.cpp refuses or fails.
        """
        server = self._server()
        chat = _chat(server, messages)
        prompt = server.count(chat)
        if prompt + max_tokens > server.context:
            raise PromptTooLong(
                f"the prompt has {prompt} tokens and the reply may take {max_tokens}, more than the context of "
                f"{server.context}: raise models.local.context or lower answering.evidence_tokens"
            )
        request: dict[str, Any] = {"messages": chat, "max_tokens": max_tokens, "temperature": 0.0, "seed": 0}
        if schema is not None:
            request["grammar"] = server.grammar(schema)
        return server.complete(request)

    def close(self) -> None:
        """Unload the model; the next use loads it again."""
        with self._lock:
            self._loaded = None

    def _server(self) -> _Server:
        with self._lock:
            if self._loaded is None:
                self._loaded = _Server(resolve_model(self._settings), self._settings)
            return self._loaded


class _Server:
    """llama.cpp's server: completions by call, token counts by its local port."""

    def __init__(self, path: Path, settings: LocalModelSettings) -> None:
        self._llama = LlamaCpp(path, settings, _without_reasoning)
        properties = self._llama.call("GET", "/props", None)
        self.context = int(properties["default_generation_settings"]["n_ctx"])

    def count(self, chat: list[JsonValue]) -> int:
        """Tokens of the chat with the model's template."""
        return int(self._llama.call("POST", "/v1/chat/completions/input_tokens", {"messages": chat})["input_tokens"])

    def tokenize(self, text: str, *, control: bool) -> list[int]:
        """Token ids of the text; ``control`` says whether control tokens in it are read as such."""
        body: dict[str, JsonValue] = {"content": text, "add_special": False, "parse_special": control}
        tokens: list[int] = self._llama.call("POST", "/tokenize", body)["tokens"]
        return tokens

    def grammar(self, schema: JsonSchema) -> str:
        """The grammar of JSON by this schema, without room for line breaks and indents: a fifth fewer tokens."""
        layout: dict[str, JsonValue] = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
        compact: dict[str, JsonValue] = {**schema, "x-guidance": layout}
        return str(self._llama.package.json_schema_to_grammar(json.dumps(compact)))

    def complete(self, request: Mapping[str, Any]) -> Generation:
        """One reply. Raises PromptTooLong or GenerationError for what the server answers with an error."""
        start = time.perf_counter()
        try:
            reply = self._llama.server.handle_chat_completions(dict(request))
        except RuntimeError as error:
            raise GenerationError(f"llama.cpp failed: {error}. Ask again, or set another model") from error
        raise_for(reply)
        choice, usage = reply["choices"][0], reply["usage"]
        seconds = time.perf_counter() - start
        return Generation(
            choice["message"].get("content") or "",
            choice["finish_reason"],
            Usage(1, usage["prompt_tokens"], usage["completion_tokens"], seconds=seconds),
        )


def _without_reasoning(package: Any, params: Any) -> None:
    del package
    params.enable_reasoning = 0  # the reply has a field for it


def _chat(server: _Server, messages: Sequence[Message]) -> list[JsonValue]:
    return [{"role": message.role, "content": _inert(server, message.content)} for message in messages]


def _inert(server: _Server, content: str) -> str:
    """The content, with a space inside whatever the model would read as a control token."""
    text = encodable(content).replace("\0", "\N{REPLACEMENT CHARACTER}")

    def broken(match: re.Match[str]) -> str:
        return f"{match[0][0]} {match[0][1:]}" if _has_control(server, match[0]) else match[0]

    if not _has_control(server, text):
        return text
    text = _CONTROL_CANDIDATE.sub(broken, text)
    if _has_control(server, text):
        raise GenerationError(
            "the prompt holds a control token of the model that cannot be told from text: set another model, "
            "or remove it from the documents"
        )
    return text


def _has_control(server: _Server, text: str) -> bool:
    return server.tokenize(text, control=True) != server.tokenize(text, control=False)
