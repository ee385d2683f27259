"""The encoder ``openai``: an embedding model of any server that speaks the OpenAI API."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ecphoryrag.errors import BadVectors
from ecphoryrag.models.embedder import Described, Embedded, Means, as_rows, refused
from ecphoryrag.models.openai_about import Inquiry
from ecphoryrag.models.openai_client import OpenAIClient, place_of
from ecphoryrag.models.prefixes import Prefixes
from ecphoryrag.models.served import Refusal, not_the_api, whole
from ecphoryrag.models.served_encoder import ServedEncoder
from ecphoryrag.settings.models import OpenAISettings
from ecphoryrag.types import EncoderIdentity


class OpenAIEmbedder:
    """See :class:`ecphoryrag.models.embedder.Embedder`. Opens no connection before it is used."""

    manner = ""

    def __init__(self, model: str, settings: OpenAISettings) -> None:
        self._model = model
        self._place = place_of(self.name, settings)
        self._client = OpenAIClient(settings, self._place)
        self._inquiry = Inquiry(self._client, model, settings.context)

    @property
    def name(self) -> str:
        """``openai/`` and the model's name."""
        return f"openai/{self._model}"

    def describe(self) -> Described:
        """The context that the settings or the server name; what tells the weights apart, where it says."""
        about = self._inquiry.about()
        digest = hashlib.blake2b(about.fingerprint.encode(), digest_size=8).hexdigest() if about.fingerprint else ""
        return Described(digest, about.context)

    def embed(self, texts: Sequence[str]) -> Embedded:
        """By one request of ``/embeddings``. Numbers are asked for as text: not every server packs them."""
        request = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        try:
            reply = self._client.post("/embeddings", request)
        except Refusal as refusal:
            raise refused(refusal, self._place) from None
        data = reply.get("data")
        if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
            raise not_the_api(self._place, data)
        usage = reply.get("usage")
        tokens = whole(usage.get("prompt_tokens")) if isinstance(usage, dict) else None
        return Embedded(as_rows([one.get("embedding") for one in self._ordered(data)], self.name), tokens)

    def _ordered(self, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """In the order of the texts. Some servers number nothing, or all alike, and keep the order."""
        numbers = [one.get("index") for one in data]
        if len(set(map(str, numbers))) <= 1:
            return data
        if sorted(map(str, numbers)) != sorted(map(str, range(len(data)))):
            raise BadVectors(f"{self.name} numbers its vectors so that they cannot be told apart: {numbers[:8]}")
        return sorted(data, key=lambda one: int(one["index"]))

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        self._client.close()


class OpenAIEncoder(ServedEncoder):
    """An embedding model on a server. Opens no connection before it is used. See :class:`ecphoryrag.ports.Encoder`."""

    def __init__(
        self,
        model: str,
        settings: OpenAISettings,
        prefixes: Prefixes,
        known: EncoderIdentity | None = None,
        means: Means | None = None,
    ) -> None:
        super().__init__(OpenAIEmbedder(model, settings), prefixes, known, means or Means.of(settings))
