"""The generator ``local``: any GGUF file, run in this process by llama.cpp through ``xllamacpp``.

llama.cpp's server object also listens on a free port of the loopback address. That is used here for exact token
counts, which its Python interface lacks, and is closed to everyone else by a random key.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ecphoryrag.errors import GenerationError, ModelNotAvailable, PromptTooLong
from ecphoryrag.models.files import MODEL_NAME, resolve_model
from ecphoryrag.models.packaged import encodable
from ecphoryrag.ports import JsonSchema
from ecphoryrag.settings.models import LocalModelSettings
from ecphoryrag.types import Generation, JsonValue, Message, Usage

REMEDY = "pip install 'ecphoryrag[local]'"
SILENT = 0
"""llama.cpp's verbosity: nothing on standard error. Its errors reach us as replies."""
HTTP_SECONDS = 120.0
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
        try:
            import xllamacpp  # noqa: PLC0415 - of the extra `local`
        except ImportError as error:
            raise ModelNotAvailable(f"the generator local needs the package xllamacpp: run `{REMEDY}`") from error
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelNotAvailable(f"{path} is not a GGUF file: set models.local.path to one that is")
        self._key = secrets.token_hex()
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = settings.context
        params.n_parallel = 1
        threads = settings.threads or usable_cores()
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.verbosity = SILENT
        params.warmup = False  # a question follows at once
        params.cache_ram_mib = 0  # one conversation at a time: its own cache in the slot is enough
        params.enable_reasoning = 0  # the reply has a field for it
        params.api_keys = [self._key]
        params.ui = False
        params.endpoint_slots = False
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelNotAvailable(
                f"llama.cpp cannot load {path} ({error}): the file may be damaged or incomplete, of an architecture "
                "that this version of xllamacpp does not know, or too large for the memory; "
                "set models.local.path to another, or upgrade xllamacpp"
            ) from error
        self._to_grammar = xllamacpp.json_schema_to_grammar
        self._address = urlsplit(self._server.listening_address).netloc
        properties = self._call("GET", "/props", None)
        self.context = int(properties["default_generation_settings"]["n_ctx"])

    def count(self, chat: list[JsonValue]) -> int:
        """Tokens of the chat with the model's template."""
        return int(self._call("POST", "/v1/chat/completions/input_tokens", {"messages": chat})["input_tokens"])

    def tokenize(self, text: str, *, control: bool) -> list[int]:
        """Token ids of the text; ``control`` says whether control tokens in it are read as such."""
        body: dict[str, JsonValue] = {"content": text, "add_special": False, "parse_special": control}
        tokens: list[int] = self._call("POST", "/tokenize", body)["tokens"]
        return tokens

    def grammar(self, schema: JsonSchema) -> str:
        """The grammar of JSON by this schema, without room for line breaks and indents: a fifth fewer tokens."""
        layout: dict[str, JsonValue] = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
        compact: dict[str, JsonValue] = {**schema, "x-guidance": layout}
        return str(self._to_grammar(json.dumps(compact)))

    def complete(self, request: Mapping[str, Any]) -> Generation:
        """One reply. Raises PromptTooLong or GenerationError for what the server answers with an error."""
        start = time.perf_counter()
        try:
            reply = self._server.handle_chat_completions(dict(request))
        except RuntimeError as error:
            raise GenerationError(f"llama.cpp failed: {error}. Ask again, or set another model") from error
        _raise_for(reply)
        choice, usage = reply["choices"][0], reply["usage"]
        seconds = time.perf_counter() - start
        return Generation(
            choice["message"].get("content") or "",
            choice["finish_reason"],
            Usage(1, usage["prompt_tokens"], usage["completion_tokens"], seconds=seconds),
        )

    def _call(self, method: str, path: str, body: Mapping[str, JsonValue] | None) -> Any:
        """The JSON that the server answers; `Any` since it is another program's."""
        connection = http.client.HTTPConnection(self._address, timeout=HTTP_SECONDS)
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise GenerationError(f"llama.cpp's server does not answer {path} ({error}): start again") from error
        finally:
            connection.close()
        _raise_for(reply)
        return reply


def usable_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _raise_for(reply: Mapping[str, Any]) -> None:
    error = reply.get("error")
    if not error:
        return
    message = error.get("message", error) if isinstance(error, dict) else error
    if isinstance(error, dict) and error.get("type") == "exceed_context_size_error":
        raise PromptTooLong(f"{message}: raise models.local.context or lower answering.evidence_tokens")
    raise GenerationError(f"llama.cpp refuses the request: {message}")


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
