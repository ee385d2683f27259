"""Whose vectors a store holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import apsw

from ecphoryrag.errors import EncoderMismatch, StoreDamaged
from ecphoryrag.store import sql
from ecphoryrag.types import EncoderIdentity

ENCODER, NEXT_ENCODER = "encoder", "next_encoder"
"""Properties of the store: the encoder of its vectors, and the one that it is being moved to, if it is."""
MOST_DIMENSIONS = 2**20


def packed(encoder: EncoderIdentity) -> str:
    """An identity as the store keeps it; equal exactly if the identities are."""
    return json.dumps(asdict(encoder), sort_keys=True)


def read_identity(connection: apsw.Connection, name: str, path: Path) -> EncoderIdentity | None:
    """The identity under this property, if it is there. Raises StoreDamaged if it cannot be read."""
    kept = sql.value(connection, "SELECT value FROM properties WHERE name = ?", (name,))
    if kept is None:
        return None
    try:
        return _identity(json.loads(kept))
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreDamaged(
            f"The store {path} is damaged: which encoder its vectors come from cannot be read ({error}); restore a "
            "copy, or index the documents into a new store."
        ) from error


def _identity(record: dict[str, Any]) -> EncoderIdentity:
    """Raises TypeError and ValueError for what is none: the file may come from anywhere."""
    found = EncoderIdentity(**record)
    if not all(isinstance(one, str) for one in (found.name, found.version, found.fingerprint)):
        raise TypeError("a name, version or fingerprint that is no text")
    if type(found.dimension) is not int or not 0 <= found.dimension <= MOST_DIMENSIONS:
        raise ValueError("a dimension that no vector has")
    return found


def check_encoder(connection: apsw.Connection, path: Path, encoder: EncoderIdentity) -> None:
    """Raise EncoderMismatch if the vectors come from another encoder, StoreDamaged if the store does not say."""
    ours = read_identity(connection, ENCODER, path)
    if ours is None:
        raise StoreDamaged(f"The store {path} does not say which encoder its vectors come from; index into a new one.")
    if ours != encoder:
        raise EncoderMismatch(
            f"The store {path} holds vectors of the encoder {_shown(ours)}, but {_shown(encoder)} is configured. Set "
            f'`encoder = "{ours.name}"` (or `--encoder {ours.name}`) to use this store, move it with '
            f"`ecphory reembed --encoder {encoder.name}`, or index the documents into a new store."
        )


def check_unmoved(connection: apsw.Connection, path: Path, encoder: EncoderIdentity) -> None:
    """Raise EncoderMismatch if the store, opened with this encoder, has been moved to another one since."""
    kept = sql.value(connection, "SELECT value FROM properties WHERE name = ?", (ENCODER,))
    if kept == packed(encoder):
        return
    ours = read_identity(connection, ENCODER, path)
    if ours is not None and ours != encoder:
        raise EncoderMismatch(
            f"The store {path} was moved to the encoder {_shown(ours)} while it was open with {_shown(encoder)}: open "
            f"it again with the encoder {ours.name!r}."
        )


def _shown(encoder: EncoderIdentity) -> str:
    return f"{encoder.name!r} (version {encoder.version}, {encoder.dimension} dimensions, {encoder.fingerprint})"
