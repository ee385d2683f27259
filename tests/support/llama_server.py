"""A scripted server that follows llama.cpp's server API, and, as presets, OpenAI, vLLM and LM Studio.

    with llama_server(lambda asked: '{"town": "Dunlisk"}') as server:
        settings = OpenAISettings(base_url=server.url)
        ...
    assert server.count("/v1/chat/completions") == 1

What the model says is a function of the request (``Asked``: ``messages``, ``prompt``, ``schema``, ``number``), a string
or a ``Reply``; without one it gives the least JSON that follows the schema (:func:`instance`), or ``Yes.``. Latency,
faults, slots and refusals are set when it is made or while it runs (``server.fault = ...``, ``server.latency = ...``).
Counters: ``asked``, ``answered``, ``count(path)``, ``peak``. A prompt's tokens are those of ``loopback.tokens`` of the
chat in ChatML; replies longer than ``max_tokens`` are cut, with finish reason ``length``.

Routes of llama.cpp: ``/v1/chat/completions`` (``response_format``, ``json_schema``, ``grammar``),
``/v1/chat/completions/input_tokens``, ``/v1/embeddings`` (floats or base64), ``/v1/models``, ``/props``, ``/tokenize``,
``/apply-template``, ``/health``. Each preset has its own routes and errors:

- ``llama_server``: all of the above; what does not fit the context is refused.
- ``openai_server``: a Bearer key is required (``KEY`` unless another is given), no routes for tokens or context.
- ``vllm_server``: ``/tokenize`` takes messages, ``/v1/models`` says ``max_model_len``.
- ``lm_studio_server``: ``/api/v0/models/ID``, no ``json_object``, unknown routes answer 200 with an error in the body,
  and what does not fit is cut in silence.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.support.loopback import Asked, FaultOf, HttpError, Json, LoopbackServer, Reply, cut, tokens

ReplyOf: TypeAlias = Callable[[Asked], "str | Reply"]
EmbedOf: TypeAlias = Callable[[str], Sequence[float]]
KEY = "sk-canary-0123456789abcdef"
MODEL = "test-model"
CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
LM_STUDIO_MODELS = "/api/v0/models"
ONE_MODEL = f"{LM_STUDIO_MODELS}/"


@dataclass(frozen=True, slots=True)
class Manner:
    """What a kind of server has and does."""

    name: str
    routes: frozenset[str]
    refuses: frozenset[str] = frozenset()
    """Fields of a request, such as ``seed`` or ``grammar``, and types of ``response_format``."""
    refusal_status: int = 400
    cuts: bool = False
    """Whether a prompt that does not fit is cut in silence; else it is refused."""


COMMON = frozenset({CHAT, EMBEDDINGS, "/v1/models"})
LLAMA_CPP = Manner("llama.cpp", COMMON | {f"{CHAT}/input_tokens", "/props", "/tokenize", "/apply-template", "/health"})
OPENAI = Manner("openai", COMMON)
VLLM = Manner("vllm", COMMON | {"/tokenize", "/health"})
LM_STUDIO = Manner("lm studio", COMMON | {LM_STUDIO_MODELS}, refuses=frozenset({"json_object"}), cuts=True)


def template(messages: Sequence[Json]) -> str:
    """The chat as the model reads it (ChatML), up to where its reply begins."""
    turns = "".join(f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in messages)
    return f"{turns}<|im_start|>assistant\n"


def instance(schema: Json) -> Any:
    """The least value that follows a schema of the plain kind: deterministic, strings are ``text``."""
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return instance(schema["anyOf"][0])
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return {name: instance(one) for name, one in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema["items"]) for _ in range(schema.get("minItems", 1))]
    least = schema.get("minimum", 1)
    plain = {"integer": least, "number": least, "boolean": True, "null": None}
    return plain.get(str(kind), "text"[: schema.get("maxLength", 4)])


def hashed_vector(text: str, dimension: int = 8) -> list[float]:
    """A vector that equal texts share: numbers in -1..1 from the text's hash."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=min(64, 2 * dimension)).digest()
    numbers = [(one - 32768) / 32768 for (one,) in struct.iter_unpack(">H", digest)]
    return (numbers * (dimension // len(numbers) + 1))[:dimension]


class LlamaServer(LoopbackServer):
    """See the module. ``url`` is the base URL for settings; ``manner``, ``context`` and ``reply`` may be changed."""

    def __init__(
        self,
        reply: ReplyOf | None = None,
        *,
        manner: Manner = LLAMA_CPP,
        model: str = MODEL,
        context: int = 4096,
        embed: EmbedOf = hashed_vector,
        key: str | None = None,
        latency: float = 0.0,
        fault: FaultOf | None = None,
        slots: int | None = None,
    ) -> None:
        self.reply = reply
        self.manner = manner
        self.model = model
        self.context = context
        self.embed = embed
        super().__init__(key=key, latency=latency, fault=fault, slots=slots)

    @property
    def url(self) -> str:
        """The base URL, ``/v1`` included."""
        return f"{self.address}/v1"

    def works(self, asked: Asked) -> bool:
        """Only chats and embeddings are work for the model."""
        return asked.path in {CHAT, EMBEDDINGS}

    def refusal(self, status: int, message: str) -> Json:
        """An error in the server's own form."""
        if self.manner.name == LM_STUDIO.name and status < 500:
            return {"error": message}
        if self.manner.name == VLLM.name:
            return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": status}
        kind = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}.get(
            status, "server_error" if status >= 500 else "invalid_request_error"
        )
        return {"error": {"code": status, "message": message, "type": kind, "param": None}}

    def respond(self, asked: Asked) -> Json | list[Any]:
        """By route."""
        path = asked.path
        if path.startswith(ONE_MODEL) and LM_STUDIO_MODELS in self.manner.routes:
            path = LM_STUDIO_MODELS
        if path not in self.manner.routes:
            if self.manner.name == LM_STUDIO.name:
                return {"error": f"Unexpected endpoint or method. ({asked.method} {asked.path})"}
            raise HttpError(404, self.refusal(404, "File Not Found"))
        if path == CHAT:
            return self._chat(asked)
        if path == EMBEDDINGS:
            return self._embeddings(asked)
        if path == "/v1/models":
            return self._models()
        return self._about(path, asked)

    def count_chat(self, messages: Sequence[Json]) -> int:
        """Tokens of a chat as this server counts them."""
        return len(tokens(template(messages)))

    def _about(self, path: str, asked: Asked) -> Json:
        found = len(tokens(template(asked.messages) if asked.messages else asked.body.get("content", "")))
        counted: Json = {"tokens": list(range(found))}
        if self.manner.name == VLLM.name:
            counted |= {"count": found, "max_model_len": self.context}
        about = {"id": self.model, "object": "model", "type": "llm", "state": "loaded"}
        answers: dict[str, Json] = {
            "/health": {"status": "ok"},
            "/props": {"default_generation_settings": {"n_ctx": self.context}, "total_slots": 1},
            LM_STUDIO_MODELS: {**about, "max_context_length": 131072, "loaded_context_length": self.context},
            "/apply-template": {"prompt": template(asked.messages)},
            "/tokenize": counted,
            f"{CHAT}/input_tokens": {"object": "response.input_tokens", "input_tokens": found},
        }
        return answers[path]

    def _models(self) -> Json:
        about: Json = {"id": self.model, "object": "model", "created": 1, "owned_by": self.manner.name}
        if self.manner.name == VLLM.name:
            about["max_model_len"] = self.context
        if self.manner.name == LLAMA_CPP.name:
            about["meta"] = {"n_ctx_train": 32768, "n_vocab": 151936}
        return {"object": "list", "data": [about]}

    def _refuse_what_it_must(self, body: Json) -> None:
        form = (body.get("response_format") or {}).get("type")
        for feature in sorted(self.manner.refuses):
            status = self.manner.refusal_status
            if feature == form:
                message = f"'response_format.type' {form!r} is not supported by this server"
                raise HttpError(status, self.refusal(status, message))
            if feature in body:
                hint = " Use 'max_completion_tokens' instead." if feature == "max_tokens" else ""
                message = f"Unsupported parameter: '{feature}' is not supported with this model.{hint}"
                raise HttpError(status, self.refusal(status, message))
        if body.get("model") != self.model and self.manner.name != LLAMA_CPP.name:
            raise HttpError(404, self.refusal(404, f"The model `{body.get('model')}` does not exist."))

    def _chat(self, asked: Asked) -> Json:
        body = asked.body
        self._refuse_what_it_must(body)
        limit = int(body.get("max_tokens") or body.get("max_completion_tokens") or self.context)
        sent = self.count_chat(asked.messages)
        if sent >= self.context and not self.manner.cuts:
            error = self.refusal(400, f"the request exceeds the available context size ({sent} >= {self.context})")
            if self.manner.name == LLAMA_CPP.name:
                error["error"]["type"] = "exceed_context_size_error"
            raise HttpError(400, error)
        said = self._said(asked)
        text, reasoning = said.text or "", said.reasoning or ""
        spent = len(tokens(reasoning))
        kept = cut(text, max(0, limit - spent))
        finish = said.finish_reason or ("stop" if kept == text else "length")
        message: Json = {"role": "assistant", "content": kept if said.text is not None else None}
        if said.reasoning is not None:
            message["reasoning_content"] = said.reasoning
        answer: Json = {
            "id": f"chatcmpl-{asked.number}",
            "object": "chat.completion",
            "created": 1,
            "model": self.model,
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        }
        if said.usage:
            read = min(sent, self.context // 2) if sent >= self.context else sent
            read = read if said.prompt_tokens is None else said.prompt_tokens
            written = spent + len(tokens(kept))
            answer["usage"] = {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
                "prompt_tokens_details": {"cached_tokens": read // 2},
            }
        return answer

    def _said(self, asked: Asked) -> Reply:
        if self.reply is not None:
            said = self.reply(asked)
            return Reply(said) if isinstance(said, str) else said
        return Reply(json.dumps(instance(asked.schema)) if asked.schema is not None else "Yes.")

    def _embeddings(self, asked: Asked) -> Json:
        given = asked.body.get("input")
        texts = [given] if isinstance(given, str) else list(given or [])
        if asked.body.get("model") != self.model and self.manner.name != LLAMA_CPP.name:
            raise HttpError(404, self.refusal(404, f"The model `{asked.body.get('model')}` does not exist."))
        if any(len(tokens(text)) > self.context for text in texts):
            raise HttpError(400, self.refusal(400, "the input is larger than the max context size"))
        packed = asked.body.get("encoding_format") == "base64"
        data = []
        for index, text in enumerate(texts):
            vector = [float(number) for number in self.embed(text)]
            raw = struct.pack(f"<{len(vector)}f", *vector)
            given_back: object = base64.b64encode(raw).decode() if packed else vector
            data.append({"object": "embedding", "index": index, "embedding": given_back})
        used = sum(len(tokens(text)) for text in texts)
        return {
            "object": "list",
            "model": self.model,
            "data": data,
            "usage": {"prompt_tokens": used, "total_tokens": used},
        }


def llama_server(reply: ReplyOf | None = None, **options: Any) -> LlamaServer:
    """As llama.cpp; ``options`` are those of :class:`LlamaServer`."""
    return LlamaServer(reply, manner=LLAMA_CPP, **options)


def openai_server(reply: ReplyOf | None = None, *, key: str = KEY, **options: Any) -> LlamaServer:
    """As OpenAI: the key is required."""
    return LlamaServer(reply, manner=OPENAI, key=key, **options)


def vllm_server(reply: ReplyOf | None = None, **options: Any) -> LlamaServer:
    """As vLLM."""
    return LlamaServer(reply, manner=VLLM, **options)


def lm_studio_server(reply: ReplyOf | None = None, **options: Any) -> LlamaServer:
    """As LM Studio."""
    return LlamaServer(reply, manner=LM_STUDIO, **options)
