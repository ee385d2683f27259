"""The encoder ``local``: a GGUF embedding model, run in this process by llama.cpp through ``xllamacpp``."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ecphoryrag.errors import GenerationError, ModelNotAvailable, PromptTooLong
from ecphoryrag.models.embedder import Described, Embedded, Means, as_rows, is_too_long
from ecphoryrag.models.files import MODEL_NAME, resolve_model
from ecphoryrag.models.llama_cpp import LlamaCpp, raise_for
from ecphoryrag.models.prefixes import Prefixes
from ecphoryrag.models.served_encoder import ServedEncoder
from ecphoryrag.settings.models import LocalModelSettings
from ecphoryrag.types import EncoderIdentity

BLOCK = 2**20
BLOCKS = 16
"""A model is told by its size, its first and last megabyte and so many in between: all of a file of gigabytes would
take as long to read as the work. The first holds the model's description, and weights that differ do so everywhere."""


class LocalEmbedder:
    """See :class:`ecphoryrag.models.embedder.Embedder`. The model is loaded when first used.

    Texts are read one at a time, so that a vector does not depend on what else is in the batch.
    """

    def __init__(self, path: Path | None, settings: LocalModelSettings) -> None:
        self._settings = settings if path is None else settings.model_copy(update={"path": path})
        self._lock = threading.Lock()
        self._llama: LlamaCpp | None = None

    @property
    def name(self) -> str:
        """``local/`` and the model file's name without its ending."""
        path = self._settings.path
        return f"local/{MODEL_NAME if path is None else path.stem}"

    @property
    def manner(self) -> str:
        """The pooling."""
        return self._settings.pooling

    def describe(self) -> Described:
        """A digest of the file; the context is known once the model is loaded."""
        llama = self._loaded()
        properties = llama.call("GET", "/props", None)
        return Described(digest_of(self._path()), int(properties["default_generation_settings"]["n_ctx"]))

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors by the settings' pooling; tokens are the model's own."""
        llama, rows, tokens = self._loaded(), [], 0
        for text in texts:
            try:
                reply = llama.server.handle_embeddings({"input": [text]})
                raise_for(reply)
            except RuntimeError as error:
                raise GenerationError(f"llama.cpp failed: {error}. Try again, or set another model") from error
            except GenerationError as error:
                raise self._told(error) from None
            rows += [one["embedding"] for one in reply["data"]]
            tokens += int(reply["usage"]["prompt_tokens"])
        return Embedded(as_rows(rows, self.name), tokens)

    def close(self) -> None:
        """Unload the model; the next use loads it again."""
        with self._lock:
            self._llama = None

    def _told(self, error: GenerationError) -> GenerationError | PromptTooLong | ModelNotAvailable:
        message = str(error)
        if is_too_long(message):
            return PromptTooLong(f"{self.name}: {message}")
        if "pooling" in message.casefold():
            return ModelNotAvailable(
                f"{self.name} does not say how its tokens' vectors become one: set models.local.pooling to mean, cls "
                "or last, as the model's makers say"
            )
        return error

    def _path(self) -> Path:
        return resolve_model(self._settings)

    def _loaded(self) -> LlamaCpp:
        with self._lock:
            if self._llama is None:
                self._llama = self._load(self._settings.context)
                trained = self._llama.call("GET", "/v1/models", None)["data"][0]["meta"]["n_ctx_train"]
                if 0 < trained < self._settings.context:
                    # What is longer than a model with absolute positions was trained on must never reach it.
                    self._llama = None
                    self._llama = self._load(trained)
            return self._llama

    def _load(self, context: int) -> LlamaCpp:
        def adjust(package: Any, params: Any) -> None:
            kinds = package.llama_pooling_type
            params.embedding = True
            params.pooling_type = {
                "model": kinds.LLAMA_POOLING_TYPE_UNSPECIFIED,
                "mean": kinds.LLAMA_POOLING_TYPE_MEAN,
                "cls": kinds.LLAMA_POOLING_TYPE_CLS,
                "last": kinds.LLAMA_POOLING_TYPE_LAST,
            }[self._settings.pooling]
            params.n_ctx = params.n_batch = params.n_ubatch = context  # a text is pooled in one piece

        return LlamaCpp(self._path(), self._settings, adjust)


class LocalEncoder(ServedEncoder):
    """An embedding model in this process; the path is the settings' if none is given. See ports.Encoder."""

    def __init__(
        self,
        path: Path | None,
        settings: LocalModelSettings,
        prefixes: Prefixes,
        known: EncoderIdentity | None = None,
    ) -> None:
        super().__init__(LocalEmbedder(path, settings), prefixes, known, Means())


def digest_of(path: Path) -> str:
    """Hexadecimal; the same for the same model wherever the file lies."""
    size = path.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=8)
    with path.open("rb") as file:
        for part in range(BLOCKS):
            file.seek(max(0, size - BLOCK) * part // (BLOCKS - 1))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()
