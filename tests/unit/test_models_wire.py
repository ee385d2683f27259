"""What goes over the wire: no key and no prompt to anyone else, no reply without end, and no error but ours."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from ecphoryrag.errors import BadVectors, EcphoryError, ModelNotAvailable, Transient
from ecphoryrag.models import wire
from ecphoryrag.models.embedder import as_rows
from ecphoryrag.models.ollama import OllamaGenerator
from ecphoryrag.models.openai import OpenAIGenerator
from ecphoryrag.models.served import words_of
from ecphoryrag.ports import Generator
from ecphoryrag.settings import OllamaSettings, OpenAISettings
from ecphoryrag.types import Message
from tests.support.raw_server import RawServer, Request, ollama_chat, openai_chat, reply

KEY = "sk-canary-5d1f20c7"
ASKED = [Message("user", "A secret of the town of Dunlisk?")]
KINDS = ("openai", "ollama")
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OLLAMA_API_KEY", KEY)


def _generator(kind: str, address: str, timeout: float = 5.0) -> Generator:
    if kind == "openai":
        return OpenAIGenerator("m", OpenAISettings(base_url=f"{address}/v1", timeout=timeout))
    return OllamaGenerator("m", OllamaSettings(base_url=address, timeout=timeout))


def _said(kind: str) -> bytes:
    return reply(openai_chat() if kind == "openai" else ollama_chat())


def _asked(kind: str, address: str, timeout: float = 5.0) -> str:
    with closing(_generator(kind, address, timeout)) as generator:
        return generator.generate(ASKED, None, 16).text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_neither_key_nor_prompt_follows_a_server_to_another_host(kind: str, status: str) -> None:
    with RawServer(lambda _: [_said(kind)], "127.0.0.2") as other:
        there = f"Location: {other.address}/chat?token=hidden"
        with (
            RawServer(lambda _: [reply("", status, there)]) as server,
            pytest.raises(ModelNotAvailable, match=r"it is at http://127\.0\.0\.2/chat\b.*set base_url") as raised,
        ):
            _asked(kind, server.address)
        assert other.seen == []
        assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_that_comes_byte_by_byte_ends_with_the_time_out(kind: str) -> None:
    def drip(_: Request) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
        for _number in range(100):
            yield b" "
            time.sleep(0.1)

    with RawServer(drip) as server:
        started = time.monotonic()
        with pytest.raises(Transient, match="does not answer in time"):
            _asked(kind, server.address, timeout=0.5)
        assert time.monotonic() - started < 4


def _endless(_: Request) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    for _number in range(10_000):
        yield b" " * 10_000


BOMB = reply(gzip.compress(b" " * 10_000_000), "200 OK", "Content-Encoding: gzip")
TWICE = reply(gzip.compress(gzip.compress(b" " * 10_000_000)), "200 OK", "Content-Encoding: gzip, gzip")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", [_endless, lambda _: [BOMB], lambda _: [TWICE]], ids=["endless", "bomb", "twice"])
def test_a_reply_beyond_all_measure_is_not_read(
    kind: str, answer: Callable[[Request], Iterator[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LARGEST", 1_000_000)
    with RawServer(answer) as server, pytest.raises(Transient, match="more than any reply has"):
        _asked(kind, server.address)


def test_a_packed_reply_is_unpacked() -> None:
    packed = gzip.compress(b'{"choices": [{"message": {"content": "yes"}}]}')
    with RawServer(lambda _: [reply(packed, "200 OK", "Content-Encoding: gzip")]) as server:
        assert _asked("openai", server.address) == "yes"


ODD = {
    "nested deeply": reply(DEEP),
    "nested deeply inside": reply(f'{{"choices": {DEEP}, "message": {DEEP}}}'),
    "no gzip": reply(b"no gzip", "200 OK", "Content-Encoding: gzip"),
    "a redirect to itself": reply("", "302 Found", "Location: /v1/chat/completions"),
    "a redirect to nowhere": reply("", "302 Found"),
    "a redirect to no address": reply("", "302 Found", "Location: http://[::bad/"),
    "not modified": reply("", "304 Not Modified"),
    "an error without words": reply({"foo": {"bar": 1}}, "400 Bad"),
    "an error nested deeply": reply('{"error": ' * 900 + "1" + "}" * 900, "400 Bad"),
    "a page": reply("<html>sign in</html>", "200 OK", "Content-Type: text/html"),
    "nothing": reply(""),
    "no HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "a status that is none": reply("x", "999 Odd"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_whatever_a_server_says_is_an_error_of_ours(kind: str, answer: bytes) -> None:
    with RawServer(lambda _: [answer]) as server, pytest.raises(EcphoryError):
        _asked(kind, server.address)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_in_the_body_of_a_success_is_told(kind: str) -> None:
    body = {"error": {"message": f"quota of {KEY} used up", "code": 429}}
    with RawServer(lambda _: [reply(body)]) as server, pytest.raises(Transient, match=r"429: quota of \[key\] used"):
        _asked(kind, server.address)


@pytest.mark.parametrize("kind", KINDS)
def test_a_web_page_says_that_the_address_may_be_wrong(kind: str) -> None:
    page = reply("<!doctype html>", "200 OK", "Content-Type: text/html")
    with RawServer(lambda _: [page]) as server, pytest.raises(Transient, match=r"a web page.*base_url"):
        _asked(kind, server.address)


def test_json_that_is_not_said_to_be_json_is_read() -> None:
    with RawServer(lambda _: [reply(openai_chat(), "200 OK", "Content-Type: text/plain")]) as server:
        assert _asked("openai", server.address) == "yes"


@pytest.mark.parametrize("figure", [2**63, 10**30, -1, "12", True])
def test_figures_that_are_none_are_not_believed(figure: object) -> None:
    said = openai_chat(prompt_tokens=figure, completion_tokens=figure)
    with RawServer(lambda _: [reply(said)]) as server, closing(_generator("openai", server.address)) as generator:
        usage = generator.generate(ASKED, None, 16).usage
    assert usage.estimated
    assert 0 < usage.input_tokens < 1000


def test_numbers_that_no_float_holds_are_no_vector() -> None:
    with pytest.raises(BadVectors):
        as_rows([[10**400, 1.0]], "m")


def test_the_words_of_an_error() -> None:
    assert words_of({"error": {"message": "no", "param": "seed", "code": "bad"}}) == ("no bad", "seed")
    assert words_of({"detail": [1]}) == ("[1]", "")
    assert words_of({"foo": 1}) == ("{'foo': 1}", "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_on_this_machine_is_not_asked_by_a_proxy(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer(lambda _: [_said(kind)]) as server, RawServer(lambda _: [_said(kind)]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        monkeypatch.setenv("ALL_PROXY", proxy.address)
        assert _asked(kind, server.address) == "yes"
        assert proxy.seen == []


@pytest.mark.parametrize("kind", KINDS)
def test_any_other_is_asked_by_the_proxy_of_the_environment(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer(lambda _: [_said(kind)]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.address.removeprefix("http://"))
        assert _asked(kind, "http://models.invalid") == "yes"
        assert proxy.seen[-1].target.startswith("http://models.invalid/")
        seen = len(proxy.seen)
        monkeypatch.setenv("NO_PROXY", "invalid")
        with pytest.raises(ModelNotAvailable, match="no machine is known"):
            _asked(kind, "http://models.invalid")
        assert len(proxy.seen) == seen


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("variable", "value"),
    [("ALL_PROXY", "socks5://u:hidden@h:1"), ("HTTP_PROXY", "foo://u:hidden@h"), ("SSL_CERT_FILE", "/nowhere/hidden")],
)
def test_an_environment_that_cannot_be_used_is_said(
    kind: str, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ModelNotAvailable, match=variable) as raised:
        _asked(kind, "http://models.invalid")
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("kind", KINDS)
def test_an_address_of_ip_version_6(kind: str) -> None:
    with RawServer(lambda _: [_said(kind)], "::1") as server:
        assert _asked(kind, server.address) == "yes"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.8.9.1", "::1"])
def test_names_of_this_machine(host: str) -> None:
    assert wire.is_local(host)
    assert not wire.is_local(f"x{host}.example")
