"""Keys: where they come from, and that they go nowhere else."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from ecphoryrag.errors import EcphoryError, ModelNotAvailable
from ecphoryrag.models.ollama import OllamaGenerator
from ecphoryrag.models.openai import OpenAIGenerator
from ecphoryrag.models.secrets import HIDDEN, read_key, redact
from ecphoryrag.ports import Generator
from ecphoryrag.settings import OllamaSettings, OpenAISettings
from ecphoryrag.types import Message
from tests.support import llama_server, ollama_server
from tests.support.loopback import Asked, Fault, LoopbackServer

CANARY = "sk-canary-93f1c0d7e5b24a68"
VARIABLE = "SOME_SERVERS_KEY"
ASKED = [Message("user", "Who?")]


def test_the_variable_comes_before_the_file_and_both_are_stripped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("of-the-file\n", "utf-8")
    settings = OpenAISettings(api_key_env=VARIABLE, api_key_file=tmp_path / "key")
    monkeypatch.delenv(VARIABLE, raising=False)
    assert read_key(settings) == "of-the-file"
    monkeypatch.setenv(VARIABLE, " of-the-variable \n")
    assert read_key(settings) == "of-the-variable"
    monkeypatch.setenv(VARIABLE, "")
    assert read_key(settings) == "of-the-file"
    assert read_key(OpenAISettings(api_key_env=VARIABLE)) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), (b"", "is empty"), (b"\xff\xfe\x00", "it is no text"), (b"two words", "more than a key")],
)
def test_a_file_that_holds_no_key_is_said_and_its_content_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, said: str
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    with pytest.raises(ModelNotAvailable, match=said) as raised:
        read_key(OpenAISettings(api_key_env=VARIABLE, api_key_file=tmp_path / "key"))
    assert str(tmp_path / "key") in str(raised.value)
    assert "two words" not in str(raised.value)


def test_redacting_hides_whole_keys_and_leaves_words_alone() -> None:
    assert redact("key abcd-efgh and abcd", "abcd", "abcd-efgh", None, "") == f"key {HIDDEN} and {HIDDEN}"
    assert redact("an apple", "a", None) == "an apple"


def _openai(server: LoopbackServer) -> Generator:
    return OpenAIGenerator(llama_server.MODEL, OpenAISettings(base_url=f"{server.address}/v1", api_key_env=VARIABLE))


def _ollama(server: LoopbackServer) -> Generator:
    return OllamaGenerator(ollama_server.MODEL, OllamaSettings(base_url=server.address, api_key_env=VARIABLE))


FAULTS = [
    Fault("status", 401, f"Incorrect API key provided: {CANARY}"),
    Fault("status", 400, f"{{'authorization': 'Bearer {CANARY}'}}"),
    Fault("status", 404, f"no {CANARY}"),
    Fault("status", 500, CANARY * 40),
    Fault("status", 429, CANARY, retry_after="1"),
    Fault("cut"),
    Fault("broken"),
    Fault("drop"),
    Fault("page"),
]


@pytest.mark.parametrize("make", [_openai, _ollama])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind} {fault.status}")
def test_a_key_appears_in_no_error_log_or_representation(
    make: Callable[[LoopbackServer], Generator],
    fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nor in the printed chain of causes, whatever the server says and whatever logs are on."""
    monkeypatch.setenv(VARIABLE, CANARY)
    caplog.set_level(logging.DEBUG)

    def on_chat(asked: Asked) -> Fault | None:
        return fault if asked.path in {llama_server.CHAT, ollama_server.CHAT} else None

    kinds: dict[object, type[LoopbackServer]] = {_openai: llama_server.LlamaServer, _ollama: ollama_server.OllamaServer}
    with kinds[make](key=CANARY, fault=on_chat) as server:
        generator = make(server)
        with pytest.raises(EcphoryError) as raised:
            generator.generate(ASKED, {"type": "object"}, 10)
        assert server.asked[-1].headers["authorization"] == f"Bearer {CANARY}"
        shown = [repr(generator), str(vars(generator)), generator.name, repr(raised.value)]
        generator.close()
    shown += traceback.format_exception(raised.value)
    shown += [record.getMessage() for record in caplog.records]
    assert CANARY[:12] not in "\n".join(shown)


def test_a_key_of_another_server_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages read variables of their own, whatever server they speak to."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("OPENAI_API_KEY", "OLLAMA_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, CANARY)
    kinds: list[tuple[Callable[[LoopbackServer], Generator], LoopbackServer]] = [
        (_openai, llama_server.llama_server()),
        (_ollama, ollama_server.OllamaServer()),
    ]
    for make, server in kinds:
        with server:
            generator = make(server)
            generator.generate(ASKED, None, 10)
            generator.close()
            for asked in server.asked:
                assert CANARY not in str(asked.headers)
                assert not [name for name in asked.headers if name.startswith("x-stainless")]
                assert asked.headers["user-agent"] == "ecphoryrag"
