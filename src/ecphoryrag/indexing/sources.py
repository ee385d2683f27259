"""Choosing documents by where they came from."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from ecphoryrag.errors import InputError
from ecphoryrag.indexing.walk import MAGIC, matches
from ecphoryrag.types import DocumentSummary

_PLACE = re.compile(r"(?::\d+|\[\d+\])$")
"""The line or the place in a file of records."""


def chosen(
    documents: Sequence[DocumentSummary], sources: Sequence[str], where: Mapping[str, object] | None
) -> tuple[str, ...]:
    """Ids of the documents from one of these sources, or of all if none is named; they have passed ``where`` already.

    Raises InputError if neither says anything, since that would choose every document, and for an empty source.
    """
    if not sources and not where:
        raise InputError("neither a source nor a filter was given, which would choose every document")
    if not all(isinstance(source, str) and source.strip() for source in sources):
        raise InputError("a source is empty; name a file, a folder or a pattern")
    patterns = [_normal(source) for source in sources]
    return tuple(
        one.id
        for one in documents
        if not patterns or (one.source and any(comes_from(one.source, pattern) for pattern in patterns))
    )


def comes_from(source: str, pattern: str) -> bool:
    """Whether a document's source is this file, lies in this folder, or matches this pattern (normalised)."""
    for path in dict.fromkeys((source, _PLACE.sub("", source))):
        place = _normal(path)
        wanted = pattern if os.path.isabs(place) == os.path.isabs(pattern) else os.path.abspath(pattern)  # noqa: PTH100, PTH117
        if place == wanted or path == pattern or PurePath(place).is_relative_to(wanted):
            return True
        if MAGIC & set(wanted) and matches(PurePath(place).parts, PurePath(wanted).parts):
            return True
    return False


def _normal(path: str) -> str:
    """Without a slash at the end, ``.`` and ``..``."""
    return os.path.normpath(path).replace(os.sep, "/")
