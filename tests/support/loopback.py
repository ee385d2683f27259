"""A threaded HTTP server on the loopback address: the base of the scripted model servers.

It speaks HTTP/1.1 with connections kept open, as the real servers do, counts its requests and how many are under way
at once, and can misbehave: see :class:`Fault`. Leaving it (``with``) ends its threads and connections.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

Json: TypeAlias = dict[str, Any]

_SPECIAL = re.compile(r"<\|\w+\|>")
_PIECE = re.compile(r"[A-Za-z0-9_]{1,6}|[^\sA-Za-z0-9_]")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came. ``number`` counts the requests of its path from 0."""

    number: int
    method: str
    path: str
    body: Json = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""

    @property
    def messages(self) -> list[Json]:
        """The chat's messages; empty for other requests."""
        return list(self.body.get("messages") or [])

    @property
    def prompt(self) -> str:
        """The contents of all messages, one after the other."""
        return "\n".join(str(message.get("content", "")) for message in self.messages)

    @property
    def schema(self) -> Json | None:
        """The JSON schema that the reply is to follow, in whichever of the dialects it was given."""
        grammar = str(self.body.get("grammar") or "")
        if grammar.startswith("# {"):  # this project's own, with the schema in a comment
            return dict(json.loads(grammar[2:].partition("\n")[0]))
        form = self.body.get("response_format") or {}
        found = (
            (form.get("json_schema") or {}).get("schema")
            or form.get("schema")
            or self.body.get("json_schema")
            or self.body.get("format")
        )
        return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the scripted model says. A plain string stands for ``Reply(string)``."""

    text: str | None
    finish_reason: str | None = None
    """None: ``length`` if it was cut to ``max_tokens``, else ``stop``."""
    reasoning: str | None = None
    """Goes into the dialect's own field for reasoning, and counts as output."""
    prompt_tokens: int | None = None
    """What the server claims to have read; None: what it did read."""
    usage: bool = True
    """Whether the server says what was used."""


@dataclass(frozen=True, slots=True)
class Fault:
    """How a request goes wrong.

    ``status``: an error reply with that code, ``message`` and ``retry_after``. ``hang``: nothing is said for
    ``seconds`` (the request then ends in ``drop``). ``cut``: the connection ends half-way through the body. ``broken``:
    a whole reply whose body is half a JSON text. ``drop``: the connection ends without a word. ``page``: 200, and an
    HTML page in place of JSON.
    """

    kind: Literal["status", "hang", "cut", "broken", "drop", "page"] = "status"
    status: int = 500
    message: str = "something failed"
    retry_after: str | None = None
    seconds: float = 60.0


class HttpError(Exception):
    """A refusal: a status, and the body of the reply."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


FaultOf: TypeAlias = Callable[[Asked], Fault | None]


def tokens(text: str) -> list[str]:
    """The pieces that a scripted server counts as tokens.

    ASCII words in pieces of six signs, every other sign alone, ``<|...|>`` as one.
    """
    found: list[str] = []
    at = 0
    for special in _SPECIAL.finditer(text):
        found += _PIECE.findall(text[at : special.start()])
        found.append(special[0])
        at = special.end()
    return found + _PIECE.findall(text[at:])


def cut(text: str, limit: int) -> str:
    """The beginning of the text, of so many tokens at most."""
    at = 0
    for _ in range(limit):
        found = _PIECE.search(text, at)
        if found is None:
            return text
        at = found.end()
    return text[:at] if _PIECE.search(text, at) else text


class LoopbackServer:
    """Listens as soon as it is made, and answers by :meth:`respond`. Use it as a context manager.

    ``latency`` is in seconds a request; ``fault`` says of each request whether and how it goes wrong (before it is
    counted as answered); ``slots`` is how many requests are worked on at once, others wait (None: no limit).
    All three, and ``key``, may be changed while it runs.
    """

    def __init__(
        self,
        *,
        key: str | None = None,
        latency: float = 0.0,
        fault: FaultOf | None = None,
        slots: int | None = None,
    ) -> None:
        self.key = key
        self.latency = latency
        self.fault = fault
        self._slots = threading.Semaphore(slots) if slots is not None else None
        self._lock = threading.Lock()
        self._numbers: Counter[str] = Counter()
        self._asked: list[Asked] = []
        self._answered: list[Asked] = []
        self._under_way = 0
        self._peak = 0
        self._closing = threading.Event()
        self._http = _Http(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def respond(self, asked: Asked) -> Json | list[Any]:
        """The JSON of the reply. Raises HttpError."""
        raise NotImplementedError

    def refusal(self, status: int, message: str) -> Json:
        """The body of an error in this server's dialect."""
        return {"error": message, "status": status}

    def works(self, asked: Asked) -> bool:
        """Whether a request is work for the model: it takes a slot and the latency, and counts for the peak."""
        del asked
        return True

    @property
    def address(self) -> str:
        """``http://127.0.0.1:PORT``, without a slash at its end."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def asked(self) -> list[Asked]:
        """All requests so far, in the order in which they came."""
        with self._lock:
            return list(self._asked)

    @property
    def answered(self) -> list[Asked]:
        """The requests that were answered without a fault or refusal, in the order of their answers."""
        with self._lock:
            return list(self._answered)

    @property
    def peak(self) -> int:
        """How many requests for the model were under way at once, at most."""
        with self._lock:
            return self._peak

    def count(self, path: str, *, answered: bool = False) -> int:
        """How many requests of a path came, or were answered without a fault."""
        return sum(one.path == path for one in (self.answered if answered else self.asked))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and end all connections; closing twice is harmless."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._http.shutdown()
        self._http.end_connections()
        self._http.server_close()
        self._thread.join()

    # What the handler calls.

    def take(self, method: str, path: str, body: Json, headers: Mapping[str, str]) -> Asked:
        """Note a request."""
        with self._lock:
            asked = Asked(self._numbers[path], method, path, body, headers)
            self._numbers[path] += 1
            self._asked.append(asked)
        return asked

    def work(self, asked: Asked) -> tuple[int, Json | list[Any], Fault | None]:
        """Status and body of the answer, and how it is to go wrong on its way, if it is."""
        if not self.works(asked):
            return self._answer(asked)
        with self._lock:
            self._under_way += 1
            self._peak = max(self._peak, self._under_way)
        try:
            if self._slots is None:
                return self._answer(asked)
            with self._slots:
                return self._answer(asked)
        finally:
            with self._lock:
                self._under_way -= 1

    def wait(self, seconds: float) -> None:
        """Let time pass, less if the server is closed meanwhile."""
        self._closing.wait(seconds)

    def _answer(self, asked: Asked) -> tuple[int, Json | list[Any], Fault | None]:
        if self.works(asked) and self.latency:
            time.sleep(self.latency)
        if self.key is not None and asked.headers.get("authorization") != f"Bearer {self.key}":
            return 401, self.refusal(401, "Incorrect API key provided"), None
        fault = self.fault(asked) if self.fault else None
        if fault is not None and fault.kind == "status":
            return fault.status, self.refusal(fault.status, fault.message), fault
        try:
            body = self.respond(asked)
        except HttpError as error:
            return error.status, error.body, fault
        if fault is None:
            with self._lock:
                self._answered.append(asked)
        return 200, body, fault


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = True
    request_queue_size = 128

    def __init__(self, owner: LoopbackServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def end_connections(self) -> None:
        with self._guard:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # it ended by itself

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the game; anything else is a fault of the test's script."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            self._send(400, self.server.owner.refusal(400, "the body is not JSON"), None)
            return
        self._serve(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests ask for what they want to know."""

    def _serve(self, body: Json) -> None:
        owner = self.server.owner
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = owner.take(self.command, self.path.split("?")[0], body, headers)
        status, answer, fault = owner.work(asked)
        self._send(status, answer, fault)

    def _send(self, status: int, answer: Json | list[Any], fault: Fault | None) -> None:
        body = json.dumps(answer).encode()
        kind = fault.kind if fault else None
        if kind == "hang" and fault:
            self.server.owner.wait(fault.seconds)
        if kind in {"hang", "drop"}:
            self.close_connection = True
            return
        if kind == "page":
            body = b"<html><body>502 Bad Gateway</body></html>"
        if kind == "broken":
            body = body[: len(body) // 2]
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if kind == "page" else "application/json")
        self.send_header("Content-Length", str(len(body)))
        if fault and fault.retry_after is not None:
            self.send_header("Retry-After", fault.retry_after)
        self.end_headers()
        if kind == "cut":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)
