"""What the adapters of model servers share: how errors are told, and what is taken out of prompts and replies."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

from ecphoryrag.errors import GenerationError, ModelError, ModelNotAvailable, PromptTooLong, Transient
from ecphoryrag.models.packaged import encodable
from ecphoryrag.models.secrets import redact
from ecphoryrag.ports import JsonSchema
from ecphoryrag.types import Message

PROBE_SECONDS = 3.0
"""How long a server may take to say what it is. One that is there says so at once."""
ASSUMED_CONTEXT = 8192
"""Tokens of context where neither the settings nor the server name any."""
_QUOTED = 400
"""Characters of a server's words that are quoted."""
_MAY_PASS = frozenset({408, 409, 425, 429})
_NO_ENTRY = frozenset({401, 403})
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|size|window)|maximum context|exceed\w* (?:the )?(?:available )?context"
    r"|exceed_context|prompt is too long|too many (?:input |prompt )?tokens|input (?:length|is too long)",
    re.IGNORECASE,
)
_SAYING = ("message", "error", "detail")
_WRAPPED = 3
"""Objects within one another that an error's words are looked for in."""
_MOST_TOKENS = 10**9
"""No call has more; a larger figure is none, and would not fit the ledger."""
_CONTROL = re.compile(
    r"<[|｜][^|｜<>\n]{1,40}[|｜]>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<[be]os>|\[(?:/?\w+_)?PROMPT\]"
    r"|<[|]?(?:im_start|im_end|endoftext|eot_id)[|]?>"
)
"""What ends a turn or begins one for the chat models in use; a server reads it as such even inside a document."""


class NothingListening(ModelNotAvailable):
    """No server is at this address. It may be one that is starting, or was stopped."""


class TooLarge(OSError):
    """A server sends more than any reply has."""


class Refusal(Exception):
    """A server's answer that is an error, before it is known what that means for the one who asked."""

    def __init__(self, status: int, message: str, *, param: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        """Without secrets, and not longer than a reader wants."""
        self.param = param
        """The part of the request that it is about, if the server says."""
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Place:
    """A model on a server, in the words of an error message."""

    name: str
    """As in the settings: ``openai/gpt-4o-mini``."""
    address: str
    key_hint: str
    """Where the key is looked for."""
    unknown_hint: str
    """What to do if the model is not there."""


def quoted(message: str) -> str:
    """A server's words, on one line and cut to what can be read."""
    line = " ".join(message.split())
    return line if len(line) <= _QUOTED else f"{line[:_QUOTED]}..."


def as_error(refusal: Refusal, place: Place) -> ModelError:
    """What a refusal is to the one who asked: something that may pass, that must be set up, or that is final."""
    said = f"{place.name} at {place.address} answers {refusal.status}: {refusal.message or 'without a reason'}"
    if is_about_size(refusal):
        return PromptTooLong(f"{said}. Give less evidence, or a server with a larger context")
    if refusal.status in _NO_ENTRY:
        return ModelNotAvailable(f"{said}. {place.key_hint}")
    if refusal.status == 404:
        return ModelNotAvailable(f"{said}. {place.unknown_hint}")
    if 300 <= refusal.status < 400:
        return ModelNotAvailable(f"{said}. Nothing is sent elsewhere unasked: set base_url to where it shall be sent")
    if refusal.status in _MAY_PASS or refusal.status >= 500:
        return Transient(said, refusal.retry_after)
    return GenerationError(f"{said}. The request is refused as it is: another model or server may take it")


def is_about_size(refusal: Refusal) -> bool:
    """Whether a server refuses a prompt because it is too long."""
    return refusal.status in {400, 413, 422, 500} and bool(_TOO_LONG.search(refusal.message))


def connection_error(error: BaseException, place: Place) -> ModelError:
    """What a failed connection is: nothing there (ModelNotAvailable), or something that may pass (Transient)."""
    causes = list(_causes(error))
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return NothingListening(f"nothing listens at {place.address}: start the server, or set its base_url")
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return NothingListening(f"no machine is known by the name in {place.address}: set the right base_url")
    if any("CERTIFICATE_VERIFY_FAILED" in str(cause) for cause in causes):
        return ModelNotAvailable(f"the certificate of {place.address} is not trusted: set the right base_url")
    if any(isinstance(cause, TooLarge) for cause in causes):
        return Transient(f"{place.name} at {place.address} sends more than any reply has, and was not listened to")
    what = "does not answer in time" if _is_timeout(causes) else "broke the connection"
    return Transient(f"{place.name} at {place.address} {what} ({type(error).__name__})")


def not_the_api(place: Place, found: object) -> Transient:
    """For a reply that is not the API's JSON."""
    what, hint = type(found).__name__, ""
    if isinstance(found, json.JSONDecodeError):
        begins = found.doc.lstrip()[:1]
        what = {"": "an empty body", "<": "a web page"}.get(begins, "no JSON")
        hint = f". {place.unknown_hint}" if begins == "<" else ""
    return Transient(f"{place.name} at {place.address} gave a reply that is not of its API ({what}){hint}")


def _causes(error: BaseException | None) -> Sequence[BaseException]:
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _is_timeout(causes: Sequence[BaseException]) -> bool:
    return any(isinstance(cause, TimeoutError) or "Timeout" in type(cause).__name__ for cause in causes)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a reply asks to wait: ``Retry-After`` as a number or a date, or ``retry-after-ms``."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _until(value)
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _until(date: str) -> float:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, OverflowError):
        return -1.0


def in_the_body(error: Any, key: str | None) -> Refusal:
    """From the ``error`` of a reply with status 200: LM Studio and some gateways do so."""
    message, param = words_of(error)
    code = error.get("code") if isinstance(error, dict) else None
    if not (isinstance(code, int) and 400 <= code < 600):
        code = 404 if message.startswith("Unexpected endpoint") else 400
    return Refusal(code, quoted(redact(message, key)), param=param)


def words_of(body: Any) -> tuple[str, str]:
    """What an error's body says, and the parameter that it is about."""
    for _ in range(_WRAPPED):
        inner = next((body[name] for name in _SAYING if body.get(name)), None) if isinstance(body, dict) else None
        if not isinstance(inner, dict):
            break
        body = inner
    if not isinstance(body, dict):
        return str(body), ""
    message = next((body[name] for name in _SAYING if body.get(name)), body)
    said = f"{message} {body['code']}" if isinstance(body.get("code"), str) else str(message)
    return said, str(body.get("param") or "")


def sendable(messages: Sequence[Message]) -> list[Message]:
    """The messages as they are sent: no NUL, no lone surrogate, and a blank inside whatever ends a turn of a chat.

    So a document cannot end its turn and begin another, in the words of the model's own template.
    """
    return [replace(message, content=_inert(message.content)) for message in messages]


def _inert(content: str) -> str:
    text = encodable(content).replace("\0", "\N{REPLACEMENT CHARACTER}")
    while (broken := _CONTROL.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)) != text:
        text = broken
    return text


def with_schema(messages: Sequence[Message], schema: JsonSchema) -> list[Message]:
    """The messages with the schema in words, for servers that do not hold replies to one.

    It stands at the end of the system's message, so that the question stays last; without one, after the user's.
    """
    words = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    asked = f"\n\nReply with one JSON object that follows this JSON schema, and with nothing else:\n{words}"
    at = next((at for at, one in enumerate(messages) if one.role == "system"), len(messages) - 1)
    return [replace(one, content=one.content + asked) if here == at else one for here, one in enumerate(messages)]


def whole(value: Any) -> int | None:
    """A count from a server's reply; None for what is none, such as a missing figure."""
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if counts else None
