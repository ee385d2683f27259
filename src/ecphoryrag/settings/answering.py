"""Settings of answering and of the local language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from ecphoryrag.settings.base import Count, Group

GeneratorName = Literal["local", "none"]


class LocalModelSettings(Group):
    """The language model run in this process."""

    path: Path | None = None
    """Any GGUF file; empty means the default model, fetched once into the cache folder by `ecphory model fetch`."""
    cache: Path | None = None
    """Folder of the fetched model; empty means the user's cache folder."""
    context: Count = 4096
    """Tokens of prompt and reply together. Memory and time grow with it."""
    threads: Count | None = None
    """Processor threads; empty means one a core."""


class AnsweringSettings(Group):
    """From evidence to an answer."""

    generator: GeneratorName = "local"
    """`none` returns the evidence without an answer."""
    evidence_tokens: Count = 1500
    """Tokens the numbered evidence may take, counted with the model's own tokenizer."""
    links: Annotated[int, Field(ge=0)] = 4
    """Implicit relations pointed out in the prompt, as far as the budget reaches: sentences that join two names."""
    answer_tokens: Count = 256
    """Tokens the reply may take: a sentence or two of reasoning and a short answer."""
    local: LocalModelSettings = LocalModelSettings()
    """The language model run in this process."""
