"""A ledger in memory, plainly: what the calls of language models are tested with."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.ports import Vectors
from ecphoryrag.types import Generation, Purpose, Spending, Usage


class MemoryLedger:
    """See :class:`ecphoryrag.ports.Ledger`; it keeps no vectors."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.kept: dict[str, tuple[Generation, Purpose, str, tuple[str, ...]]] = {}
        self.spent: dict[tuple[Purpose, str], Usage] = {}

    def find(self, key: str) -> Generation | None:
        with self._lock:
            return self.kept[key][0] if key in self.kept else None

    def keep(self, key: str, reply: Generation, purpose: Purpose, model: str, documents: Sequence[str] = ()) -> None:
        with self._lock:
            self.kept[key] = (reply, purpose, model, tuple(documents))
        self.spend(purpose, model, reply.usage)

    def find_vectors(self, keys: Sequence[str]) -> list[NDArray[np.float32] | None]:
        return [None for _ in keys]

    def keep_vectors(self, keys: Sequence[str], vectors: Vectors, cost: Spending, *, lasting: bool) -> None:
        raise NotImplementedError("this ledger keeps replies only")

    def drop_vectors(self) -> None:
        pass

    def spend(self, purpose: Purpose, model: str, usage: Usage) -> None:
        with self._lock:
            self.spent[purpose, model] = self.spent.get((purpose, model), Usage()) + usage

    def spending(self) -> tuple[Spending, ...]:
        return tuple(Spending(*at, usage) for at, usage in sorted(self.spent.items()))

    def history(self, purpose: Purpose, model: str) -> tuple[tuple[str, Usage], ...]:
        found = [(key, kept[0].usage) for key, kept in self.kept.items() if kept[1:3] == (purpose, model)]
        return tuple(reversed(found))

    def forget(self, documents: Sequence[str]) -> None:
        with self._lock:
            self.kept = {key: kept for key, kept in self.kept.items() if not set(kept[3]) & set(documents)}

    def close(self) -> None:
        pass
