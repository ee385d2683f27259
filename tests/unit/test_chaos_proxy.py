"""The proxy that spoils replies: it does to each request what it says it does, and nothing else."""

from __future__ import annotations

import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.chaos_proxy import KINDS, PROSE, ChaosProxy, Kind, prompt_hash
from tests.support.llama_server import KEY, llama_server, openai_server
from tests.support.loopback import LoopbackServer

SAID = '{"town": "Dunlisk", "river": "Iskel"}'
SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}, "river": {"type": "string"}}}


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def content(self) -> str:
        choice = json.loads(self.raw)["choices"][0]
        assert choice["finish_reason"] == "stop"
        return str(choice["message"]["content"])


def ask(server: LoopbackServer, text: str = "Where?", timeout: float = 10.0, key: str | None = None) -> Got:
    body: dict[str, Any] = {
        "model": "test-model",
        "messages": [{"role": "user", "content": text}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}},
    }
    return send(server, "POST", "/v1/chat/completions", body, timeout, key)


def send(
    server: LoopbackServer, method: str, path: str, body: Any = None, timeout: float = 10.0, key: str | None = None
) -> Got:
    connection = http.client.HTTPConnection(urlsplit(server.address).netloc, timeout=timeout)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        reply = connection.getresponse()
        return Got(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
    finally:
        connection.close()


def test_each_kind_does_what_it_says() -> None:
    plan: dict[int, Kind | None] = dict(enumerate(KINDS))
    with llama_server(lambda asked: SAID) as server, ChaosProxy(server.address, plan=plan, hang=0.3) as proxy:
        busy = ask(proxy)
        assert (busy.status, busy.headers["retry-after"]) == (429, "0.01")
        failed = ask(proxy)
        assert (failed.status, "retry-after" in failed.headers) == (500, False)
        with pytest.raises(TimeoutError):
            ask(proxy, timeout=0.05)
        assert server.asked == []  # the model did not work for these
        with pytest.raises(http.client.IncompleteRead) as cut:
            ask(proxy)
        assert len(cut.value.partial) > 0
        assert ask(proxy).content == SAID[: len(SAID) // 2]
        assert ask(proxy).content == PROSE.format(SAID)
        assert json.loads(ask(proxy).content) == SCHEMA
        assert ask(proxy).content == ""
        assert len(server.answered) == 5
        assert proxy.spoiled == dict.fromkeys(KINDS, 1)


def test_a_hang_ends_without_a_word() -> None:
    with llama_server() as server, ChaosProxy(server.address, plan={0: "hang"}, hang=0.2) as proxy:
        start = time.perf_counter()
        with pytest.raises(http.client.RemoteDisconnected):
            ask(proxy)
        assert 0.2 <= time.perf_counter() - start < 5


def test_closing_does_not_wait_for_a_hang() -> None:
    with llama_server() as server, ChaosProxy(server.address, plan={0: "hang"}, hang=60) as proxy:
        start = time.perf_counter()
        with pytest.raises(TimeoutError):
            ask(proxy, timeout=0.05)
    assert time.perf_counter() - start < 5


def test_what_is_not_spoiled_goes_through_as_it_is() -> None:
    with openai_server(lambda asked: SAID) as server, ChaosProxy(server.address, share=0.0) as proxy:
        through, straight = (ask(one, key=KEY) for one in (proxy, server))
        assert json.loads(through.raw)["choices"] == json.loads(straight.raw)["choices"]
        assert json.loads(through.raw)["usage"] == json.loads(straight.raw)["usage"]
        assert server.asked[0].body == server.asked[1].body
        assert ask(proxy).status == 401
        assert proxy.spoiled == {}
        assert proxy.chats == 2


def test_other_requests_are_never_spoiled() -> None:
    with llama_server() as server, ChaosProxy(server.address, share=1.0) as proxy:
        assert json.loads(send(proxy, "GET", "/health").raw) == {"status": "ok"}
        tokens = json.loads(send(proxy, "POST", "/tokenize", {"content": "one two"}).raw)
        assert tokens == {"tokens": [0, 1]}
        assert send(proxy, "GET", "/nowhere").status == 404
        assert proxy.chats == 0


def test_the_seed_decides_and_the_share_holds() -> None:
    def kinds(seed: int, number: int = 400) -> list[str | None]:
        with ChaosProxy("http://127.0.0.1:1", seed=seed, kinds=("429", "500")) as proxy:
            for _ in range(number):
                ask(proxy)
            return [deed.kind for deed in proxy.deeds]

    first = kinds(1)
    assert first == kinds(1)
    assert first != kinds(2)
    spoiled = [kind for kind in first if kind]
    assert 0.23 < len(spoiled) / len(first) < 0.37
    assert abs(spoiled.count("429") - spoiled.count("500")) <= 1


def test_calm_lets_all_through_and_rage_goes_on() -> None:
    with llama_server(lambda asked: SAID) as server, ChaosProxy(server.address, share=1.0, kinds=("500",)) as proxy:
        assert ask(proxy).status == 500
        proxy.calm()
        assert ask(proxy).content == SAID
        proxy.rage()
        assert ask(proxy).status == 500
        assert [deed.kind for deed in proxy.deeds] == ["500", None, "500"]


def test_deeds_know_a_repeated_prompt() -> None:
    with llama_server() as server, ChaosProxy(server.address, plan={0: "500"}, share=0.0) as proxy:
        for text in ("one", "one", "two"):
            ask(proxy, text)
        one, again, two = proxy.deeds
        assert one.prompt_hash == again.prompt_hash != two.prompt_hash
        assert one.prompt_hash == prompt_hash(server.asked[0])


def test_threads_get_their_own_replies() -> None:
    with (
        llama_server(lambda asked: json.dumps({"town": asked.messages[-1]["content"]}), latency=0.01) as server,
        ChaosProxy(server.address, share=0.3, seed=3, kinds=("prose",)) as proxy,
        ThreadPoolExecutor(8) as threads,
    ):
        texts = [f"town {number}" for number in range(80)]
        replies = list(threads.map(lambda text: ask(proxy, text).content, texts))
        assert all(json.dumps({"town": text}) in reply for text, reply in zip(texts, replies, strict=True))
        assert proxy.chats == server.count("/v1/chat/completions") == 80


def test_a_server_that_is_gone_is_a_bad_gateway() -> None:
    with ChaosProxy("http://127.0.0.1:1", share=0.0) as proxy:
        assert ask(proxy).status == 502
