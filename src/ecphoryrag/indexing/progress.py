"""What a caller is told while documents are being added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Stage: TypeAlias = Literal["load", "extract", "encode", "commit"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the adding has come."""

    stage: Stage
    done: int
    """Documents that need no more work: committed, unchanged or failed."""
    total: int | None
    """Documents in all, as far as can be told beforehand; None if it cannot."""
    current: str | None = None
    """Id of the document at hand; None where a stage works on a batch."""


ProgressCallback: TypeAlias = Callable[[Progress], None]
