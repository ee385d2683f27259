"""Document text inside a prompt: as data that cannot pose as anything else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

MARK_BYTES = 3
_BREAKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b\u2028\u2029\u2060\ufeff]+")
_NUMBER_IN_BRACKETS = re.compile(r"[\[【［]\s*(\d{1,4})\s*[\]】］]")
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def one_line(text: str) -> str:
    """The text on one line, without control characters: nothing in it begins a line."""
    return _BREAKS.sub(" ", text).strip()


def quoted(text: str) -> str:
    """The text on one line, and without anything like a number of ours: ``[7]`` becomes ``(7)``."""
    return _NUMBER_IN_BRACKETS.sub(r"(\1)", _BREAKS.sub(" ", text)).strip()


def unforgeable(lines: Iterable[str]) -> str:
    """A mark derived from all of a prompt's text, which the author of a single document does not know."""
    return hashlib.blake2b("\n".join(lines).encode("utf-8", "replace"), digest_size=MARK_BYTES).hexdigest()


def plain(text: str) -> str:
    """A model's words without what JSON's escapes may smuggle in: halves of surrogate pairs, and controls."""
    return _NOT_TEXT.sub(" ", text)
