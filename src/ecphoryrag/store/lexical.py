"""The terms of the lexical index: one tokenizer for what is indexed and for what is asked."""

from __future__ import annotations

from typing import Any

import apsw

from ecphoryrag.text.terms import segment

TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2", "categories", "L* N* Co M*")
"""Porter stems over SQLite's Unicode words. ``M*`` keeps combining marks inside words: without it a Hindi word falls
apart at each vowel sign. Part of the store's format: a change needs a migration that indexes anew."""


class Tokenizer:
    """Text to terms, exactly as the FTS5 index of a store does it."""

    def __init__(self, connection: apsw.Connection) -> None:
        name, *arguments = TOKENIZER
        self._tokenizer: Any = connection.fts5_tokenizer(name, arguments)

    def __call__(self, text: str) -> list[str]:
        """The terms of the text, in order, repeats kept."""
        data = segment(text).encode("utf-8")
        found: list[str] = self._tokenizer(
            data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
        )
        return found
