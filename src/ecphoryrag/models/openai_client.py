"""Requests of a server that speaks the OpenAI API, by the ``openai`` package, with errors told apart."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.models.secrets import read_key
from ecphoryrag.models.served import Place, Refusal, connection_error, in_the_body, not_the_api
from ecphoryrag.models.wire import library_of, options, refusal_of
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
        how: Any = {"headers": opened.headers, "timeout": seconds or self._settings.timeout}
        try:
            if body is None:
                reply = opened.client.get(path, cast_to=object, options=how)
            else:
                reply = opened.client.post(path, cast_to=object, body=body, options=how)
            if isinstance(reply, str):  # what is not said to be JSON, and often is
                reply = json.loads(reply)
        except opened.status_error as error:
            raise opened.refusal(error.response) from None
        except (opened.connection_error, opened.transport_error, OSError) as error:
            raise connection_error(error, self._place) from None
        except (ValueError, RecursionError) as error:  # the body is no JSON, though it is said to be
            raise not_the_api(self._place, error) from None
        if not isinstance(reply, dict):
            raise not_the_api(self._place, reply)
        if reply.get("error"):
            raise in_the_body(reply["error"], opened.key)
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
        library = library_of(openai.DefaultHttpxClient)
        self.transport_error = library.RequestError
        http = library.Client(timeout=settings.timeout, **options(library, settings.base_url))
        self.client: OpenAI = openai.OpenAI(
            api_key=self.key or "none",
            base_url=settings.base_url,
            timeout=settings.timeout,
            max_retries=0,
            http_client=http,
        )

    def refusal(self, response: Any) -> Refusal:
        """What an error status means."""
        found = refusal_of(response, self.key)
        return found if found is not None else Refusal(response.status_code, "")
