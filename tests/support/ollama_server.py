"""A scripted server that follows Ollama's API document, its silent truncation included.

    with OllamaServer(lambda asked: '{"town": "Dunlisk"}') as server:
        settings = OllamaSettings(base_url=server.address)
        ...
    assert server.chats[-1].read == server.chats[-1].sent  # nothing was cut

Replies, latency, faults, slots and counters are as in ``llama_server`` (``loopback.LoopbackServer``). The context is
2,048 tokens unless ``options.num_ctx`` asks for another, at most what the model was trained with. A prompt that does
not fit loses its beginning, and nothing is said: ``prompt_eval_count`` is what was read. How a server may differ:

- ``ignores_num_ctx``: the context stays the default;
- ``keeps``: ``all`` of the context is filled with the end of the prompt (older versions), or ``half`` (newer ones);
- ``honours_truncate``: ``"truncate": false`` makes it refuse instead (newer versions);
- ``counts``: ``whole`` prompts, or only those tokens that were not ``cached`` from the last call, nothing being said
  where all were (versions before 0.2);
- ``says_context``: whether ``/api/ps`` gives ``context_length`` (newer versions);
- ``thinks``: the model reasons first unless told not to.

A token is a piece of ``loopback.tokens``. ``loads`` are the contexts that the model was loaded with, one for each load.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.support.llama_server import EmbedOf, ReplyOf, hashed_vector, instance, template
from tests.support.loopback import Asked, FaultOf, HttpError, Json, LoopbackServer, Reply, cut, tokens

MODEL = "phi4"
DEFAULT_CONTEXT = 2048
CHAT = "/api/chat"
EMBED = "/api/embed"


@dataclass(frozen=True, slots=True)
class Version:
    """How this Ollama differs from others: see the module."""

    ignores_num_ctx: bool = False
    keeps: Literal["all", "half"] = "all"
    honours_truncate: bool = False
    counts: Literal["whole", "uncached"] = "whole"
    says_context: bool = True
    thinks: bool = False


@dataclass(frozen=True, slots=True)
class Chat:
    """One call of the chat route: the context it ran in, and the tokens that were sent and read."""

    context: int
    sent: int
    read: int


class OllamaServer(LoopbackServer):
    """See the module. ``version``, ``reply``, ``embed`` and ``digest`` may be changed while it runs."""

    def __init__(
        self,
        reply: ReplyOf | None = None,
        *,
        version: Version = Version(),
        model: str = MODEL,
        model_context: int = 16384,
        embed: EmbedOf = hashed_vector,
        key: str | None = None,
        latency: float = 0.0,
        fault: FaultOf | None = None,
        slots: int | None = None,
    ) -> None:
        self.reply = reply
        self.version = version
        self.model = model
        self.model_context = model_context
        self.embed = embed
        self.digest = hashlib.sha256(model.encode()).hexdigest()
        self.loads: list[int] = []
        self.chats: list[Chat] = []
        self._last: list[str] = []
        super().__init__(key=key, latency=latency, fault=fault, slots=slots)

    def works(self, asked: Asked) -> bool:
        """Only chats and embeddings are work for the model."""
        return asked.path in {CHAT, EMBED}

    def refusal(self, status: int, message: str) -> Json:
        """An error in Ollama's form."""
        del status
        return {"error": message}

    def respond(self, asked: Asked) -> Json | list[Any]:
        """By route."""
        routes: dict[str, Callable[[Asked], Json]] = {
            CHAT: self._chat,
            EMBED: self._embeddings,
            "/api/show": self._show,
            "/api/tags": lambda _: {"models": [self._about()]},
            "/api/ps": lambda _: {"models": self._loaded()},
            "/api/version": lambda _: {"version": "0.12.6"},
        }
        if asked.path not in routes:
            raise HttpError(404, {"error": "404 page not found"})
        return routes[asked.path](asked)

    def count_chat(self, messages: Sequence[Json]) -> int:
        """Tokens of a chat as this server counts them."""
        return len(tokens(template(messages)))

    @property
    def tag(self) -> str:
        """The model's full name."""
        return self.model if ":" in self.model else f"{self.model}:latest"

    def _about(self) -> Json:
        details = {"format": "gguf", "family": "test", "parameter_size": "1B", "quantization_level": "Q4_K_M"}
        return {"name": self.tag, "model": self.tag, "digest": self.digest, "size": 1, "details": details}

    def _loaded(self) -> list[Json]:
        if not self.loads:
            return []
        context = {"context_length": self.loads[-1]} if self.version.says_context else {}
        return [{**self._about(), **context}]

    def _known(self, asked: Asked) -> None:
        if asked.body.get("model") not in {self.model, self.tag}:
            raise HttpError(404, {"error": f"model '{asked.body.get('model')}' not found"})

    def _show(self, asked: Asked) -> Json:
        self._known(asked)
        info = {"general.architecture": "test", "test.context_length": self.model_context, "test.embedding_length": 8}
        able = ["completion", "thinking"] if self.version.thinks else ["completion"]
        return {"details": self._about()["details"], "model_info": info, "capabilities": able, "template": "{{ . }}"}

    def _load(self, asked: Asked) -> int:
        wanted = (asked.body.get("options") or {}).get("num_ctx")
        context = DEFAULT_CONTEXT if self.version.ignores_num_ctx or not wanted else int(wanted)
        context = min(context, self.model_context)
        if not self.loads or self.loads[-1] != context:
            self.loads.append(context)
            self._last = []
        return context

    def _chat(self, asked: Asked) -> Json:
        self._known(asked)
        if asked.body.get("think") and not self.version.thinks:
            raise HttpError(400, {"error": f'"{self.model}" does not support thinking'})
        if asked.body.get("stream") is not False:
            raise HttpError(400, {"error": "this server does not stream"})
        context = self._load(asked)
        prompt = tokens(template(asked.messages))
        read = self._read(asked, prompt, context)
        self.chats.append(Chat(context, len(prompt), len(read)))
        said = self._said(asked)
        thought = "" if asked.body.get("think") is False else said.reasoning or ""
        limit = int((asked.body.get("options") or {}).get("num_predict", -1))
        limit = context if limit < 0 else limit
        kept = cut(said.text or "", max(0, limit - len(tokens(thought))))
        finish = said.finish_reason or ("stop" if kept == said.text else "length")
        message = {"role": "assistant", "content": kept, **({"thinking": thought} if thought else {})}
        counted = self._counted(read) if said.prompt_tokens is None else said.prompt_tokens
        self._last = read
        answer: Json = {"model": self.tag, "created_at": "2025-01-01T00:00:00Z", "message": message, "done": True}
        answer |= {"done_reason": finish, "total_duration": 1, "load_duration": 1, "eval_duration": 1}
        if said.usage:
            answer["eval_count"] = len(tokens(kept)) + len(tokens(thought))
            if counted:
                answer["prompt_eval_count"] = counted
        return answer

    def _read(self, asked: Asked, prompt: list[str], context: int) -> list[str]:
        if len(prompt) <= context:
            return prompt
        if self.version.honours_truncate and asked.body.get("truncate") is False:
            message = f"the prompt of {len(prompt)} tokens exceeds the context length of {context}"
            raise HttpError(400, {"error": message})
        return prompt[-(context if self.version.keeps == "all" else context // 2) :]

    def _counted(self, read: list[str]) -> int:
        if self.version.counts == "whole":
            return len(read)
        same = 0
        while same < min(len(read), len(self._last)) and read[same] == self._last[same]:
            same += 1
        return len(read) - same

    def _said(self, asked: Asked) -> Reply:
        if self.reply is not None:
            said = self.reply(asked)
            return Reply(said) if isinstance(said, str) else said
        return Reply(json.dumps(instance(asked.schema)) if asked.schema is not None else "Yes.")

    def _embeddings(self, asked: Asked) -> Json:
        self._known(asked)
        given = asked.body.get("input")
        texts = [given] if isinstance(given, str) else list(given or [])
        context = self._load(asked)
        if asked.body.get("truncate") is False and any(len(tokens(text)) > context for text in texts):
            raise HttpError(400, {"error": "the input length exceeds the context length"})
        texts = [cut(text, context) for text in texts]
        vectors = [[float(number) for number in self.embed(text)] for text in texts]
        used = sum(len(tokens(text)) for text in texts)
        return {"model": self.tag, "embeddings": vectors, "total_duration": 1, "prompt_eval_count": used}
