"""llama.cpp in this process, through ``xllamacpp``: loading a model, and asking its server.

The server object also listens, and is asked so for what its Python interface lacks. It listens on a socket in a folder
of this user's alone, so that no network is needed, not even a loopback interface; where there are no such sockets, on a
free port of the loopback address. A random key closes it to everyone else in any case.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import shutil
import socket
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ecphoryrag.errors import GenerationError, ModelNotAvailable, PromptTooLong
from ecphoryrag.settings.models import LocalModelSettings
from ecphoryrag.types import JsonValue

REMEDY = "pip install 'ecphoryrag[local]'"
SILENT = 0
"""llama.cpp's verbosity: nothing on standard error. Its errors reach us as replies."""
HTTP_SECONDS = 120.0
LONGEST_PATH = 100
"""Bytes of a socket's path that every system takes."""


class LlamaCpp:
    """A loaded model. ``server`` is xllamacpp's, and ``package`` the package itself."""

    def __init__(self, path: Path, settings: LocalModelSettings, adjust: Callable[[Any, Any], None]) -> None:
        """Load the file; ``adjust`` is given the package and the parameters before that.

        Raises ModelNotAvailable if the package is missing, or the file cannot be loaded.
        """
        try:
            import xllamacpp  # noqa: PLC0415 - of the extra `local`
        except ImportError as error:
            raise ModelNotAvailable(f"a local model needs the package xllamacpp: run `{REMEDY}`") from error
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelNotAvailable(f"{path} is not a GGUF file: set models.local.path to one that is")
        self.package: Any = xllamacpp
        self._key = secrets.token_hex()
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = settings.context
        params.n_parallel = 1
        threads = settings.threads or usable_cores()
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.verbosity = SILENT
        params.warmup = False  # a question follows at once
        params.cache_ram_mib = 0  # one conversation at a time: its own cache in the slot is enough
        params.api_keys = [self._key]
        params.ui = False
        params.endpoint_slots = False
        adjust(xllamacpp, params)
        self._socket = self._private_socket()
        if self._socket is not None:
            params.hostnames = [str(self._socket)]
        try:
            self.server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelNotAvailable(
                f"llama.cpp cannot load {path} ({error}): the file may be damaged or incomplete, of an architecture "
                "that this version of xllamacpp does not know, or too large for the memory; "
                "set models.local.path to another, or upgrade xllamacpp"
            ) from error
        self._address = urlsplit(self.server.listening_address).netloc

    def _private_socket(self) -> Path | None:
        """A path for a socket, in a folder that goes with this model; None where sockets have no paths."""
        if not hasattr(socket, "AF_UNIX"):
            return None
        folder = Path(tempfile.mkdtemp(prefix="ecphory-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = folder / "llama.sock"
        return path if len(os.fsencode(path)) <= LONGEST_PATH else None

    def _connection(self) -> http.client.HTTPConnection:
        if self._socket is None:
            return http.client.HTTPConnection(self._address, timeout=HTTP_SECONDS)
        return _SocketConnection(self._socket)

    def call(self, method: str, path: str, body: Mapping[str, JsonValue] | None) -> Any:
        """The JSON that the server answers; `Any` since it is another program's."""
        connection = self._connection()
        try:
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise GenerationError(f"llama.cpp's server does not answer {path} ({error}): start again") from error
        finally:
            connection.close()
        raise_for(reply)
        return reply


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a socket of this machine."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=HTTP_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect to the path."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def usable_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def raise_for(reply: Mapping[str, Any]) -> None:
    """Raise PromptTooLong or GenerationError for a reply that is an error."""
    error = reply.get("error")
    if not error:
        return
    message = error.get("message", error) if isinstance(error, dict) else error
    if isinstance(error, dict) and error.get("type") == "exceed_context_size_error":
        raise PromptTooLong(f"{message}: raise models.local.context or lower answering.evidence_tokens")
    raise GenerationError(f"llama.cpp refuses the request: {message}")
