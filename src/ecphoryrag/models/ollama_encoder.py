"""The encoder ``ollama``: an embedding model of an Ollama server, by Ollama's own API."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ecphoryrag.models.embedder import Described, Embedded, Means, as_rows, refused
from ecphoryrag.models.ollama_client import OllamaClient, keep_alive, names, place_of
from ecphoryrag.models.prefixes import Prefixes
from ecphoryrag.models.served import ASSUMED_CONTEXT, Refusal, as_error, whole
from ecphoryrag.models.served_encoder import ServedEncoder
from ecphoryrag.settings.models import OllamaSettings
from ecphoryrag.types import EncoderIdentity


class OllamaEmbedder:
    """See :class:`ecphoryrag.models.embedder.Embedder`. Opens no connection before it is used.

    Ollama runs models in a context of a few thousand tokens unless asked for another, and cuts what is longer. So all
    requests ask for one context, which is the model's own up to 8,192 tokens, and for no cutting.
    """

    manner = ""

    def __init__(self, model: str, settings: OllamaSettings) -> None:
        self._model = model
        self._settings = settings
        self._place = place_of(self.name, settings)
        self._client = OllamaClient(settings, self._place)
        self._lock = threading.Lock()
        self._described: Described | None = None

    @property
    def name(self) -> str:
        """``ollama/`` and the model's name."""
        return f"ollama/{self._model}"

    def describe(self) -> Described:
        """The digest of the model's files, and its context or that of the settings. Asks the server, once."""
        with self._lock:
            if self._described is None:
                try:
                    self._described = self._ask()
                except Refusal as refusal:
                    raise as_error(refusal, self._place) from None
            return self._described

    def _ask(self) -> Described:
        info = self._client.show(self._model).modelinfo or {}
        most = whole(info.get(f"{info.get('general.architecture')}.context_length"))
        wanted = self._settings.context or ASSUMED_CONTEXT
        listed = self._client.listed().models
        digest = next((one.digest for one in listed if names(self._model, one.model) and one.digest), "")
        return Described(digest, min(most, wanted) if most else wanted)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """By one request of ``/api/embed``. A text that does not fit is refused and not cut, but for old versions."""
        request = {
            "model": self._model,
            "input": list(texts),
            "truncate": False,
            "options": {"num_ctx": self.describe().context},
            "keep_alive": keep_alive(self._settings),
        }
        try:
            reply = self._client.embed(request)
        except Refusal as refusal:
            raise refused(refusal, self._place) from None
        return Embedded(as_rows(reply.embeddings, self.name), whole(reply.prompt_eval_count))

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        self._client.close()


class OllamaEncoder(ServedEncoder):
    """An embedding model on a server. Opens no connection before it is used. See :class:`ecphoryrag.ports.Encoder`."""

    def __init__(
        self,
        model: str,
        settings: OllamaSettings,
        prefixes: Prefixes,
        known: EncoderIdentity | None = None,
        means: Means | None = None,
    ) -> None:
        super().__init__(OllamaEmbedder(model, settings), prefixes, known, means or Means.of(settings))
