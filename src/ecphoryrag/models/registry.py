"""Adapters by the names that the settings use. Each is imported only when it is asked for."""

from __future__ import annotations

from ecphoryrag.ports import Encoder, Extractor, Generator
from ecphoryrag.settings.answering import AnsweringSettings
from ecphoryrag.settings.indexing import EncoderName, ExtractorName


def make_encoder(name: EncoderName) -> Encoder:
    """The encoder of this name. Raises ModelNotAvailable if its package is missing."""
    if name == "static":
        from ecphoryrag.models.static import StaticEncoder  # noqa: PLC0415

        return StaticEncoder()
    if name == "minilm":
        from ecphoryrag.models.minilm import MiniLMEncoder  # noqa: PLC0415

        return MiniLMEncoder()
    from ecphoryrag.models.none import NoEncoder  # noqa: PLC0415

    return NoEncoder()


def make_extractor(name: ExtractorName) -> Extractor:
    """The extractor of this name."""
    del name  # there is one so far
    from ecphoryrag.models.names import NamesExtractor  # noqa: PLC0415

    return NamesExtractor()


def make_generator(settings: AnsweringSettings) -> Generator | None:
    """The configured generator, or None if the settings say ``none``.

    Raises ModelNotAvailable if its package or model file is missing.
    """
    if settings.generator == "none":
        return None
    from ecphoryrag.models.local import LocalGenerator  # noqa: PLC0415

    return LocalGenerator(settings.local)
