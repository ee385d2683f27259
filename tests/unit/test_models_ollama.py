"""What is particular to the generator for Ollama: contexts asked for, and prompts cut in silence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ecphoryrag.errors import GenerationError, ModelNotAvailable, PromptCut, PromptTooLong, Transient
from ecphoryrag.models.ollama import STEP, OllamaGenerator
from ecphoryrag.models.served import NothingListening
from ecphoryrag.ports import JsonSchema
from ecphoryrag.settings import OllamaSettings
from ecphoryrag.types import Message
from tests.support.loopback import Asked, Fault, HttpError, Json, Reply
from tests.support.ollama_server import CHAT, MODEL, OllamaServer, Version

SCHEMA: JsonSchema = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
ASKED = (Message("system", "Reply in JSON."), Message("user", "Which town?"))
WORDS = "The ferry left the harbour of Dunlisk in the morning, and its captain counted the gulls. "
CHINESE = "渡船清晨离开港口，船长数着海鸥。"
LONG = [Message("user", WORDS * 200)]


@contextmanager
def using(server: OllamaServer, model: str = MODEL, **settings: Any) -> Iterator[OllamaGenerator]:
    with server:
        generator = OllamaGenerator(model, OllamaSettings(base_url=server.address, **settings))
        try:
            yield generator
        finally:
            generator.close()


def chats(server: OllamaServer) -> list[Json]:
    return [asked.body for asked in server.asked if asked.path == CHAT]


def options(server: OllamaServer) -> Json:
    found: Json = chats(server)[-1]["options"]
    return found


def test_the_context_is_asked_for_by_need_in_steps_and_never_less_than_before() -> None:
    server = OllamaServer()
    with using(server) as generator:
        generator.generate(ASKED, SCHEMA, 20)
        assert options(server) == {"temperature": 0, "seed": 0, "num_ctx": STEP, "num_predict": 20}
        generator.generate(LONG, None, 20)
        grown = options(server)["num_ctx"]
        assert grown % STEP == 0
        assert server.chats[-1].sent + 20 <= grown <= 2 * server.chats[-1].sent + STEP
        generator.generate(ASKED, SCHEMA, 20)
        assert options(server)["num_ctx"] == grown
        assert server.loads == [STEP, grown]
        assert [chat.read for chat in server.chats] == [chat.sent for chat in server.chats]
        assert chats(server)[-1]["format"] == SCHEMA
        assert chats(server)[-1]["keep_alive"] == "10m"


def test_the_context_is_never_more_than_the_model_has() -> None:
    server = OllamaServer(model_context=3000)
    with using(server) as generator:
        assert generator.context_size == 3000
        generator.generate(ASKED, None, 2500)
        assert options(server)["num_ctx"] == 3000
        with pytest.raises(PromptTooLong, match="3000"):
            generator.generate(ASKED, None, 3000)
        with pytest.raises(PromptTooLong):
            generator.generate(LONG, None, 20)
        assert len(server.chats) == 1
    with using(OllamaServer(model_context=3000), context=1000) as generator:
        assert generator.context_size == 1000
    with using(OllamaServer(model_context=3000), context=9000) as generator:
        assert generator.context_size == 3000


CUTTING = [
    Version(ignores_num_ctx=True),
    Version(ignores_num_ctx=True, keeps="half"),
    Version(ignores_num_ctx=True, says_context=False),
    Version(ignores_num_ctx=True, says_context=False, keeps="half"),
    Version(ignores_num_ctx=True, says_context=False, counts="uncached"),
    Version(ignores_num_ctx=True, keeps="half", counts="uncached"),
]


@pytest.mark.parametrize("warm", [False, True], ids=["at first", "after short ones"])
@pytest.mark.parametrize("version", CUTTING, ids=str)
@pytest.mark.parametrize("text", [WORDS * 200, CHINESE * 300], ids=["english", "chinese"])
def test_a_server_that_ignores_the_context_asked_for_is_caught(version: Version, text: str, warm: bool) -> None:
    server = OllamaServer(version=version)
    with using(server) as generator:
        if warm:
            for times in (10, 20, 30):
                generator.generate([Message("user", WORDS * times)], None, 20)
        with pytest.raises(PromptCut, match="OLLAMA_CONTEXT_LENGTH"):
            generator.generate([Message("user", text)], None, 20)
        assert any(chat.read < chat.sent for chat in server.chats)


HONEST = [
    Version(),
    Version(says_context=False),
    Version(honours_truncate=True),
    Version(counts="uncached"),
    Version(counts="uncached", says_context=False),
]


@pytest.mark.parametrize("version", HONEST, ids=str)
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_a_server_that_honours_it_is_never_accused(version: Version, share: float) -> None:
    """Whatever its tokenizer, in any script, however often the same prompt comes."""

    def reply(asked: Asked) -> Reply:
        whole = server.count_chat(asked.messages)
        return Reply("yes", prompt_tokens=None if version.counts == "uncached" else round(share * whole))

    server = OllamaServer(reply, version=version, model_context=65536)
    texts = [WORDS * 10, WORDS * 200, WORDS * 200, CHINESE * 250, CHINESE * 250, f"{WORDS * 100}{CHINESE * 100}"]
    with using(server) as generator:
        for text in texts + [f"{text} And then?" for text in texts]:
            generator.generate([Message("user", text)], None, 20)
        if share == 1:  # else it counts its context otherwise than it says
            assert all(chat.read == chat.sent for chat in server.chats)


def test_the_usual_server_costs_no_call_more() -> None:
    server = OllamaServer()
    with using(server) as generator:
        for _ in range(3):
            assert generator.generate(LONG, None, 20).usage.calls == 1
        assert len(chats(server)) == 3
        assert server.count("/api/ps") == 1
        assert server.count("/api/show") == server.count("/api/tags") == 1


def test_a_context_that_was_estimated_too_small_is_asked_for_again() -> None:
    """A tokenizer with many more tokens than ours: newer servers refuse, and say why."""
    server = OllamaServer(version=Version(honours_truncate=True), model_context=65536)
    text = "a1" * 300 + " " + "Ж" * 900
    with using(server) as generator:
        need = server.count_chat([{"role": "user", "content": text * 12}])
        assert generator.count_tokens([Message("user", text * 12)]) < need
        reply = generator.generate([Message("user", text * 12)], None, 20)
        assert reply.usage.input_tokens == need
        assert server.chats[-1].read == need


def test_a_reply_that_pushed_the_prompt_out_is_an_error() -> None:
    """The prompt fitted the context that the server has, and the reply did not, any more."""
    server = OllamaServer(lambda _: "word " * 1000, version=Version(ignores_num_ctx=True))
    with using(server) as generator, pytest.raises(PromptCut, match="beginning was lost"):
        generator.generate([Message("user", WORDS * 75)], None, 1200)


def test_the_digest_is_in_the_identity() -> None:
    server = OllamaServer()
    with using(server) as generator:
        first = generator.identity
        assert server.digest[:16] in first
        server.digest = "0" * 64
        assert generator.identity == first
        other = OllamaGenerator(MODEL, OllamaSettings(base_url=server.address))
        assert other.identity != first
        other.close()
        tagged = OllamaGenerator(f"{MODEL}:latest", OllamaSettings(base_url=server.address))
        assert "0" * 16 in tagged.identity
        tagged.close()


def test_a_model_that_thinks_is_told_not_to_and_what_it_thinks_is_stripped() -> None:
    said = Reply("<think>so</think>yes", reasoning="well")
    server = OllamaServer(lambda _: said, version=Version(thinks=True))
    with using(server) as generator:
        reply = generator.generate(ASKED, None, 50)
        assert chats(server)[-1]["think"] is False
        assert reply.text == "yes"
    server = OllamaServer(lambda _: said)
    with using(server) as generator:
        assert generator.generate(ASKED, None, 50).text == "yes"
        assert "think" not in chats(server)[-1]


def test_a_cut_off_or_empty_reply_says_so() -> None:
    with using(OllamaServer(lambda _: "one two three")) as generator:
        assert generator.generate(ASKED, None, 2).finish_reason == "length"
    with using(OllamaServer(lambda _: "")) as generator:
        reply = generator.generate(ASKED, None, 2)
        assert (reply.text, reply.finish_reason) == ("", "stop")


def test_versions_without_schemas_are_given_it_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    server = OllamaServer()
    respond = server.respond

    def older(asked: Asked) -> Any:
        if isinstance(asked.body.get("format"), dict):
            message = "json: cannot unmarshal object into Go struct field ChatRequest.format of type string"
            raise HttpError(400, {"error": message})
        return respond(asked)

    monkeypatch.setattr(server, "respond", older)
    with using(server) as generator:
        generator.generate(ASKED, SCHEMA, 20)
        generator.generate(ASKED, SCHEMA, 20)
        assert [type(body["format"]) for body in chats(server)] == [dict, str, str]
        assert '"town"' in chats(server)[-1]["messages"][0]["content"]
        assert "JSON mode" in generator.structured


def test_without_figures_tokens_are_estimated_and_marked() -> None:
    with using(OllamaServer(lambda _: Reply("one two", usage=False))) as generator:
        usage = generator.generate(ASKED, None, 20).usage
        assert usage.estimated
        assert usage.input_tokens == generator.count_tokens(ASKED)
        assert usage.output_tokens >= 2


def test_estimates_come_closer_with_the_servers_figures() -> None:
    with using(OllamaServer()) as generator:
        chinese = [Message("user", CHINESE * 100)]
        untouched = generator.count_tokens(chinese)
        sent = generator.generate([Message("user", WORDS * 50)], None, 20).usage.input_tokens
        assert 4 * sent < generator.count_tokens(LONG) < 4 * sent * 1.15
        assert generator.count_tokens(chinese) == untouched


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (Fault("status", 401, "bad key"), ModelNotAvailable, "OLLAMA_API_KEY"),
        (Fault("status", 404, "model not found"), ModelNotAvailable, "ollama pull phi4"),
        (Fault("status", 400, "bad option"), GenerationError, "bad option"),
        *((Fault("status", status), Transient, str(status)) for status in (408, 429, 500, 503)),
        (Fault("cut"), Transient, "broke the connection"),
        (Fault("drop"), Transient, "broke the connection"),
        (Fault("broken"), Transient, "not of its API"),
        (Fault("page"), Transient, "not of its API"),
        (Fault("hang", seconds=5), Transient, "does not answer in time"),
    ],
    ids=str,
)
def test_every_failure_has_its_error(fault: Fault, kind: type[Exception], words: str) -> None:
    server = OllamaServer(fault=lambda asked: fault if asked.path == CHAT else None)
    with using(server, timeout=0.4) as generator:
        with pytest.raises(kind, match=words) as raised:
            generator.generate(ASKED, None, 20)
        assert type(raised.value) is kind
        assert server.count(CHAT) == 1


def test_what_the_server_asks_to_wait_is_passed_on() -> None:
    server = OllamaServer(fault=lambda asked: Fault("status", 429, retry_after="3") if asked.path == CHAT else None)
    with using(server) as generator, pytest.raises(Transient) as raised:
        generator.generate(ASKED, None, 20)
    assert raised.value.retry_after == 3


def test_a_model_that_is_not_there_and_a_server_that_is_not_are_said() -> None:
    with using(OllamaServer(), model="bge-m3") as generator:
        with pytest.raises(ModelNotAvailable, match="ollama pull bge-m3"):
            _ = generator.context_size
        with pytest.raises(ModelNotAvailable, match="ollama pull bge-m3"):
            _ = generator.identity
    with OllamaServer() as server:
        address = server.address
    gone = OllamaGenerator(MODEL, OllamaSettings(base_url=address))
    with pytest.raises(NothingListening, match="start the server"):
        gone.generate(ASKED, None, 20)
    gone.close()


def test_a_server_that_does_not_describe_the_model_at_once_is_asked_again() -> None:
    server = OllamaServer(fault=lambda asked: Fault("status", 503) if asked.path == "/api/show" else None)
    with using(server) as generator:
        with pytest.raises(Transient):
            generator.generate(ASKED, None, 20)
        server.fault = None
        assert generator.context_size == 16384
        assert not generator.context_assumed
        assert generator.notice is None


def test_keep_alive_is_a_number_where_it_is_one() -> None:
    for setting, sent in (("-1", -1), ("300", 300), ("1h", "1h")):
        server = OllamaServer()
        with using(server, keep_alive=setting) as generator:
            generator.generate(ASKED, None, 5)
        assert chats(server)[-1]["keep_alive"] == sent
