"""Settings of answering."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ecphoryrag.settings.base import Count, Group


class AnsweringSettings(Group):
    """From evidence to an answer."""

    evidence_tokens: Count = 1500
    """Tokens the numbered evidence may take, counted with the model's own tokenizer."""
    links: Annotated[int, Field(ge=0)] = 4
    """Implicit relations pointed out in the prompt, as far as the budget reaches: sentences that join two names."""
    answer_tokens: Count = 256
    """Tokens the reply may take: a sentence or two of reasoning and a short answer."""
