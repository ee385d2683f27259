"""A server's key is in no file, log, error, report or output, whatever happened: it is planted, and looked for."""

from __future__ import annotations

import base64
import json
import logging
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from ecphoryrag.cli import run
from ecphoryrag.errors import EcphoryError
from ecphoryrag.memory import Memory
from ecphoryrag.models.registry import make_encoder, make_generator
from ecphoryrag.settings import ExtractionSettings, IndexingSettings, ModelsSettings, OllamaSettings, Settings
from ecphoryrag.settings.models import OpenAISettings
from ecphoryrag.types import Message
from tests.support.llama_server import CHAT as OPENAI_CHAT
from tests.support.llama_server import EMBEDDINGS as OPENAI_EMBEDDINGS
from tests.support.llama_server import MODEL, openai_server
from tests.support.loopback import Asked, Fault, LoopbackServer
from tests.support.ollama_server import CHAT as OLLAMA_CHAT
from tests.support.ollama_server import EMBED as OLLAMA_EMBEDDINGS
from tests.support.ollama_server import MODEL as OLLAMA_MODEL
from tests.support.ollama_server import OllamaServer
from tests.support.scripted_extraction import documents, extracted

CANARY = "sk-canary-7f3a9c51e2d84b06"
LEAK = f"Incorrect API key provided: {CANARY}. You sent 'Authorization: Bearer {CANARY}'"
EMBEDDINGS = {OPENAI_EMBEDDINGS, OLLAMA_EMBEDDINGS}
QUESTION = "Who kept the light?"
FAULTS = (
    *(Fault("status", status, LEAK) for status in (400, 401, 403, 404, 422, 429, 500, 503)),
    Fault("hang", seconds=0.6),
    Fault("cut"),
    Fault("broken"),
    Fault("drop"),
    Fault("page"),
)

Vendor = Literal["openai", "ollama"]


def forms_of(secret: str) -> list[bytes]:
    """In which a secret may lie somewhere: plain, in wide characters, and encoded."""
    raw = secret.encode()
    middle = base64.b64encode(raw)[4:-8]  # what it is inside a longer text at the same offset
    return [raw, secret.encode("utf-16-le"), raw.hex().encode(), middle]


def leaks(text: str | bytes) -> bool:
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace")
    return any(form in raw for form in forms_of(CANARY))


@dataclass
class Scene:
    """A server that wants the key, settings that say where it is, and all that was said meanwhile."""

    server: LoopbackServer
    settings: Settings
    folder: Path
    said: list[str] = field(default_factory=list)

    def note(self, *values: object) -> None:
        """Keep how these show, and what they hold."""
        for value in values:
            self.said += [str(value), repr(value)]

    def attempt(self, action: Callable[[], object]) -> EcphoryError | None:
        """Carry it out, and keep what comes of it."""
        try:
            self.note(action())
        except EcphoryError as error:
            self.caught(error)
            return error
        return None

    def caught(self, error: EcphoryError) -> None:
        """Keep all that can be seen of an error."""
        self.note(error, getattr(error, "__notes__", []), vars(error))
        self.said += traceback.format_exception(error)

    def files(self) -> list[Path]:
        """Everything beside the key's own file."""
        return [path for path in self.folder.rglob("*") if path.is_file() and path.name != "key"]


SCENES = [("openai", "variable"), ("openai", "file"), ("ollama", "variable"), ("ollama", "file")]


@pytest.fixture(params=SCENES, ids="-".join)
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    vendor, source = request.param
    for variable in list(os.environ):
        if variable.upper().startswith(("ECPHORY_", "OPENAI_", "OLLAMA_")):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    key_file = None
    if source == "file":
        key_file = tmp_path / "key"
        key_file.write_text(f"{CANARY}\n", encoding="utf-8")
    else:
        monkeypatch.setenv(f"{vendor.upper()}_API_KEY", CANARY)
    with server_of(vendor) as server:
        given = {"timeout": 0.3, "tries": 2, "longest_wait": 0.0, "failures": 1000, "api_key_file": key_file}
        models = (
            ModelsSettings(openai=OpenAISettings.model_validate({"base_url": f"{server.address}/v1", **given}))
            if vendor == "openai"
            else ModelsSettings(ollama=OllamaSettings.model_validate({"base_url": server.address, **given}))
        )
        name = f"openai/{MODEL}" if vendor == "openai" else f"ollama/{OLLAMA_MODEL}"
        indexing = IndexingSettings(llm=ExtractionSettings(attempts=1))
        settings = Settings(
            store=tmp_path / "s.ecphory", generator=name, extractor="llm", encoder="none", models=models,
            indexing=indexing,
        )  # fmt: skip
        yield Scene(server, settings, tmp_path)


def server_of(vendor: Vendor) -> LoopbackServer:
    if vendor == "openai":
        return openai_server(answered, key=CANARY)
    return OllamaServer(answered, key=CANARY)


def answered(asked: Asked) -> str:
    """Entities for a chunk, and something usable for a question."""
    if "entities" in (asked.schema or {}).get("properties", {}):
        return extracted(asked)
    return json.dumps({"reasoning": "It is said.", "answer": "Hale", "evidence": [1], "sufficient": True})


def only_chats(fault: Fault) -> Callable[[Asked], Fault | None]:
    return lambda asked: fault if asked.path in {OPENAI_CHAT, OLLAMA_CHAT} else None


def use(scene: Scene) -> None:
    """Add, recall, ask, look: each may fail."""
    try:
        memory = Memory.open(scene.settings.store, settings=scene.settings)
    except EcphoryError as error:
        scene.caught(error)
        return
    with memory:
        scene.note(memory, memory.settings)
        scene.attempt(lambda: memory.add(documents(2)))
        scene.attempt(lambda: memory.recall(QUESTION))
        scene.attempt(lambda: memory.ask(QUESTION))
        scene.attempt(memory.status)


def command(scene: Scene, capfd: pytest.CaptureFixture[str]) -> None:
    """What the command line tells of it, as text and as JSON."""
    configuration = scene.folder / "ecphory.toml"
    configuration.write_text(as_toml(scene.settings), encoding="utf-8")
    capfd.readouterr()
    for words in ("config", "doctor", "status", "ask 'Who?'", "add -"):
        for form in ([], ["--json"]):
            run([*form, *words.replace("'", "").split(maxsplit=1)])
            captured = capfd.readouterr()
            assert captured.out + captured.err
            scene.said += [captured.out, captured.err]


def as_toml(settings: Settings) -> str:
    """The settings that are not the defaults, as the file the command reads."""
    lines = [f"{name} = {json.dumps(str(getattr(settings, name)))}" for name in ("store", "generator", "extractor")]
    lines.append('encoder = "none"')
    vendor = settings.generator.partition("/")[0]
    server = settings.models.openai if vendor == "openai" else settings.models.ollama
    lines.append(f"[models.{vendor}]")
    for name in ("base_url", "timeout", "tries", "longest_wait", "api_key_file"):
        value = getattr(server, name)
        if value is not None:
            lines.append(f"{name} = {json.dumps(value if isinstance(value, int | float) else str(value))}")
    return "\n".join(lines) + "\n"


def assert_nowhere(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    assert [said[:300] for said in scene.said if leaks(said)] == []
    assert [record.getMessage() for record in caplog.records if leaks(record.getMessage())] == []
    held = [path.name for path in scene.files() if leaks(path.read_bytes())]
    assert held == []


def test_after_success(scene: Scene, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    caplog.set_level(logging.DEBUG)
    use(scene)
    command(scene, capfd)
    assert scene.server.answered, "the key was never used"
    assert {path.name for path in scene.files()} >= {"s.ecphory", "s.ecphory-ledger"}
    assert_nowhere(scene, caplog)


@pytest.mark.parametrize("scene", [SCENES[0], SCENES[3]], indirect=True, ids="-".join)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.kind}-{fault.status}")
def test_after_failure(scene: Scene, fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    generator = make_generator(scene.settings)
    assert generator is not None
    scene.server.fault = only_chats(fault)
    error = scene.attempt(lambda: generator.generate([Message("user", QUESTION)], None, 16))
    assert error is not None
    scene.note(generator, getattr(generator, "__dict__", {}))
    generator.close()
    use(scene)
    assert_nowhere(scene, caplog)


@pytest.mark.parametrize("scene", [SCENES[1], SCENES[2]], indirect=True, ids="-".join)
def test_an_encoder_tells_no_more(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    served = {"encoder": scene.settings.generator, "extractor": "names", "store": scene.folder / "e.ecphory"}
    settings = scene.settings.model_copy(update=served)
    for fault in FAULTS:
        with closing(make_encoder(settings)) as encoder:
            scene.server.fault = lambda asked, fault=fault: fault if asked.path in EMBEDDINGS else None
            assert scene.attempt(lambda: encoder.encode([QUESTION], "query")) is not None, fault
            scene.note(encoder, getattr(encoder, "__dict__", {}))
    scene.server.fault = None
    with Memory.open(settings.store, settings=settings) as memory:
        assert scene.attempt(lambda: memory.add(documents(2))) is None
        scene.note(memory.status())
    assert_nowhere(scene, caplog)


def test_a_server_that_fails_while_the_command_is_used(
    scene: Scene, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    scene.server.fault = lambda asked: Fault("status", 401, LEAK)
    use(scene)
    command(scene, capfd)
    assert any("[key]" in said for said in scene.said), "the server's words were to be shown, without the key"
    assert_nowhere(scene, caplog)


@pytest.mark.parametrize(
    "found",
    [f"x{CANARY}y", CANARY.encode("utf-16-le"), CANARY.encode().hex(), base64.b64encode(CANARY.encode())],
)
def test_the_search_finds_what_it_looks_for(found: str | bytes) -> None:
    assert leaks(found)
    assert not leaks("sk-canary")
