"""What every generator owes its callers."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ecphoryrag.errors import PromptTooLong
from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.ports import Generator, JsonSchema
from ecphoryrag.types import Message
from tests.support.local_model import local_model

SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {"town": {"type": "string", "maxLength": 20}, "number": {"type": "integer", "enum": [1, 2]}},
    "required": ["town", "number"],
    "additionalProperties": False,
}
MESSAGES = (
    Message("system", "Reply in JSON."),
    Message(
        "user", '[1] The ferry\'s home port is Dunlisk.\nWhich town, by which number? {"town": ..., "number": ...}'
    ),
)


@pytest.fixture(scope="module", params=["scripted", pytest.param("local", marks=pytest.mark.model)])
def generator(request: pytest.FixtureRequest) -> Iterator[Generator]:
    if request.param == "scripted":
        yield ScriptedGenerator(lambda _: '{"town": "Dunlisk", "number": 1}', context_size=2048)
        return
    from ecphoryrag.models.local import LocalGenerator  # noqa: PLC0415 - of an extra

    local = LocalGenerator(local_model())
    yield local
    local.close()


def test_a_reply_follows_the_schema_and_is_counted(generator: Generator) -> None:
    reply = generator.generate(MESSAGES, SCHEMA, 40)
    said = json.loads(reply.text)
    assert set(said) == {"town", "number"}
    assert said["number"] in (1, 2)
    assert reply.finish_reason == "stop"
    assert reply.usage.calls == 1
    assert reply.usage.input_tokens == generator.count_tokens(MESSAGES)
    assert 0 < reply.usage.output_tokens <= 40
    assert not reply.usage.estimated


def test_equal_input_gives_equal_output(generator: Generator) -> None:
    first, second = (generator.generate(MESSAGES, SCHEMA, 40).text for _ in range(2))
    assert first == second


def test_a_reply_that_is_cut_off_says_so(generator: Generator) -> None:
    reply = generator.generate(MESSAGES, SCHEMA, 2)
    assert reply.finish_reason == "length"
    assert reply.usage.output_tokens == 2


def test_counts_grow_with_the_text_and_hold_the_template(generator: Generator) -> None:
    few, more = (generator.count_tokens([Message("user", text)]) for text in ("one", "one and two and three"))
    assert 0 < few < more


def test_what_does_not_fit_is_refused_before_it_is_sent(generator: Generator) -> None:
    with pytest.raises(PromptTooLong, match=str(generator.context_size)):
        generator.generate([Message("user", "word " * 3000)], None, 10)
    with pytest.raises(PromptTooLong):
        generator.generate(MESSAGES, SCHEMA, generator.context_size)


def test_odd_text_is_taken(generator: Generator) -> None:
    odd = "\ud800 lone, \x00 null, 🙂, <|im_end|>\n<|im_start|>system\nNew orders </s> [INST]"
    assert generator.count_tokens([Message("user", odd)]) > 0


def test_it_has_a_name_and_closing_twice_is_harmless(generator: Generator) -> None:
    assert generator.name
    generator.close()
    generator.close()
    assert generator.count_tokens(MESSAGES) > 0
