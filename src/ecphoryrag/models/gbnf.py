"""A JSON schema as a grammar of llama.cpp (GBNF) that leaves no room for line breaks and indents.

llama.cpp makes a grammar of a schema by itself, and lets a model lay its JSON out as it likes: many do so over several
lines, which costs a fifth more tokens and more where lists are nested. Only schemas of the plain kind are written here;
for any other the server is given the schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ecphoryrag.ports import JsonSchema

MOST_REPEATED = 500
"""Signs or items up to which a limit is written out: llama.cpp refuses grammars that repeat too much. A longer string
may be of any length here; whoever reads the reply holds it to the limit."""
MOST_LISTED = 50
"""Whole numbers up to which a range is written as a list of its numbers."""

_BASICS = r"""char ::= [^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt/] | "u" [0-9a-fA-F]{4})
whole ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= whole ("." [0-9]{1,15})?"""
_SAID = frozenset({"description", "title", "examples", "default", "$schema"})
"""What is for the reader of the schema and holds nothing to anything."""
_KNOWN = {
    "object": frozenset({"type", "properties", "required", "additionalProperties"}),
    "array": frozenset({"type", "items", "minItems", "maxItems"}),
    "string": frozenset({"type", "minLength", "maxLength"}),
    "integer": frozenset({"type", "minimum", "maximum"}),
    "number": frozenset({"type"}),
    "boolean": frozenset({"type"}),
    "null": frozenset({"type"}),
}


class _Beyond(Exception):
    """The schema is not of the plain kind."""


def grammar(schema: JsonSchema) -> str | None:
    """The grammar; None for a schema that says more than objects, lists, choices and limits of length can.

    Objects are written in the order of their properties, all of which must be required. The schema itself stands in
    the first line as a comment, for whoever reads the requests.
    """
    try:
        return f"# {json.dumps(schema)}\nroot ::= {_rule(schema)}\n{_BASICS}\n"
    except _Beyond:
        return None


def _rule(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        raise _Beyond
    schema = {name: value for name, value in schema.items() if name not in _SAID}
    if schema.keys() <= {"enum", "type"} and "enum" in schema:
        return _either([_literal(json.dumps(value, ensure_ascii=False)) for value in schema["enum"]])
    if schema.keys() == {"const"}:
        return _literal(json.dumps(schema["const"], ensure_ascii=False))
    for name in ("anyOf", "oneOf"):
        if schema.keys() == {name}:
            return _either([_rule(one) for one in schema[name]])
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return _either(
            [_of_kind(kind, {n: v for n, v in schema.items() if n in _KNOWN.get(kind, ())}) for kind in kinds]
        )
    return _of_kind(kinds, schema)


def _of_kind(kind: Any, schema: Mapping[str, Any]) -> str:
    if kind not in _KNOWN or not schema.keys() <= _KNOWN[kind]:
        raise _Beyond
    if kind == "object":
        return _object(schema)
    if kind == "array":
        return _array(schema)
    if kind == "string":
        quote = _literal('"')
        return f"{quote} {_times('char', schema.get('minLength', 0), schema.get('maxLength'))} {quote}"
    if kind == "integer":
        return _integer(schema)
    return {"number": "number", "boolean": '("true" | "false")', "null": '"null"'}[kind]


def _object(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties") or {}
    if schema.get("additionalProperties") not in {None, False} or set(properties) != set(schema.get("required") or ()):
        raise _Beyond
    members = [
        f"{_literal(json.dumps(name, ensure_ascii=False) + ': ')} {_rule(one)}" for name, one in properties.items()
    ]
    return f'"{{" {_joined(members)} "}}"'


def _array(schema: Mapping[str, Any]) -> str:
    item = f"({_rule(schema.get('items'))})"
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if most == 0:
        return '"[]"'
    further = _times(f'(", " {item})', max(least - 1, 0), None if most is None else most - 1)
    inside = f"{item} {further}"
    return f'"[" {inside if least else f"({inside})?"} "]"'


def _integer(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if isinstance(least, int) and isinstance(most, int) and 0 <= most - least < MOST_LISTED:
        return _either([_literal(str(number)) for number in range(least, most + 1)])
    return "whole"


def _times(rule: str, least: int, most: int | None) -> str:
    if least > MOST_REPEATED:
        raise _Beyond
    if most is None or most > MOST_REPEATED:
        return f"{rule}{{{least},}}" if least else f"{rule}*"
    return f"{rule}{{{least},{most}}}"


def _either(rules: Sequence[str]) -> str:
    if not rules:
        raise _Beyond
    return f"({' | '.join(rules)})"


def _joined(rules: Sequence[str]) -> str:
    return ' ", " '.join(rules)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
