"""A snapshot as a cache file beside its store."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store.arrays import HALF
from ecphoryrag.store.cachefile import Arrays, pack_strings, peeked_stamp, read_cache, unpack_strings, write_cache
from ecphoryrag.vectors import unit_rows

LAYOUT = 2
"""Part of the stamp: raise it when what the file holds changes."""
_STRINGS = ("document_ids", "entity_keys", "terms")
_ROW_MATRICES = ("mentions", "about", "linked", "short_forms")
_COLUMN_MATRICES = ("term_counts", "title_term_counts")
_ARRAYS = ("chunk_documents", "chunk_rows", "aliases")


def write_snapshot(path: Path, stamp: str, snapshot: Snapshot, half: NDArray[np.float16]) -> bool:
    """Keep the snapshot; ``half`` are its vectors as the store has them. False if it could not be written."""
    arrays: Arrays = {"vectors": half, "generation": np.array([snapshot.generation], np.int64)}
    for name in _STRINGS:
        arrays[f"{name}.text"], arrays[f"{name}.offsets"] = pack_strings(list(getattr(snapshot, name)))
    for name in (*_ROW_MATRICES, *_COLUMN_MATRICES):
        matrix = getattr(snapshot, name)
        for part in ("data", "indices", "indptr"):
            arrays[f"{name}.{part}"] = getattr(matrix, part)
        arrays[f"{name}.shape"] = np.array(matrix.shape, np.int64)
    for name in _ARRAYS:
        arrays[name] = getattr(snapshot, name)
    if snapshot.names or len(snapshot.entity_positions) > len(snapshot.entity_keys):
        arrays |= _names(snapshot)
    return write_cache(path, f"snapshot {LAYOUT} {stamp}", arrays)


def _names(snapshot: Snapshot) -> Arrays:
    """What decisions about names add: names that lead to an entity of another key, and by which names it is met."""
    keys = snapshot.entity_keys
    lead = sorted((key, at) for key, at in snapshot.entity_positions.items() if keys[at] != key)
    names = [(name, entity) for entity, found in sorted(snapshot.names.items()) for name in found]
    arrays: Arrays = {}
    for part, pairs in (("lead", lead), ("names", names)):
        arrays[f"{part}.text"], arrays[f"{part}.offsets"] = pack_strings([name for name, _ in pairs])
        arrays[f"{part}.entities"] = np.array([at for _, at in pairs], np.int32)
    return arrays


def _pairs(arrays: Arrays, part: str) -> list[tuple[str, int]]:
    if f"{part}.entities" not in arrays:
        return []
    strings = unpack_strings(arrays[f"{part}.text"], arrays[f"{part}.offsets"])
    return list(zip(strings, arrays[f"{part}.entities"].tolist(), strict=True))


def kept_under(path: Path) -> str | None:
    """The stamp under which a snapshot is said to be kept there; see :func:`read_snapshot` for whether it is."""
    stamp, mark = peeked_stamp(path), f"snapshot {LAYOUT} "
    return stamp.removeprefix(mark) if stamp is not None and stamp.startswith(mark) else None


def read_snapshot(path: Path, stamp: str) -> Snapshot | None:
    """The snapshot that was kept under this stamp, or None."""
    arrays = read_cache(path, f"snapshot {LAYOUT} {stamp}")
    if arrays is None:
        return None
    try:
        return _snapshot(arrays)
    except (KeyError, ValueError, TypeError, IndexError):  # made by somebody else, with a checksum that holds
        return None


def _snapshot(arrays: Arrays) -> Snapshot:
    """Raises KeyError, ValueError, TypeError and IndexError for arrays that make none."""
    strings = {name: unpack_strings(arrays[f"{name}.text"], arrays[f"{name}.offsets"]) for name in _STRINGS}
    names: dict[int, list[str]] = {}
    for name, entity in _pairs(arrays, "names"):
        names.setdefault(entity, []).append(name)
    half: NDArray[np.float16] = arrays["vectors"].astype(HALF, copy=False)
    made = Snapshot(
        generation=int(arrays["generation"][0]),
        document_ids=strings["document_ids"],
        chunk_documents=arrays["chunk_documents"],
        chunk_rows=arrays["chunk_rows"],
        entity_keys=strings["entity_keys"],
        entity_positions=dict(zip(strings["entity_keys"], itertools.count())) | dict(_pairs(arrays, "lead")),
        mentions=_matrix(arrays, "mentions", "csr"),
        about=_matrix(arrays, "about", "csr"),
        linked=_matrix(arrays, "linked", "csr"),
        short_forms=_matrix(arrays, "short_forms", "csr"),
        aliases=arrays["aliases"],
        terms={term: column for column, term in enumerate(strings["terms"])},
        term_counts=_matrix(arrays, "term_counts", "csc"),
        title_term_counts=_matrix(arrays, "title_term_counts", "csc"),
        vectors=unit_rows(half),
        names={entity: tuple(found) for entity, found in names.items()},
    )
    _check(made)
    return made


def _check(made: Snapshot) -> None:
    """Raise ValueError for positions that lead outside: whoever has a store from elsewhere may have its cache too, and
    what is computed with it does not look where it reads."""
    chunks, entities, terms = made.chunk_count, len(made.entity_keys), len(made.terms)
    shapes = dict.fromkeys(_ROW_MATRICES, (chunks, entities)) | dict.fromkeys(_COLUMN_MATRICES, (chunks, terms))
    for name, shape in shapes.items():
        matrix = getattr(made, name)
        if matrix.shape != shape:
            raise ValueError(f"{name} has another shape")
        matrix.check_format(full_check=True)
    if made.chunk_rows.shape != (chunks,) or made.chunk_documents.shape != (chunks,) or len(made.vectors) != chunks:
        raise ValueError("arrays of another length")
    for positions, below in ((made.chunk_documents, len(made.document_ids)), (made.aliases, entities)):
        if positions.size and not (int(positions.min()) >= 0 and int(positions.max()) < below):
            raise ValueError("a position that leads outside")
    if made.aliases.ndim != 2 or made.aliases.shape[1] != 2 or made.vectors.ndim != 2:
        raise ValueError("arrays of another form")


def _matrix(arrays: Arrays, name: str, layout: Literal["csr", "csc"]) -> Any:
    parts = arrays[f"{name}.data"], arrays[f"{name}.indices"], arrays[f"{name}.indptr"]
    rows, columns = arrays[f"{name}.shape"].tolist()
    matrix = (sp.csr_array if layout == "csr" else sp.csc_array)(parts, shape=(rows, columns))
    matrix.has_canonical_format = True
    return matrix
