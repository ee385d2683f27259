"""The settings as one tree."""

from __future__ import annotations

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

from ecphoryrag.settings.answering import AnsweringSettings
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.settings.recall import RecallSettings

ENVIRONMENT_PREFIX = "ECPHORY_"
NESTED = "__"


class Settings(BaseSettings):
    """All settings. ``Settings()`` reads the environment; use :func:`load_settings` for the file as well."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=ENVIRONMENT_PREFIX,
        env_nested_delimiter=NESTED,
        use_attribute_docstrings=True,
    )

    store: Path = Path("memory.ecphory")
    """The store that the command line uses where `--store` is not given."""
    indexing: IndexingSettings = IndexingSettings()
    """From documents to the store."""
    recall: RecallSettings = RecallSettings()
    """From a question to ranked chunks."""
    answering: AnsweringSettings = AnsweringSettings()
    """From ranked chunks to an answer."""
