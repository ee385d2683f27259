"""The settings as one tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ecphoryrag.settings.answering import AnsweringSettings
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.settings.models import ModelsSettings, encoder_name, extractor_name, generator_name
from ecphoryrag.settings.recall import RecallSettings

ENVIRONMENT_PREFIX = "ECPHORY_"
NESTED = "__"


def _at_home(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise ValueError(f"{path} names a home folder that is not known") from error


class Settings(BaseSettings):
    """All settings. ``Settings()`` holds the defaults; :func:`load_settings` reads the file and the environment."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter=NESTED,
        env_ignore_empty=True,
        use_attribute_docstrings=True,
    )

    store: Annotated[Path, AfterValidator(_at_home)] = Path("memory.ecphory")
    """The store that the command line uses where `--store` is not given."""
    generator: Annotated[str, AfterValidator(generator_name)] = "local"
    """The language model: `local` (or `local/FILE.gguf`), `openai/MODEL`, `ollama/MODEL`; `none`: evidence only."""
    encoder: Annotated[str, AfterValidator(encoder_name)] = "static"
    """Fits every machine; `minilm` recalls better and indexes more slowly; `none` is the smallest install; or
    `ollama/MODEL`, `openai/MODEL`, `local/FILE.gguf`. A store keeps the one it was made with."""
    extractor: Annotated[str, AfterValidator(extractor_name)] = "names"
    """`names` is deterministic, needs no model and costs no token; `llm` asks the generator, `llm/ollama/MODEL` another
    model, once a chunk."""
    models: ModelsSettings = ModelsSettings()
    """Models in this process, and servers."""
    indexing: IndexingSettings = IndexingSettings()
    """From documents to the store."""
    recall: RecallSettings = RecallSettings()
    """From a question to ranked chunks."""
    answering: AnsweringSettings = AnsweringSettings()
    """From ranked chunks to an answer."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is given, alone: ``load_settings`` orders the sources itself, since it must say which set what."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)
