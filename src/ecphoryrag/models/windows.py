"""Cutting a text that is too long for a model into parts that are not."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ecphoryrag.ports import Vectors

_SLACK = 4
"""A cut may move back by one in so many parts of a window, to fall between two words."""


def windows(text: str, count: int) -> list[str]:
    """The text in at most so many parts of about equal length, none empty; together they are the text.

    Cuts fall between words where there are any near, else (in scripts without spaces) within.
    """
    bounds = [0]
    width = len(text) / count
    for part in range(1, count):
        at = round(part * width)
        least = max(bounds[-1] + 1, at - int(width / _SLACK))
        between = next((place for place in range(at, least - 1, -1) if text[place - 1 : place].isspace()), at)
        if bounds[-1] < between < len(text):
            bounds.append(between)
    bounds.append(len(text))
    return [text[start:stop] for start, stop in itertools.pairwise(bounds)]


def joined(vectors: Vectors, parts: Sequence[str]) -> Vectors:
    """(1, d): the mean of the unit vectors (len(parts), d) of a text's parts, weighed by their length; not scaled."""
    shares = np.array([len(part) for part in parts], np.float32)
    return np.asarray(shares / shares.sum() @ vectors, np.float32)[None]
