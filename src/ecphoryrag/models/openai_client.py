"""Requests of a server that speaks the OpenAI API, by the ``openai`` package, with errors told apart."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.models.secrets import read_key, redact
from ecphoryrag.models.served import Place, Refusal, connection_error, not_the_api, quoted, retry_after
from ecphoryrag.settings.models import OpenAISettings

if TYPE_CHECKING:
    from openai import OpenAI

REMEDY = "pip install 'ecphoryrag[openai]'"
OPENAI_HOSTS = ("api.openai.com", "openai.azure.com")
AGENT = "ecphoryrag"
_LEFT_OUT = (
    *(f"X-Stainless-{name}" for name in ("Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version")),
    "X-Stainless-Async",
    "x-stainless-retry-count",
    "x-stainless-read-timeout",
)
"""Headers by which the package tells a server about this machine."""


def place_of(name: str, settings: OpenAISettings) -> Place:
    """The model in the words of error messages."""
    return Place(
        name,
        settings.base_url,
        f"Set the key in the variable {settings.api_key_env}, or in a file that models.openai.api_key_file names",
        "See that the model's name is one of the server's, and that models.openai.base_url ends as its API does "
        "(most end in /v1)",
    )


class OpenAIClient:
    """One connection pool and one key. It opens when first used, and again if used after it was closed."""

    def __init__(self, settings: OpenAISettings, place: Place) -> None:
        self._settings = settings
        self._place = place
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    @property
    def root(self) -> str:
        """The server's address without the API's ``/v1``, where servers have routes of their own."""
        return self._settings.base_url.removesuffix("/v1")

    @property
    def is_openai(self) -> bool:
        """Whether this is OpenAI itself, which has no other routes and says nothing of contexts."""
        host = self._settings.base_url.split("/")[2].partition(":")[0]
        return host.endswith(OPENAI_HOSTS)

    def get(self, path: str, seconds: float | None = None) -> Mapping[str, Any]:
        """The JSON object at a path of the API, or at a whole address. See :meth:`post`."""
        return self._send(path, None, seconds)

    def post(self, path: str, body: Mapping[str, Any], seconds: float | None = None) -> Mapping[str, Any]:
        """The JSON object that is the reply; ``Any`` since it is another program's.

        Raises Refusal for an error status, and for an error in the body of a reply that claims success; Transient for
        a connection that fails or a reply that is not the API's; ModelNotAvailable if the package or the server is
        missing.
        """
        return self._send(path, body, seconds)

    def close(self) -> None:
        """Close the connections; closing twice is harmless."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.client.close()

    def _send(self, path: str, body: Mapping[str, Any] | None, seconds: float | None) -> Mapping[str, Any]:
        opened = self._open()
        options: Any = {"headers": opened.headers, "timeout": seconds or self._settings.timeout}
        try:
            if body is None:
                reply = opened.client.get(path, cast_to=object, options=options)
            else:
                reply = opened.client.post(path, cast_to=object, body=body, options=options)
        except opened.status_error as error:
            raise _refusal(error, opened.key) from None
        except opened.connection_error as error:
            raise connection_error(error, self._place) from None
        except ValueError as error:  # the body is no JSON, though it is said to be
            raise not_the_api(self._place, error) from None
        if not isinstance(reply, dict):
            raise not_the_api(self._place, reply)
        if reply.get("error"):
            raise _in_the_body(reply["error"], opened.key)
        return reply

    def _open(self) -> _Opened:
        with self._lock:
            if self._opened is None:
                self._opened = _Opened(self._settings, self.is_openai)
            return self._opened


class _Opened:
    """The package's client, what it raises, and the key. Nothing of it is ever shown."""

    def __init__(self, settings: OpenAISettings, is_openai: bool) -> None:  # noqa: FBT001 - private, and one caller
        try:
            import openai  # noqa: PLC0415 - of the extra `openai`, and slow to import
        except ImportError as error:
            raise ModelNotAvailable(f"a server of the OpenAI API needs the package openai: run `{REMEDY}`") from error
        self.key = read_key(settings)
        self.status_error = openai.APIStatusError
        self.connection_error = openai.APIConnectionError
        left_out: Any = openai.Omit()
        self.headers: dict[str, Any] = dict.fromkeys(_LEFT_OUT, left_out)
        self.headers["User-Agent"] = AGENT
        if self.key is None:
            self.headers["Authorization"] = left_out
        if not is_openai:  # the package takes these from the environment, whoever the server is
            self.headers |= {"OpenAI-Organization": left_out, "OpenAI-Project": left_out}
        self.client: OpenAI = openai.OpenAI(
            api_key=self.key or "none", base_url=settings.base_url, timeout=settings.timeout, max_retries=0
        )


def _refusal(error: Any, key: str | None) -> Refusal:
    """From the package's error: its body is the API's ``error`` object, or whatever the server sent."""
    message, param = _words(error.body if error.body is not None else error.response.text)
    return Refusal(
        error.status_code,
        quoted(redact(message, key)),
        param=param,
        retry_after=retry_after(error.response.headers),
    )


def _in_the_body(error: Any, key: str | None) -> Refusal:
    """From the ``error`` of a reply with status 200: LM Studio and some gateways do so."""
    message, param = _words(error)
    code = error.get("code") if isinstance(error, dict) else None
    if not (isinstance(code, int) and 400 <= code < 600):
        code = 404 if message.startswith("Unexpected endpoint") else 400
    return Refusal(code, quoted(redact(message, key)), param=param)


def _words(body: Any) -> tuple[str, str]:
    if not isinstance(body, dict):
        return str(body), ""
    message = next((body[name] for name in ("message", "error", "detail") if body.get(name)), body)
    if isinstance(message, dict):
        return _words(message)
    return f"{message} {body['code']}" if isinstance(body.get("code"), str) else str(message), str(
        body.get("param") or ""
    )
