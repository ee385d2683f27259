"""The arrays of a snapshot where decisions about names are in force."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import apsw
import numpy as np
from numpy.typing import NDArray

from ecphoryrag.store import sql
from ecphoryrag.store.arrays import integers, positions_of
from ecphoryrag.store.resolving import Resolution

NOWHERE = -1


class Resolved:
    """Mentions, links and aliases of the entities shown. n chunks, e names."""

    def __init__(
        self,
        connection: apsw.Connection,
        resolution: Resolution,
        chunk_rows: NDArray[np.int64],
        names: Sequence[str],
    ) -> None:
        """``chunk_rows`` (n,) in the order of the snapshot; ``names`` (e) the keys of all names, sorted."""
        self._connection = connection
        self._resolution = resolution
        self._chunk_rows = chunk_rows
        self._names = names
        self._usual = np.array([resolution.shown.get(key, NOWHERE) for key in names], np.int64)
        """(e,) the entity of each name, where no split has taken the mention."""

    def mentions(self, entity_rows: NDArray[np.int64], not_about: int) -> NDArray[np.int64]:
        """(mentions, 3) chunk position, position of the entity shown, kind; in no order."""
        query = "SELECT chunk, number, entity, about FROM mentions ORDER BY chunk, number"
        found = integers(sql.rows(self._connection, query), 4)
        entities = self._usual[positions_of(found[:, 2], entity_rows)]
        moved = sorted(self._resolution.moved.items())
        if moved:
            width = int(found[:, 1].max()) + 1
            codes = found[:, 0] * width + found[:, 1]
            taken = np.array([chunk * width + number for (chunk, number), _ in moved], np.int64)
            at = np.searchsorted(codes, taken)
            entities[at] = [self._resolution.shown[stem] for _, stem in moved]
        kinds = np.where(found[:, 3] == 0, not_about, found[:, 3])
        return np.column_stack((positions_of(found[:, 0], self._chunk_rows), entities, kinds)).astype(np.int64)

    def linked(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """(pairs, 2) chunk and entity shown, ascending, of (pairs, 2) chunk and name."""
        entities = self._usual[pairs[:, 1]]
        split = self._resolution.split_keys
        if split:
            for at, (chunk, name) in enumerate(pairs.tolist()):
                if self._names[name] in split:
                    entities[at] = self._in_chunk(self._names[name], int(self._chunk_rows[chunk]))
        kept = entities != NOWHERE
        return np.unique(np.column_stack((pairs[kept, 0], entities[kept])), axis=0).astype(np.int64).reshape(-1, 2)

    def aliases(self) -> NDArray[np.int32]:
        """(a, 2) pairs of entities shown that some text says are one thing."""
        places = {key: at for at, key in enumerate(self._names)}
        split = self._resolution.split_keys
        taken: dict[tuple[int, str], set[int]] = defaultdict(set)
        pairs: set[tuple[int, int]] = set()
        query = "SELECT DISTINCT one, other FROM aliases"
        known = [(one, other) for one, other in sql.rows(self._connection, query) if one in places and other in places]
        for one, other in known:
            if one not in split and other not in split:
                pairs.add((int(self._usual[places[one]]), int(self._usual[places[other]])))
        if any(one in split or other in split for one, other in known):
            taken = self._taken(split)
            for chunk, one, other in list(sql.rows(self._connection, "SELECT chunk, one, other FROM aliases")):
                if one in places and other in places and (one in split or other in split):
                    first, second = (
                        taken[chunk, key] or {self._in_chunk(key, chunk) if key in split else int(self._usual[at])}
                        for key, at in ((one, places[one]), (other, places[other]))
                    )
                    pairs |= {(a, b) for a in first for b in second}
        found = {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1] and NOWHERE not in pair}
        return np.array(sorted(found), np.int32).reshape(-1, 2)

    def _taken(self, split: frozenset[str]) -> dict[tuple[int, str], set[int]]:
        """By chunk row and name the entities that the chunk's mentions of it are of, for names that are split."""
        query = "SELECT chunk, number, key FROM mentions JOIN entities e ON e.row = entity WHERE key = ?"
        found: dict[tuple[int, str], set[int]] = defaultdict(set)
        for key in sorted(split):
            for chunk, number, name in sql.rows(self._connection, query, (key,)):
                found[chunk, name].add(self._resolution.position(chunk, number, name))
        return found

    def _in_chunk(self, key: str, chunk: int) -> int:
        document: int = sql.value(self._connection, "SELECT document FROM chunks WHERE row = ?", (chunk,))
        found = self._resolution.in_document(self._connection, key, document)
        return NOWHERE if found is None else found
