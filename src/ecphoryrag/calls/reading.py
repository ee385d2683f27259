"""The text of a reply as a JSON value, or why it cannot be used.

Small models put reasoning, prose and code fences around their JSON, and write JSON that is not quite JSON. All that is
taken, as far as the reply is whole. What was cut off is never completed: half of an answer reads like a whole one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ecphoryrag.calls.reasoning import without_reasoning
from ecphoryrag.ports import JsonSchema
from ecphoryrag.types import JsonValue

DEEPEST = 64
"""Levels of nesting that are read; what is asked for has fewer than ten."""
LONGEST_MENDED = 2**15
"""Characters of a reply whose form is mended: far more than replies may have, and done in less than a second."""
MOST_PIECES = 256
"""Objects and arrays beside one another; a reply with more is none that was asked for."""
MOST_MENDED = 4
"""Pieces of a reply that are tried to be mended, the longest first."""
EMPTY = "the reply is empty"
BROKEN = "the reply is not valid JSON"
CUT_OFF = "the reply breaks off before its JSON ends"
ECHOED = "the reply repeats the schema instead of following it"
UNENDED = "the reply breaks off before its reasoning ends"
TOO_DEEP = "the reply is nested too deeply"
NOT_MENDED = f"{BROKEN} (and its form is not mended, since the package json_repair is not installed)"

_FENCED = re.compile(r"```[A-Za-z0-9]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_SIGN = re.compile(r'["{}\[\]]')
_LOOSE_SIGN = re.compile(r"""["{}\[\]'/]""")
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_QUOTED = {
    '"': re.compile(_STRING, re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]++|\\.|'(?!\s*+[,:}\]]))*+'", re.DOTALL),
}
_COMMENT = re.compile(r"//[^\n]*+|/\*.*?\*/", re.DOTALL)
_UNVALUED = re.compile(r":\s*+[,}\]]")
_NOT_A_NUMBER = re.compile(r"-?\b(?:NaN|Infinity)\b")
_BARE_QUOTE = re.compile(r'((?<!\\)(?:\\\\)*+)"')
_OPENED_BY = {"}": "{", "]": "["}
_KINDS: dict[JsonValue, type] = {"object": dict, "array": list}


class Unusable(Exception):
    """A reply cannot be used; the reason is in words that both the user and the model understand."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def read_json(text: str, schema: JsonSchema | None = None) -> JsonValue:
    """The first whole object or array in the reply (of the schema's type, if it has one), or the reply's bare value.

    Around it may be reasoning, prose and code fences. Where the package ``json_repair`` is installed the form is
    mended: quotes, commas, comments; not-a-number becomes null. Raises Unusable for an empty reply, for one that
    breaks off (also after something whole), for the schema repeated, and for what is not JSON. Takes time in
    proportion to the length.
    """
    said = without_reasoning(text)
    if said is None:
        raise Unusable(UNENDED)
    body = said.strip()
    if not body:
        raise Unusable(EMPTY)
    try:
        return _read(body, schema)
    except Unusable as unusable:
        if len(body) > LONGEST_MENDED or unusable.reason == TOO_DEEP:
            raise
        return _mended(body, schema, unusable)


def _read(body: str, schema: JsonSchema | None) -> JsonValue:
    fenced = _FENCED.fullmatch(body)
    whole = (fenced[1] if fenced else body).strip()
    if not whole.startswith(("{", "[")):
        for bare in _loaded([whole]):
            return _chosen([bare], schema)
    return _chosen(_loaded(body[start:end] for start, end in _pieces(body, loose=False)), schema)


def _loaded(pieces: Iterable[str]) -> Iterator[JsonValue]:
    """Those of the pieces that are JSON, control characters in strings and not-a-numbers aside."""
    for piece in pieces:
        try:
            yield json.loads(piece, strict=False, parse_constant=lambda _: None)
        except ValueError:
            continue


def _chosen(values: Iterable[JsonValue], schema: JsonSchema | None) -> JsonValue:
    """The first value that can be the reply. Raises Unusable if none can."""
    wanted = schema.get("type") if schema is not None else None
    kind = _KINDS.get(wanted) if isinstance(wanted, str) else None
    reason = BROKEN
    for value in values:
        if kind is not None and not isinstance(value, kind):
            reason = f"the reply is not a JSON {wanted}"
        elif schema is not None and _is_echo(value, schema):
            reason = ECHOED
        else:
            return value
    raise Unusable(reason)


def _is_echo(value: JsonValue, schema: JsonSchema) -> bool:
    """Whether it is a schema where the schema asks for something else."""
    if not isinstance(value, dict):
        return False
    asked = schema.get("properties")
    described = isinstance(value.get("properties"), dict) and ("type" in value or "$schema" in value)
    return value == schema or (described and not (isinstance(asked, dict) and "properties" in asked))


class _Sign(NamedTuple):
    """A bracket, string or comment inside an object or array, and how many of these are open behind it."""

    start: int
    end: int
    depth: int


def _signs(body: str, *, loose: bool) -> Iterator[_Sign]:
    """What is inside the outermost objects and arrays, the prose around them passed over.

    ``loose`` also knows strings in single quotes, and comments. Raises Unusable if one is not closed, closed by the
    wrong bracket, or nested too deeply.
    """
    signs = _LOOSE_SIGN if loose else _SIGN
    open_: list[str] = []
    at = 0
    while (found := signs.search(body, at)) is not None:
        sign, start, at = found[0], found.start(), found.end()
        if sign in "{[":
            open_.append(sign)
            if len(open_) > DEEPEST:
                raise Unusable(TOO_DEEP)
        elif not open_:
            continue
        elif sign in "}]":
            if open_.pop() != _OPENED_BY[sign]:
                raise Unusable(BROKEN)
        else:
            at = _past(body, start, sign)
        yield _Sign(start, at, len(open_))
    if open_:
        raise Unusable(CUT_OFF)


def _pieces(body: str, *, loose: bool) -> list[tuple[int, int]]:
    """Where the outermost objects and arrays stand. Raises Unusable as :func:`_signs` does, and if there are many."""
    spans: list[tuple[int, int]] = []
    start = None
    for sign in _signs(body, loose=loose):
        start = sign.start if start is None else start
        if not sign.depth:
            spans.append((start, sign.end))
            start = None
            if len(spans) > MOST_PIECES:
                raise Unusable(BROKEN)
    return spans


def _past(body: str, at: int, sign: str) -> int:
    """The end of the string or comment that begins here; the next place if none does. Raises Unusable if unended."""
    if sign == "/":
        if not body.startswith(("//", "/*"), at):
            return at + 1
        whole = _COMMENT.match(body, at)
    elif sign == "'" and body[:at].rstrip()[-1] not in "{[,:":
        return at + 1
    else:
        whole = _QUOTED[sign].match(body, at)
    if whole is None:
        raise Unusable(CUT_OFF)
    return whole.end()


def _mended(body: str, schema: JsonSchema | None, unusable: Unusable) -> JsonValue:
    """The reply with its form mended. Raises Unusable, as found before, if that does not help."""
    try:
        spans = _pieces(body, loose=True)
    except Unusable:
        raise unusable from None
    longest = sorted(spans, key=lambda span: span[0] - span[1])[:MOST_MENDED]
    try:
        return _chosen(_repaired([_quoted_anew(body[start:end]) for start, end in longest]), schema)
    except ImportError:
        raise Unusable(NOT_MENDED) if unusable.reason == BROKEN else unusable from None
    except Unusable as still:
        raise (still if unusable.reason == BROKEN else unusable) from None


def _repaired(pieces: Sequence[str]) -> Iterator[JsonValue]:
    """Those of the pieces whose form can be mended. Raises ImportError if the package for it is missing."""
    if not pieces:
        return
    from json_repair import repair_json  # noqa: PLC0415 - of the extras with language models

    for piece in pieces:
        try:
            value: JsonValue = repair_json(piece, return_objects=True)
        except (ValueError, RecursionError):
            continue
        # A word in brackets may come out as anything; a value is what its brackets say.
        if isinstance(value, dict if piece[0] == "{" else list):
            yield value


def _quoted_anew(piece: str) -> str:
    """An object or array with all strings in double quotes, without comments, and with null for not-a-number.

    Raises Unusable for a key without a value, since nothing says what it was.
    """
    parts = []
    at = 0
    for sign in _signs(piece, loose=True):
        between, taken = piece[at : sign.start], piece[sign.start : sign.end]
        if _UNVALUED.search(between + taken[:1]):
            raise Unusable(BROKEN)
        parts.append(_NOT_A_NUMBER.sub("null", between))
        if taken[0] == "'" and len(taken) > 1:
            inside = taken[1:-1].replace("\\'", "'")
            taken = '"' + _BARE_QUOTE.sub(r"\1\"", inside) + '"'
        elif taken.startswith(("//", "/*")):
            taken = " "
        parts.append(taken)
        at = sign.end
    return "".join(parts)
