"""Grammars for llama.cpp, against Python's regular expressions as the oracle: those written here are regular."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoryrag.models.gbnf import grammar

NAME: dict[str, Any] = {"type": "string", "maxLength": 40}
KIND: dict[str, Any] = {"enum": ["person", 'a "quoted" kind', "地名", "back\\slash"]}
RATED: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 5}


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


ENTITIES = closed(entities={"type": "array", "maxItems": 3, "items": closed(name=NAME, kind=KIND, importance=RATED)})
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{\d+,?\d*\}|[a-z]+|[()|?*+]|\s+')


def as_pattern(source: str) -> re.Pattern[str]:
    """The grammar as a regular expression, word by word."""
    rules = dict(line.split(" ::= ", 1) for line in source.splitlines() if not line.startswith("#"))

    def rule(name: str) -> str:
        found = _TOKEN.findall(rules[name])
        assert "".join(found) == rules[name]
        return "(?:" + "".join(map(word, found)) + ")"

    def word(token: str) -> str:
        if token.startswith('"'):
            return "(?:" + re.escape(re.sub(r"\\(.)", r"\1", token[1:-1])) + ")"
        if token.isspace():
            return ""
        if token[0].isalpha():
            return rule(token)
        return "(?:" if token == "(" else token

    return re.compile(rule("root"))


def written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)
ENTITY = st.builds(
    lambda name, kind, importance: {"name": name, "kind": kind, "importance": importance},
    TEXT,
    st.sampled_from(KIND["enum"]),
    st.integers(1, 5),
)


@given(st.lists(ENTITY, max_size=3))
def test_what_follows_the_schema_follows_the_grammar(entities: list[Any]) -> None:
    source = grammar(ENTITIES)
    assert source is not None
    assert as_pattern(source).fullmatch(written({"entities": entities}))


ONE = {"name": "Dunlisk", "kind": "person", "importance": 3}


@pytest.mark.parametrize(
    "said",
    [
        json.dumps({"entities": [ONE]}, indent=1),
        json.dumps({"entities": [ONE]}, separators=(",", ":")),
        written({"entities": [ONE] * 4}),
        written({"entities": [{**ONE, "importance": 6}]}),
        written({"entities": [{**ONE, "kind": "other"}]}),
        written({"entities": [{**ONE, "name": "x" * 41}]}),
        written({"entities": [{**ONE, "more": 1}]}),
        written({"entities": [{"kind": "person", "name": "x", "importance": 3}]}),
        written({"entities": [{"name": "x"}]}),
        '{"entities": [{"name": "line\nbreak", "kind": "person", "importance": 3}]}',
        written({}),
        written([]),
    ],
)
def test_nothing_else_does(said: str) -> None:
    source = grammar(ENTITIES)
    assert source is not None
    assert as_pattern(source).fullmatch(written({"entities": [ONE]}))
    assert not as_pattern(source).fullmatch(said)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (closed(a={"type": ["string", "null"], "maxLength": 2}), ['{"a": null}', '{"a": "xy"}'], ['{"a": "xyz"}']),
        (
            closed(a={"anyOf": [{"type": "boolean"}, {"type": "number"}]}),
            ['{"a": true}', '{"a": -1.5}'],
            ['{"a": "x"}'],
        ),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 2},
            ["[1, 2]", "[1, 2, -30]"],
            ["[1]", "[]", "[01, 2]"],
        ),
        ({"type": "array", "items": {"type": "integer"}}, ["[]", "[1]", "[1, 2]"], ["[1,2]"]),
        (closed(a={"type": "string", "minLength": 1}), ['{"a": "x"}'], ['{"a": ""}']),
        (
            closed(a={"type": "string", "maxLength": 5000, "description": "long"}),
            [written({"a": "x" * 600})],
            ['{"a": 1}'],
        ),
        (closed(a={"const": "x"}), ['{"a": "x"}'], ['{"a": "y"}']),
        (closed(), ["{}"], ["{ }"]),
    ],
)
def test_each_kind_of_schema(schema: dict[str, Any], good: list[str], bad: list[str]) -> None:
    source = grammar(schema)
    assert source is not None
    pattern = as_pattern(source)
    assert all(pattern.fullmatch(one) for one in good)
    assert not any(pattern.fullmatch(one) for one in bad)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"} | closed(a=NAME) | {"required": []},
        closed(a=NAME) | {"additionalProperties": True},
        closed(a={"type": "string", "pattern": "x+"}),
        closed(a={"$ref": "#/x"}),
        closed(a=True),
        closed(a={"enum": []}),
        {},
        {"type": "tuple"},
    ],
)
def test_what_is_beyond_it_is_left_to_the_server(schema: dict[str, Any]) -> None:
    assert grammar(schema) is None
