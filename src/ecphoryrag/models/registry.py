"""Adapters by the names that the settings use. Each is imported only when it is asked for."""

from __future__ import annotations

from pathlib import Path

from ecphoryrag.errors import SettingsError
from ecphoryrag.ports import Encoder, Extractor, Generator
from ecphoryrag.settings import Settings, split_name


def make_encoder(settings: Settings) -> Encoder:
    """The configured encoder. Raises ModelNotAvailable if its package is missing."""
    backend, _ = split_name(settings.encoder)
    if backend == "static":
        from ecphoryrag.models.static import StaticEncoder  # noqa: PLC0415

        return StaticEncoder()
    if backend == "minilm":
        from ecphoryrag.models.minilm import MiniLMEncoder  # noqa: PLC0415

        return MiniLMEncoder()
    if backend == "none":
        from ecphoryrag.models.none import NoEncoder  # noqa: PLC0415

        return NoEncoder()
    raise SettingsError(f"the encoder {settings.encoder} is not there yet")


def make_extractor(settings: Settings) -> Extractor:
    """The configured extractor."""
    if settings.extractor != "names":
        raise SettingsError(f"the extractor {settings.extractor} is not there yet")
    from ecphoryrag.models.names import NamesExtractor  # noqa: PLC0415

    return NamesExtractor()


def make_generator(settings: Settings, name: str | None = None) -> Generator | None:
    """The generator of this name, or the configured one; None if that is ``none``.

    Raises ModelNotAvailable if its package or model file is missing.
    """
    backend, model = split_name(name or settings.generator)
    if backend == "none":
        return None
    if backend == "local":
        from ecphoryrag.models.local import LocalGenerator  # noqa: PLC0415

        local = settings.models.local
        return LocalGenerator(local.model_copy(update={"path": Path(model)}) if model else local)
    raise SettingsError(f"the generator {name or settings.generator} is not there yet")
