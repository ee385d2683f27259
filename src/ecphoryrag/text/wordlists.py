"""Small closed lists of words."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """The words between spaces."""
    return frozenset(words.split())
