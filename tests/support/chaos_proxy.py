"""A proxy on the loopback address that spoils a share of the replies on their way from a model server to its client.

    with llama_server(...) as server, ChaosProxy(server.address, seed=7) as proxy:
        settings = OpenAISettings(base_url=proxy.url, timeout=1.0)
        ...
        proxy.calm()
    assert proxy.spoiled

Only replies to chat completions are spoiled; all else is handed on, whatever the server. Which request is spoiled, and
how, depends on the seed and on the request's number alone (chats are counted from 0, as they come), so that a run of
one client at a time can be repeated; ``plan`` says it for chosen numbers. What a model is not to be made to work for is
not handed on (``429``, ``500``, ``hang``); the rest is spoiled from the server's true reply, its usage included.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from tests.support.loopback import Asked, Fault, HttpError, Json, LoopbackServer

Kind: TypeAlias = Literal["429", "500", "hang", "cut", "truncated", "prose", "schema", "empty"]
KINDS: tuple[Kind, ...] = get_args(Kind)
UNHEARD: tuple[Kind, ...] = ("429", "500", "hang")
"""Not handed on to the server."""
USABLE: tuple[Kind, ...] = ("prose",)
"""A client should make do with these."""
PROSE = "Sure! Here is what you asked for:\n```json\n{}\n```\nLet me know if anything {{else}} is needed."
UPSTREAM_SECONDS = 600.0
"""A small machine takes minutes for a long reply."""


@dataclass(frozen=True, slots=True)
class Deed:
    """What was done to one chat: ``kind`` is None if its reply went through as it was."""

    number: int
    kind: Kind | None
    prompt_hash: str


def prompt_hash(asked: Asked) -> str:
    """By which requests of equal messages are known: a repeated one has the hash of the first."""
    raw = json.dumps(asked.messages, sort_keys=True).encode()
    return hashlib.blake2b(raw, digest_size=8).hexdigest()


class ChaosProxy(LoopbackServer):
    """See the module. ``kinds`` are met equally often, in a seeded order; ``hang`` is in seconds."""

    def __init__(
        self,
        upstream: str,
        *,
        seed: int = 0,
        share: float = 0.3,
        kinds: Sequence[Kind] = KINDS,
        plan: Mapping[int, Kind | None] | None = None,
        hang: float = 2.0,
        retry_after: str = "0.01",
    ) -> None:
        self._upstream = urlsplit(upstream).netloc
        self._share = share
        self._kinds = tuple(kinds)
        self._set = dict(plan or {})
        self._random = random.Random(seed)
        self._drawn: list[Kind | None] = []
        self._round: list[Kind] = []
        self._deeds: dict[int, Deed] = {}
        self._calm = False
        self._hang = hang
        self._retry_after = retry_after
        super().__init__(fault=self._fault)

    @property
    def url(self) -> str:
        """The base URL for a client of the OpenAI API."""
        return f"{self.address}/v1"

    @property
    def deeds(self) -> list[Deed]:
        """What was done to each chat, by number."""
        with self._lock:
            return [self._deeds[number] for number in sorted(self._deeds)]

    @property
    def spoiled(self) -> Counter[str]:
        """How often each kind was done."""
        return Counter(deed.kind for deed in self.deeds if deed.kind is not None)

    @property
    def chats(self) -> int:
        """How many chats were asked through it."""
        return len(self.deeds)

    def calm(self) -> None:
        """From now on every reply goes through as it is."""
        self._calm = True

    def rage(self) -> None:
        """Spoil again."""
        self._calm = False

    def works(self, asked: Asked) -> bool:
        """Only chats are counted as work."""
        return _is_chat(asked)

    def respond(self, asked: Asked) -> Json | list[Any]:
        """The server's reply, spoiled if this request is to be."""
        kind = self._deed(asked).kind if _is_chat(asked) else None
        if kind in UNHEARD:
            return {}
        status, body = self._forward(asked)
        reply: Json | list[Any] = body
        if status >= 400:
            raise HttpError(status, body if isinstance(body, dict) else {"error": body})
        if kind in {"truncated", "prose", "schema", "empty"} and isinstance(body, dict):
            choice = body["choices"][0]
            choice["finish_reason"] = "stop"
            choice["message"]["content"] = _spoiled(kind, choice["message"].get("content") or "", asked.schema)
        return reply

    def _fault(self, asked: Asked) -> Fault | None:
        if not _is_chat(asked):
            return None
        kind = self._deed(asked).kind
        if kind == "429":
            return Fault("status", 429, "too many requests", retry_after=self._retry_after)
        if kind == "500":
            return Fault("status", 500, "the model crashed")
        if kind == "hang":
            return Fault("hang", seconds=self._hang)
        return Fault("cut") if kind == "cut" else None

    def _deed(self, asked: Asked) -> Deed:
        with self._lock:
            if asked.number not in self._deeds:
                kind = self._drawn_for(asked.number)
                self._deeds[asked.number] = Deed(asked.number, None if self._calm else kind, prompt_hash(asked))
            return self._deeds[asked.number]

    def _drawn_for(self, number: int) -> Kind | None:
        while len(self._drawn) <= number:
            spoil = self._random.random() < self._share
            self._drawn.append(self._next_kind() if spoil else None)
        return self._set.get(number, self._drawn[number])

    def _next_kind(self) -> Kind:
        if not self._round:
            self._round = self._random.sample(self._kinds, len(self._kinds))
        return self._round.pop()

    def _forward(self, asked: Asked) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self._upstream, timeout=UPSTREAM_SECONDS)
        passed = {name: value for name, value in asked.headers.items() if name in {"authorization", "content-type"}}
        try:
            body = json.dumps(asked.body) if asked.method == "POST" else None
            connection.request(asked.method, asked.path, body, passed)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise HttpError(502, self.refusal(502, f"the server behind the proxy failed: {error}")) from error
        finally:
            connection.close()


def _is_chat(asked: Asked) -> bool:
    return asked.path.endswith("/chat/completions")


def _spoiled(kind: Kind | None, content: str, schema: Json | None) -> str:
    if kind == "truncated":
        return content[: len(content) // 2]
    if kind == "prose":
        return PROSE.format(content)
    if kind == "schema":
        return json.dumps(schema or {"type": "object", "properties": {}})
    return ""
