"""Whatever surrounds a JSON value, it is read back as it was; whatever is not whole is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ecphoryrag.calls.reading import Unusable, read_json
from ecphoryrag.types import JsonValue

texts = st.text() | st.sampled_from(
    ["{", "}", '"', "\\", "'", "</think>", "\n</think>\n", "<think>", "```json", "[1]", "// x", "/*", "NaN", "a: b,"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(texts, values, max_size=4)
containers = objects | st.lists(values, max_size=4)
Dump = Callable[[JsonValue], str]
dumps: list[Dump] = [
    json.dumps,
    partial(json.dumps, indent=2),
    partial(json.dumps, separators=(",", ":")),
    partial(json.dumps, ensure_ascii=False),
]
layouts = st.sampled_from(dumps)
prose = st.text(st.characters(exclude_characters="{}[]<`")) | st.sampled_from(
    ["Here is the JSON you asked for:\n", 'Sure! It\'s "done".', "\n\n", "As I said: "]
)
thinking = st.sampled_from(
    ["", "<think>Let me see {", "<thinking>\n[1, 2", '<Think>I think {"a": 1} fits', "<think></think>\n<think>"]
)


def thought(begun: str) -> str:
    """The reasoning with its end."""
    tag = begun[begun.rfind("<") + 1 :].split(">", maxsplit=1)[0]
    return f"{begun}</{tag}>\n" if begun else ""


@given(values, layouts, thinking)
def test_any_value_is_read_bare_fenced_and_after_reasoning(value: JsonValue, dump: Dump, begun: str) -> None:
    dumped = dump(value)
    for text in (dumped, f"```json\n{dumped}\n```", f"  ```\n{dumped}```\n"):
        assert read_json(thought(begun) + text) == value


@given(containers, layouts, thinking, prose, prose)
def test_any_object_or_array_is_read_out_of_prose(
    value: JsonValue, dump: Dump, begun: str, before: str, after: str
) -> None:
    dumped = dump(value)
    assert read_json(f"{thought(begun)}{before}{dumped}{after}") == value
    assert read_json(f"{thought(begun)}{before}\n```json\n{dumped}\n```\n{after}") == value


@given(objects, layouts, thinking, prose, st.data())
def test_any_strict_beginning_of_an_object_is_refused(
    value: JsonValue, dump: Dump, begun: str, before: str, data: st.DataObject
) -> None:
    dumped = dump(value)
    cut = data.draw(st.integers(0, len(dumped) - 1))
    for text in (dumped[:cut], thought(begun) + before + dumped[:cut], f"```json\n{dumped[:cut]}\n```"):
        with pytest.raises(Unusable):
            read_json(text, {"type": "object"})


def single_quoted(value: JsonValue) -> str:
    """The value as a small model writes it: Python's literals, commas at the ends, a comment."""
    if isinstance(value, dict):
        return "{" + "".join(f"{single_quoted(key)}: {single_quoted(one)}, " for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + "".join(f"{single_quoted(one)}, " for one in value) + "] /* a list */"
    return f"'{value}'" if isinstance(value, str) else json.dumps(value)


words = st.text(st.characters(categories=["Lu", "Ll", "Lo", "Nd"]), min_size=1, max_size=8) | st.sampled_from(
    ["O'Brien", "}", "{", "a, b", "]"]
)
plain = st.recursive(
    words | st.integers(-9, 9) | st.booleans() | st.none(),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(words, inner, min_size=1, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(words, plain, min_size=1, max_size=3))
def test_form_is_mended(value: JsonValue) -> None:
    assert read_json(single_quoted(value)) == value


@settings(deadline=None)
@given(st.dictionaries(words, plain, min_size=1, max_size=3), st.data())
def test_a_beginning_of_an_object_of_bad_form_is_refused_too(value: JsonValue, data: st.DataObject) -> None:
    dumped = single_quoted(value)
    cut = data.draw(st.integers(0, len(dumped) - 1))
    with pytest.raises(Unusable):
        read_json(dumped[:cut])


@settings(deadline=None, max_examples=400)
@given(
    st.lists(
        st.sampled_from([*"{}[]:,'\"/\\ \n", "//", "/*", "*/", "a", "1", "-", ".", "e5", "NaN", "null", "True", "é"])
    ).map("".join)
)
def test_anything_is_read_or_refused_and_nothing_else_happens(text: str) -> None:
    for wrapped in (text, "{" + text + "}", "[" + text + "]"):
        reason = "the reply"
        try:
            json.dumps(read_json(wrapped))
        except Unusable as unusable:
            reason = unusable.reason
        assert reason.startswith("the reply")
