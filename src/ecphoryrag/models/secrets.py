"""Keys of servers: where they are read from, and what keeps them out of every message."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from ecphoryrag.errors import ModelNotAvailable

HIDDEN = "[key]"
"""Stands where a key stood."""
_SHORTEST = 4
"""Signs of the shortest key that is looked for: a shorter one would be found in the middle of common words."""


class KeySource(Protocol):
    """The settings of a server, as far as they say where its key is."""

    @property
    def api_key_env(self) -> str:
        """The environment variable."""
        ...

    @property
    def api_key_file(self) -> Path | None:
        """The file, used where the variable is not set."""
        ...


def read_key(settings: KeySource) -> str | None:
    """The server's key: from the variable, else from the file; None if neither is given.

    Raises ModelNotAvailable if the file cannot be read, and for what no HTTP header can hold.
    """
    key = os.environ.get(settings.api_key_env, "").strip()
    where = f"the variable {settings.api_key_env}"
    if not key and settings.api_key_file is not None:
        where = f"the key file {settings.api_key_file}"
        try:
            key = settings.api_key_file.expanduser().read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text, or in a home that is not known"
            raise ModelNotAvailable(
                f"{where} cannot be read ({reason}): set api_key_file to a file that holds the key and nothing else, "
                f"or set the variable {settings.api_key_env}"
            ) from None
        if not key:
            raise ModelNotAvailable(f"{where} is empty: write the key into it, or leave api_key_file out")
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ModelNotAvailable(
            f"{where} holds more than a key: no blanks, line breaks or accented letters may be in it"
        )
    return key or None


def redact(text: str, *secrets: str | None) -> str:
    """The text without the secrets. Every message that quotes a server or its SDK goes through this."""
    for secret in sorted((secret for secret in secrets if secret), key=len, reverse=True):
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text
