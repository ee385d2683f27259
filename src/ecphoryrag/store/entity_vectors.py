"""Vectors of entities, encoded once for each text and kept in a cache beside the store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.ports import Encoder, Vectors
from ecphoryrag.store.arrays import unit_rows
from ecphoryrag.store.cachefile import Arrays, read_cache, write_cache
from ecphoryrag.types import EncoderIdentity, Entity

_HASH_BYTES = 16
_ENCODED_AT_ONCE = 4096


def entity_text(entity: Entity) -> str:
    """What is encoded for an entity: its name and the sentence that defines it."""
    return f"{entity.name}. {entity.description}" if entity.description else entity.name


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8"), digest_size=_HASH_BYTES).digest()


class EntityVectors:
    """The cache file of one encoder's vectors, found by the hash of the text, whichever generation it came from."""

    def __init__(self, path: Path, identity: EncoderIdentity) -> None:
        self._path = path
        self._dimension = identity.dimension
        self._stamp = repr(identity)

    def of(self, entities: Sequence[Entity], encoder: Encoder) -> Vectors:
        """(len(entities), d) float32; only texts that are new are encoded, and those no longer used are dropped."""
        dimension = self._dimension
        if not dimension:
            return np.zeros((len(entities), 0), np.float32)
        texts = [entity_text(entity) for entity in entities]
        hashes = [_hash(text) for text in texts]
        known = self._read()
        missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in known}
        before = len(known)
        wanted = list(missing.items())
        for first in range(0, len(wanted), _ENCODED_AT_ONCE):
            part = wanted[first : first + _ENCODED_AT_ONCE]
            encoded = encoder.encode([text for _, text in part], "passage").vectors.astype(np.float16)
            known.update(zip((key for key, _ in part), encoded, strict=True))
        if missing or before > len(set(hashes)):
            self._write(known, set(hashes))
        half = np.stack([known[key] for key in hashes]) if hashes else np.zeros((0, dimension), np.float16)
        return unit_rows(half)

    def keep_only(self, entities: Iterable[Entity]) -> None:
        """Drop the vectors of all other texts."""
        known = self._read()
        kept = {_hash(entity_text(entity)) for entity in entities}
        if not known.keys() <= kept:
            self._write(known, kept)

    def _read(self) -> dict[bytes, NDArray[np.float16]]:
        arrays = read_cache(self._path, self._stamp)
        if arrays is None:
            return {}
        keys = arrays["hashes"].tobytes()
        return {keys[at * _HASH_BYTES : (at + 1) * _HASH_BYTES]: vector for at, vector in enumerate(arrays["vectors"])}

    def _write(self, known: dict[bytes, NDArray[np.float16]], kept: set[bytes]) -> None:
        keys = sorted(kept & known.keys())
        arrays: Arrays = {
            "hashes": np.frombuffer(b"".join(keys), np.uint8),
            "vectors": np.array([known[key] for key in keys], np.float16).reshape(-1, self._dimension),
        }
        write_cache(self._path, self._stamp, arrays)
