"""Settings of recall, one group a method. The reason stands under each."""

from __future__ import annotations

from typing import Literal

from ecphoryrag.settings.base import Count, Group, Share

MethodName = Literal["ecphory", "paper", "dense", "bm25", "hybrid"]


class EcphorySettings(Group):
    """The default method: cues, spreading, chains."""

    damping: Share = 0.8
    """Share of activation that walks on; the rest returns to the cues."""


class PaperSettings(Group):
    """The published algorithm."""

    k_initial: Count = 20
    """Entities nearest the question (the publication's value)."""


class FlatSettings(Group):
    """`dense`, `bm25` and `hybrid`."""


class RecallSettings(Group):
    """Which method recalls, and how much."""

    method: MethodName = "ecphory"
    """The measured best; the others are there to compare with."""
    k: Count = 5
    """Chunks returned. Enough for a chain of three documents with room for a wrong one."""
    ecphory: EcphorySettings = EcphorySettings()
    """Of the method `ecphory`."""
    paper: PaperSettings = PaperSettings()
    """Of the method `paper`."""
    flat: FlatSettings = FlatSettings()
    """Of the methods `dense`, `bm25` and `hybrid`."""
