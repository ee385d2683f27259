"""llama.cpp in this process, through ``xllamacpp``: loading a model, and asking its server.

The server object also listens on a free port of the loopback address. That is used here for what its Python interface
lacks, and is closed to everyone else by a random key.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
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
        try:
            self.server: Any = xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelNotAvailable(
                f"llama.cpp cannot load {path} ({error}): the file may be damaged or incomplete, of an architecture "
                "that this version of xllamacpp does not know, or too large for the memory; "
                "set models.local.path to another, or upgrade xllamacpp"
            ) from error
        self._address = urlsplit(self.server.listening_address).netloc

    def call(self, method: str, path: str, body: Mapping[str, JsonValue] | None) -> Any:
        """The JSON that the server answers; `Any` since it is another program's."""
        connection = http.client.HTTPConnection(self._address, timeout=HTTP_SECONDS)
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
