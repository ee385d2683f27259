"""Vectors of entities, encoded once for each text and kept in a cache beside the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.ports import Encoder, Vectors
from ecphoryrag.store.arrays import HALF
from ecphoryrag.store.cachefile import Arrays, read_cache, write_cache
from ecphoryrag.types import EncoderIdentity, Entity
from ecphoryrag.vectors import unit_rows

_HASH_BYTES = 16
ENCODED_AT_ONCE = 1024
"""Texts given to the encoder at once, to bound what it holds in memory."""
LAYOUT = 1
"""Part of the stamp: raise it when what the file holds, or what is encoded, changes."""


def entity_text(entity: Entity) -> str:
    """What is encoded for an entity: its name and the sentence that defines it."""
    return f"{entity.name}. {entity.description}" if entity.description else entity.name


def text_hash(text: str) -> bytes:
    """What stands for a text that was encoded."""
    return hashlib.blake2b(text.encode("utf-8"), digest_size=_HASH_BYTES).digest()


class EntityVectors:
    """The cache file of one encoder's vectors, found by the hash of the text, whichever generation it came from."""

    def __init__(self, path: Path, identity: EncoderIdentity, *, writable: bool) -> None:
        self._path = path
        self._writable = writable
        self._dimension = identity.dimension
        self._stamp = f"vectors {LAYOUT} {identity!r}"

    def written_for(self, state: str) -> Vectors | None:
        """(m, d) float32, if the file was written for this very state of the store."""
        arrays = read_cache(self._path, self._stamp)
        if arrays is None or arrays["state"].tobytes() != state.encode("utf-8"):
            return None
        return unit_rows(arrays["vectors"][arrays["order"]])

    def of(self, entities: Sequence[Entity], encoder: Encoder, state: str) -> Vectors:
        """(len(entities), d) float32; only texts that are new are encoded, and those no longer used are dropped."""
        hashes, texts = [], {}
        for entity in entities:
            text = entity_text(entity)
            hashes.append(text_hash(text))
            texts[hashes[-1]] = text
        known = self._read()
        missing = [(key, text) for key, text in texts.items() if key not in known]
        for first in range(0, len(missing), ENCODED_AT_ONCE):
            part = missing[first : first + ENCODED_AT_ONCE]
            encoded = encoder.encode([text for _, text in part], "passage").vectors.astype(HALF)
            known.update(zip((key for key, _ in part), encoded, strict=True))
        return unit_rows(self._write(known, hashes, state))

    def keep_only(self, entities: Iterable[Entity], state: str) -> bool:
        """Drop the vectors of all other texts, and know that the rest are those of this state, as far as they go.

        False if the file is of no use: damaged, empty, or of another encoder.
        """
        known = self._read()
        if known:
            self._write(known, [text_hash(entity_text(entity)) for entity in entities], state)
        return bool(known)

    def _read(self) -> dict[bytes, NDArray[np.float16]]:
        arrays = read_cache(self._path, self._stamp)
        if arrays is None:
            return {}
        keys = arrays["hashes"].tobytes()
        return {keys[at * _HASH_BYTES : (at + 1) * _HASH_BYTES]: vector for at, vector in enumerate(arrays["vectors"])}

    def _write(self, known: dict[bytes, NDArray[np.float16]], wanted: list[bytes], state: str) -> NDArray[np.float16]:
        """Keep what is wanted; returns (len(wanted), d), or fewer rows if not all are known."""
        keys = sorted(known.keys() & set(wanted))
        places = {key: place for place, key in enumerate(keys)}
        vectors = np.array([known[key] for key in keys], HALF).reshape(len(keys), self._dimension)
        order = np.array([places[key] for key in wanted if key in places], np.int32)
        arrays: Arrays = {
            "hashes": np.frombuffer(b"".join(keys), np.uint8),
            "vectors": vectors,
            "order": order,
            "state": np.frombuffer((state if len(order) == len(wanted) else "").encode("utf-8"), np.uint8),
        }
        if self._writable:
            write_cache(self._path, self._stamp, arrays)
        return np.asarray(vectors[order], np.float16)
