"""Requests of an Ollama server, by the ``ollama`` package, with errors told apart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.models.secrets import read_key
from ecphoryrag.models.served import PROBE_SECONDS, Place, connection_error, not_the_api
from ecphoryrag.models.wire import options, refusal_of
from ecphoryrag.settings.models import OllamaSettings

if TYPE_CHECKING:
    from httpx import Request, Response
    from ollama import ChatResponse, EmbedResponse, ListResponse, ProcessResponse, ShowResponse

T = TypeVar("T")

REMEDY = "pip install 'ecphoryrag[ollama]'"
AGENT = "ecphoryrag"


def place_of(name: str, settings: OllamaSettings) -> Place:
    """The model in the words of error messages."""
    model = name.partition("/")[2]
    return Place(
        name,
        settings.base_url,
        f"Set the key in the variable {settings.api_key_env}, or in a file that models.ollama.api_key_file names",
        f"Run `ollama pull {model}` there, or set models.ollama.base_url (without a path)",
    )


def names(model: str, *listed: str | None) -> bool:
    """Whether the server calls the model so, by one of these names: with its tag, if it is asked for without."""
    tag = model if ":" in model.rpartition("/")[2] else f"{model}:latest"
    return any(one in {model, tag} for one in listed)


def keep_alive(settings: OllamaSettings) -> str | int:
    """As the server takes it: a bare number only as a number."""
    words = settings.keep_alive
    return int(words) if words.removeprefix("-").isdigit() else words


class OllamaClient:
    """Two connection pools, one for work and one for short questions, and one key.

    They open when first used, and again if used after they were closed.
    """

    def __init__(self, settings: OllamaSettings, place: Place) -> None:
        self._settings = settings
        self._place = place
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    def chat(self, request: Mapping[str, Any]) -> ChatResponse:
        """The reply of ``/api/chat``.

        Raises Refusal for an error status, Transient for a connection that fails or a reply that is not the API's,
        ModelNotAvailable if the package or the server is missing. So do the others.
        """
        return self._call(lambda opened: opened.chat(request))

    def embed(self, request: Mapping[str, Any]) -> EmbedResponse:
        """The reply of ``/api/embed``."""
        return self._call(lambda opened: opened.working.embed(**request))

    def show(self, model: str) -> ShowResponse:
        """What the server knows of a model."""
        return self._call(lambda opened: opened.asking.show(model))

    def listed(self) -> ListResponse:
        """The models that the server has."""
        return self._call(lambda opened: opened.asking.list())

    def loaded(self) -> ProcessResponse:
        """The models that are loaded at present."""
        return self._call(lambda opened: opened.asking.ps())

    def close(self) -> None:
        """Close the connections; closing twice is harmless."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _call(self, send: Callable[[_Opened], T]) -> T:
        opened = self._open()
        try:
            return send(opened)
        except (opened.transport_error, OSError) as error:
            raise connection_error(error, self._place) from None
        except (ValueError, TypeError, RecursionError) as error:  # no JSON, or not the API's
            raise not_the_api(self._place, error) from None

    def _open(self) -> _Opened:
        with self._lock:
            if self._opened is None:
                self._opened = _Opened(self._settings)
            return self._opened


class _Opened:
    """The package's clients, what they raise, and the key. Nothing of it is ever shown."""

    def __init__(self, settings: OllamaSettings) -> None:
        try:
            import httpx  # noqa: PLC0415 - what the package is built on
            import ollama  # noqa: PLC0415 - of the extra `ollama`, and slow to import
        except ImportError as error:
            raise ModelNotAvailable(f"an Ollama server needs the package ollama: run `{REMEDY}`") from error
        key = read_key(settings)
        self.transport_error = httpx.RequestError
        self._reply = ollama.ChatResponse

        def prepare(request: Request) -> None:
            """The package would send a key of the environment to any server, and describe this machine."""
            request.headers["User-Agent"] = AGENT
            if key is None:
                request.headers.pop("Authorization", None)
            else:
                request.headers["Authorization"] = f"Bearer {key}"

        def refuse(response: Response) -> None:
            refusal = refusal_of(response, key)
            if refusal is not None:
                raise refusal

        hooks = {"request": [prepare], "response": [refuse]}

        def client(seconds: float) -> ollama.Client:
            url = settings.base_url
            return ollama.Client(url, timeout=seconds, event_hooks=hooks, **options(httpx, url))

        self.working, self.asking = client(settings.timeout), client(PROBE_SECONDS)
        self._opened = ExitStack()
        self._opened.callback(self.working.close)
        self._opened.callback(self.asking.close)

    def chat(self, request: Mapping[str, Any]) -> ChatResponse:
        """By the package's own way of sending, since its method ``chat`` knows no ``truncate`` and no ``shift``."""
        return self.working._request(self._reply, "POST", "/api/chat", json=dict(request))  # noqa: SLF001

    def close(self) -> None:
        """Close both."""
        self._opened.close()
