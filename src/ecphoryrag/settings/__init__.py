"""Every setting, its default and its reason.

A value comes from, strongest first: an argument, the environment (``ECPHORY_RECALL__ECPHORY__DAMPING=0.7``), the
file named by ``ECPHORY_CONFIG`` or else ``ecphory.toml`` in the working folder, the default. Nothing is read before
:func:`load_settings` is called.
"""

from ecphoryrag.settings.answering import AnsweringSettings
from ecphoryrag.settings.indexing import ChunkSettings, ExtractionSettings, IndexingSettings
from ecphoryrag.settings.load import Origin, SettingValue, explain_settings, load_settings, with_encoder
from ecphoryrag.settings.models import (
    LocalModelSettings,
    ModelsSettings,
    OllamaSettings,
    OpenAISettings,
    ServerSettings,
    is_served,
    split_name,
)
from ecphoryrag.settings.recall import EcphorySettings, FlatSettings, MethodName, PaperSettings, RecallSettings
from ecphoryrag.settings.root import Settings

__all__ = [
    "AnsweringSettings",
    "ChunkSettings",
    "EcphorySettings",
    "ExtractionSettings",
    "FlatSettings",
    "IndexingSettings",
    "LocalModelSettings",
    "MethodName",
    "ModelsSettings",
    "OllamaSettings",
    "OpenAISettings",
    "Origin",
    "PaperSettings",
    "RecallSettings",
    "ServerSettings",
    "SettingValue",
    "Settings",
    "explain_settings",
    "is_served",
    "load_settings",
    "split_name",
    "with_encoder",
]
