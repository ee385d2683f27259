"""What a method found, before texts are fetched for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ecphoryrag.recall.ecphory import Trace
from ecphoryrag.recall.routes import Route


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk by its position among those that may be recalled."""

    position: int
    score: float
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FoundEntity:
    """An entity by its position in the snapshot."""

    position: int
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """Chunks and entities, best first."""

    chunks: tuple[FoundChunk, ...] = ()
    entities: tuple[FoundEntity, ...] = ()
    routes: tuple[Route, ...] = ()
    """One a chunk."""
    trace: Trace | None = None
    """Of the method `ecphory` alone."""
    reason: str | None = None
    """Why nothing, or less than could be expected, was found."""
