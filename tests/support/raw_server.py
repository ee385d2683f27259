"""A server whose replies are bytes of the test's own making, for what no proper server says.

    with RawServer(lambda asked: [reply({"error": "no"}, "500 Failed")]) as server:
        ...
    assert server.seen[0].headers.get("authorization") is None

The parts that ``answer`` yields are sent one after the other, and the connection is then closed. Routes by which a
client asks about the model are answered properly.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

ABOUT = {"data": [], "models": [], "model_info": {"general.architecture": "a", "a.context_length": 8192}}
_WORK = ("chat", "embed")


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came."""

    target: str
    """The path; the whole address where the server is asked as a proxy."""
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


def reply(body: object, status: str = "200 OK", *headers: str) -> bytes:
    """A whole reply; the body as JSON unless it is bytes or text."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    kind = () if any(one.lower().startswith("content-type") for one in headers) else ("Content-Type: application/json",)
    head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(raw)}", "Connection: close", *kind, *headers))
    return f"{head}\r\n\r\n".encode() + raw


def openai_chat(content: Any = "yes", **usage: Any) -> dict[str, Any]:
    """A reply of the OpenAI API."""
    message = {"role": "assistant", "content": content}
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}


def ollama_chat(content: Any = "yes", **figures: Any) -> dict[str, Any]:
    """A reply of Ollama's API."""
    message = {"role": "assistant", "content": content}
    return {"model": "m", "message": message, "done": True, "done_reason": "stop", **figures}


class RawServer:
    """See the module."""

    def __init__(self, answer: Callable[[Request], Iterable[bytes]], host: str = "127.0.0.1") -> None:
        self.seen: list[Request] = []
        self._answer = answer
        self._listening = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """``http://HOST:PORT``."""
        host, port = self._listening.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            try:
                target = lines.readline().decode("latin-1").split(" ")[1]
                headers = {}
                while line := lines.readline().decode("latin-1").strip():
                    name, _, value = line.partition(":")
                    headers[name.lower()] = value.strip()
                request = Request(target, headers, lines.read(int(headers.get("content-length", 0))))
                self.seen.append(request)
                proper = not any(one in target for one in _WORK)
                for part in [reply(ABOUT)] if proper else self._answer(request):
                    connection.sendall(part)
            except (OSError, IndexError):
                return  # the client has gone, as it should
