"""How a request is put to servers that differ in what they take: tried from the strictest, and remembered.

Nothing is assumed from a server's name. What it refuses is left out or put otherwise, one thing at a time, for as long
as it says that this is what it does not support.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ecphoryrag.models.served import Refusal, is_about_size, with_schema
from ecphoryrag.ports import JsonSchema
from ecphoryrag.types import JsonValue, Message

Structured: TypeAlias = Literal["json_schema", "json_object", "text"]
FORMS: tuple[Structured, ...] = ("json_schema", "json_object", "text")

_REFUSING = frozenset({400, 404, 415, 422, 500, 501})
_ABOUT_FORM = re.compile(r"response_format|json_schema|json_object|json mode|structured|grammar|guided|schema", re.I)
_ABOUT_MODEL = re.compile(r"model\b.{0,60}(?:not found|does not exist|unknown)|no such model", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|not permitted|extra (?:inputs|fields)|not allowed|not implemented"
    r"|deprecated|only the default|instead|(?:invalid|unexpected) (?:parameter|argument|keyword|field)",
    re.IGNORECASE,
)
_LOOSE = frozenset(
    {
        "maxLength",
        "minLength",
        "pattern",
        "format",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "uniqueItems",
        "default",
    }
)
"""What a strict schema may not hold at some servers. The reader of the reply checks these."""
_ABOUT_LIMIT = re.compile(r"\b(?:m(?:ax|in)Length|m(?:ax|in)Items|minimum|maximum|uniqueItems)\b|'(?:pattern|format)'")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server was found to take."""

    form: Structured = "json_schema"
    bare_schema: bool = False
    """Whether the schema is sent without limits on lengths and numbers."""
    grammar: bool = True
    """Whether llama.cpp is given a grammar in place of the schema, which it takes in the form ``json_schema``."""
    completion_tokens: bool = False
    """``max_completion_tokens`` in place of ``max_tokens``."""
    left_out: frozenset[str] = frozenset()
    """Of ``temperature``, ``seed``, ``chat_template_kwargs``."""


class Dialects:
    """The dialect in use, made less demanding by refusals. Safe for several threads."""

    def __init__(self, structured: Literal["auto", "json_schema", "json_object", "text"]) -> None:
        self._lock = threading.Lock()
        self._fixed = structured != "auto"
        self._now = Dialect(form="json_schema" if structured == "auto" else structured)

    @property
    def now(self) -> Dialect:
        """What is sent at present."""
        with self._lock:
            return self._now

    def send(
        self, build: Callable[[Dialect], Mapping[str, Any]], post: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        """The reply to the request in the strictest dialect that the server takes. Raises its last Refusal.

        A dialect is remembered only once it has brought a reply: a server that refuses everything teaches nothing.
        """
        dialect = self.now
        while True:
            body = build(dialect)
            try:
                reply = post(body)
            except Refusal as refusal:
                milder = self._milder(dialect, refusal, body)
                if milder is None:
                    raise
                dialect = milder
            else:
                with self._lock:
                    self._now = dialect
                return reply

    def _milder(self, dialect: Dialect, refusal: Refusal, body: Mapping[str, Any]) -> Dialect | None:
        """The dialect without what this refusal is about; None if it is about something else."""
        if refusal.status not in _REFUSING or is_about_size(refusal) or _ABOUT_MODEL.search(refusal.message):
            return None
        said = f"{refusal.param} {refusal.message}"
        if _UNSUPPORTED.search(said):
            if "max_tokens" in body and re.search(r"\bmax_tokens\b", said):
                return replace(dialect, completion_tokens=True)
            for name in ("temperature", "seed", "chat_template_kwargs"):
                if name in body and re.search(rf"\b{name}\b", said):
                    return replace(dialect, left_out=dialect.left_out | {name})
        if "grammar" in body and _ABOUT_FORM.search(said):
            return replace(dialect, grammar=False)
        if "response_format" not in body:
            return None
        # A failing server says 500 for anything: only what names the form is about it.
        about = _ABOUT_FORM.search(said) or (refusal.status != 500 and _UNSUPPORTED.search(said))
        return self._looser(dialect, said) if about else None

    def _looser(self, dialect: Dialect, said: str) -> Dialect | None:
        if dialect.form == "json_schema" and not dialect.bare_schema and _ABOUT_LIMIT.search(said):
            return replace(dialect, bare_schema=True)
        if self._fixed:
            return None
        return replace(dialect, form=FORMS[FORMS.index(dialect.form) + 1])


def worded(messages: Sequence[Message], schema: JsonSchema | None, dialect: Dialect) -> Sequence[Message]:
    """The messages as this dialect sends them: with the schema in words where the server is not given it."""
    return messages if schema is None or dialect.form == "json_schema" else with_schema(messages, schema)


def response_format(schema: JsonSchema, dialect: Dialect) -> dict[str, JsonValue] | None:
    """The field of a request that holds the reply to the schema; None where plain text is asked for."""
    if dialect.form == "text":
        return None
    if dialect.form == "json_object":
        return {"type": "json_object"}
    sent = _bare(schema) if dialect.bare_schema else dict(schema)
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": sent, "strict": may_be_strict(schema)}}


def may_be_strict(schema: JsonValue | JsonSchema) -> bool:
    """Whether a server's strict mode takes the schema: every object closed, all that it has required, and no list whose
    places have schemas of their own."""
    if isinstance(schema, Mapping):
        if "prefixItems" in schema:
            return False
        if "properties" in schema:
            names, required = schema["properties"], schema.get("required")
            closed = schema.get("additionalProperties") is False
            if not (
                closed and isinstance(names, Mapping) and isinstance(required, list) and set(names) == set(required)
            ):
                return False
        elif schema.get("type") == "object":
            return False
        return all(may_be_strict(value) for value in schema.values())
    if isinstance(schema, list):
        return all(may_be_strict(value) for value in schema)
    return True


def _bare(schema: JsonSchema) -> dict[str, JsonValue]:
    """The schema without limits. Names of properties are left alone, whatever they are."""
    bare: dict[str, JsonValue] = {}
    for name, value in schema.items():
        if name == "properties" and isinstance(value, dict):
            bare[name] = {key: _bare(one) if isinstance(one, dict) else one for key, one in value.items()}
        elif name not in _LOOSE:
            bare[name] = _bare_value(value)
    return bare


def _bare_value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _bare(value)
    return [_bare_value(one) for one in value] if isinstance(value, list) else value
