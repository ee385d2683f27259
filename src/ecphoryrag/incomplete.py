"""How a document is described that has chunks which could not be extracted."""

from __future__ import annotations

from collections.abc import Sequence

from ecphoryrag.types import Failure

SHOWN = 3
"""Chunks of a document whose reasons are given; a model that fails mostly fails for one reason."""
LONGEST_REASON = 300
"""Characters of a reason that are shown: it may quote a reply of any length."""


def incomplete_document(id: str, chunks: int, failed: int, failures: Sequence[tuple[int, str]]) -> Failure:
    """The document by its id, and how many of its ``chunks`` have ``failed``.

    ``failures`` holds (ordinal, reason) of those chunks by ordinal, at least of the first few; ordinals are shown as
    they are counted everywhere, from 0.
    """
    told = [f"chunk {ordinal}: {_short(reason)}" for ordinal, reason in failures[:SHOWN]]
    if failed > len(told):
        told.append(f"and {failed - len(told)} more")
    return Failure(id, f"{failed} of {chunks} chunks could not be extracted; {'; '.join(told)}")


def _short(reason: str) -> str:
    line = " ".join(reason.split())
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"
