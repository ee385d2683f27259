"""Keys of what was split off a name: the name's key with a qualifier in brackets, as in ``mercury (planet)``."""

from __future__ import annotations

from ecphoryrag.text.keys import name_key, normal_words


def split_key(key: str, qualifier: str) -> str | None:
    """The key of what is split off; no name has it of itself, since brackets are no part of a name's key.

    None if the qualifier holds no word.
    """
    words = " ".join(word.norm for word in normal_words(qualifier))
    return f"{key} ({words})" if words else None


def asked_keys(name: str) -> tuple[str, ...]:
    """The keys that a name may mean, likeliest first: with its qualifier, where a split has made that, or without."""
    keys = [name_key(name)]
    head, opened, tail = name.rstrip().rpartition("(")
    if opened and tail.endswith(")") and head.strip():
        for base in reversed(asked_keys(head)):
            key = split_key(base, tail[:-1])
            if key is not None:
                keys.insert(0, key)
    return tuple(keys)


def is_split_key(key: str, qualifier: str) -> bool:
    """Whether the key is one that splitting with this qualifier makes, of whatever name."""
    ending = split_key("", qualifier)
    return ending is not None and key.endswith(ending) and len(key) > len(ending)
