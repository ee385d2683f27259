"""Replies as small models give them, one by one."""

from __future__ import annotations

import contextlib
import sys
import time

import pytest

from ecphoryrag.calls import reading
from ecphoryrag.calls.reading import Unusable, read_json
from ecphoryrag.calls.reasoning import without_reasoning
from ecphoryrag.types import JsonValue

SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    "required": ["names"],
}
GOOD = '{"names": ["Ada"]}'

USED = {
    "plain": GOOD,
    "fenced": f"```json\n{GOOD}\n```",
    "fence not closed": f"```json\n{GOOD}",
    "prose": f"Here you are:\n{GOOD}\nAnything else?",
    "prose with a citation": f"As [1] says: {GOOD}",
    "prose with braces": f"In {{curly}} braces: {GOOD}",
    "reasoning": f"<think>\nMaybe {{\n</think>\n{GOOD}",
    "reasoning begun by the template": f"So {{ it is: [1]\n</think>\n\n{GOOD}",
    "the schema before it": '{"type": "object", "properties": {"names": {}}}\n' + GOOD,
    "single quotes": "{'names': ['Ada']}",
    "trailing commas": '{"names": ["Ada",],}',
    "unquoted keys": '{names: ["Ada"]}',
    "comments": '{"names": ["Ada"] // it\'s {all}\n}',
    "a block comment": '{"names": /* a } */ ["Ada"]}',
    "the first of two": GOOD + '\n{"names": ["Bo"]}',
    "a mark before it": "\ufeff" + GOOD,
}


@pytest.mark.parametrize("reply", USED.values(), ids=USED.keys())
def test_what_can_be_used(reply: str) -> None:
    assert read_json(reply, SCHEMA) == {"names": ["Ada"]}


REFUSED = {
    "empty": ("", reading.EMPTY),
    "blank": (" \n", reading.EMPTY),
    "reasoning only": ("<think>done</think>", reading.EMPTY),
    "reasoning not ended": (f"<think>{GOOD}", "the reply breaks off before its reasoning ends"),
    "words": ("I cannot do that.", reading.BROKEN),
    "cut in a string": ('{"names": ["Ada', reading.CUT_OFF),
    "cut after an item": ('{"names": ["Ada"', reading.CUT_OFF),
    "cut with an inner object whole": ('{"a": {"names": []}, "b"', reading.CUT_OFF),
    "cut after an example": ('{"names": []}\nNow yours: {"names": ["A"', reading.CUT_OFF),
    "cut, in single quotes": ("{'names': ['Ada', 'B", reading.CUT_OFF),
    "cut inside a fence": ('```json\n{"names": ["Ada",\n```', reading.CUT_OFF),
    "the wrong bracket": ('{"names": ["Ada"}', reading.BROKEN),
    "a key without a value": ('{"names": }', reading.BROKEN),
    "the schema": ('{"type": "object", "properties": {"names": {"type": "array"}}}', reading.ECHOED),
    "a list": ('["Ada"]', "the reply is not a JSON object"),
    "a word": ('"Ada"', "the reply is not a JSON object"),
    "nested deeply": ("[" * 100_000 + "]" * 100_000, reading.TOO_DEEP),
    "nested deeply and cut": ('{"a":' * 100_000, reading.TOO_DEEP),
    "a number beyond reason": ("1" * 5000, reading.BROKEN),
}


@pytest.mark.parametrize(("reply", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_used_and_why(reply: str, reason: str) -> None:
    with pytest.raises(Unusable) as refused:
        read_json(reply, SCHEMA)
    assert refused.value.reason == reason


def test_not_a_number_is_null_and_control_characters_stay_in_strings() -> None:
    assert read_json('{"a": NaN, "b": [-Infinity, "x\ty\nz"]}') == {"a": None, "b": [None, "x\ty\nz"]}
    assert read_json("{'a': NaN, 'b': 'NaN'}") == {"a": None, "b": "NaN"}


def test_a_schema_is_no_echo_where_one_is_asked_for() -> None:
    asked: dict[str, JsonValue] = {"type": "object", "properties": {"properties": {}, "type": {}}}
    assert read_json('{"type": "x", "properties": {}}', asked) == {"type": "x", "properties": {}}


def test_without_the_package_that_mends_the_reason_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "json_repair", None)
    with pytest.raises(Unusable, match="json_repair is not installed"):
        read_json("{'names': ['Ada']}", SCHEMA)
    with pytest.raises(Unusable) as refused:
        read_json('{"names": ["Ada', SCHEMA)
    assert refused.value.reason == reading.CUT_OFF
    assert read_json(GOOD, SCHEMA) == {"names": ["Ada"]}


MEGABYTE = 2**20
LARGE = {
    "a long string": '{"names": ["' + "a" * MEGABYTE + '"]}',
    "prose": "word " * (MEGABYTE // 5) + GOOD,
    "backslashes": '{"names": ["' + "\\" * MEGABYTE + '"]}',
    "quotes": '{"names": ' + '"' * MEGABYTE,
    "apostrophes": '{"names": ' + "'" * MEGABYTE + "}",
    "brackets": "[]" * (MEGABYTE // 2),
    "closing brackets": "}" * MEGABYTE,
    "bad pieces": "{a}" * (MEGABYTE // 3),
    "reasoning ends": "x\n</think>\n" * (MEGABYTE // 11),
    "reasoning blocks": "<think></think>" * (MEGABYTE // 15),
    "fences": "```json\n" * (MEGABYTE // 8),
    "spaces": " " * MEGABYTE + "{",
    "slashes": "{" + "/" * MEGABYTE,
    "as long as is mended": "{'a': [" + "'b', " * (reading.LONGEST_MENDED // 5 - 4) + "],}",
    "mended, of quotes": '{"a": "' + 'b" ' * (reading.LONGEST_MENDED // 4) + '"}',
    "mended, of colons": "{" + '"a":' * (reading.LONGEST_MENDED // 5) + "1}",
    "mended, of gaps": "{" + "a: " + " " * (reading.LONGEST_MENDED - 9) + "1,}",
    "mended, of apostrophes": "{" + "' " * (reading.LONGEST_MENDED // 2 - 4) + "}",
    "mended, nested": "{a:" * 60 + "x" * (reading.LONGEST_MENDED - 300) + "}" * 60,
}


@pytest.mark.parametrize("reply", LARGE.values(), ids=LARGE.keys())
def test_a_megabyte_is_read_or_refused_soon(reply: str) -> None:
    started = time.process_time()
    with contextlib.suppress(Unusable):
        read_json(reply, SCHEMA)
    assert time.process_time() - started < 5.0


def test_reasoning_is_only_what_stands_before() -> None:
    assert without_reasoning("<think>a</think>b</think>c") == "b</think>c"
    assert without_reasoning('{"a": "</think>"}') == '{"a": "</think>"}'


DIALECTS = {
    "tags": "<think>{BAD}</think>{GOOD}",
    "a tag with attributes": '<think time="3">{BAD}</think>\n{GOOD}',
    "seed": "<seed:think>{BAD}</seed:think>{GOOD}",
    "mistral": "[THINK]{BAD}[/THINK]{GOOD}",
    "cohere": "<|START_THINKING|>{BAD}<|END_THINKING|>{GOOD}",
    "kimi": "◁think▷{BAD}◁/think▷{GOOD}",
    "channels": "<|channel|>analysis<|message|>{BAD}<|end|><|start|>assistant<|channel|>final<|message|>{GOOD}",
    "channels, begun by the template": "analysis<|message|>{BAD}<|end|><|channel|>final<|message|>{GOOD}",
}


@pytest.mark.parametrize("reply", DIALECTS.values(), ids=DIALECTS.keys())
def test_reasoning_is_told_from_the_reply_in_every_dialect(reply: str) -> None:
    bad = '{"names": ["Wrong"]}'
    assert read_json(reply.replace("{BAD}", bad).replace("{GOOD}", GOOD), SCHEMA) == {"names": ["Ada"]}
    unended = reply.replace("{BAD}", bad).partition("{GOOD}")[0]
    for end in ("</think>", "</seed:think>", "[/THINK]", "<|END_THINKING|>", "◁/think▷"):
        unended = unended.replace(end, "")
    with pytest.raises(Unusable):
        read_json(unended.partition("<|end|>")[0].replace("analysis<|message|>" + bad, "<|channel|>analysis" + bad))
