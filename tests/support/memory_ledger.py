"""A ledger in dictionaries: what any other must agree with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.ports import Vectors
from ecphoryrag.types import Generation, Purpose, Spending, Usage


@dataclass
class _Kept:
    reply: Generation
    purpose: Purpose
    model: str
    documents: set[str]


@dataclass
class MemoryLedger:
    """See :class:`ecphoryrag.ports.Ledger`; for one thread."""

    replies: dict[str, _Kept] = field(default_factory=dict)
    """In the order of keeping."""
    vectors: dict[str, tuple[NDArray[np.float32], bool]] = field(default_factory=dict)
    spent: dict[tuple[Purpose, str], Usage] = field(default_factory=dict)

    def find(self, key: str) -> Generation | None:
        return self.replies[key].reply if key in self.replies else None

    def keep(self, key: str, reply: Generation, purpose: Purpose, model: str, documents: Sequence[str] = ()) -> None:
        before = self.replies.pop(key, None)
        linked = set(documents) | (before.documents if before else set())
        self.replies[key] = _Kept(reply, purpose, model, linked)
        self.spend(purpose, model, reply.usage)

    def find_vectors(self, keys: Sequence[str]) -> list[NDArray[np.float32] | None]:
        return [self.vectors[key][0].copy() if key in self.vectors else None for key in keys]

    def keep_vectors(self, keys: Sequence[str], vectors: Vectors, cost: Spending, *, lasting: bool) -> None:
        if len(keys) != len(vectors):
            raise ValueError(f"{len(keys)} keys and {len(vectors)} vectors")
        for key, vector in zip(keys, vectors, strict=True):
            self.vectors[key] = (vector.copy(), lasting or (key in self.vectors and self.vectors[key][1]))
        self.spend(cost.purpose, cost.model, cost.usage)

    def drop_vectors(self) -> None:
        self.vectors = {key: kept for key, kept in self.vectors.items() if kept[1]}

    def spend(self, purpose: Purpose, model: str, usage: Usage) -> None:
        self.spent[purpose, model] = self.spent.get((purpose, model), Usage()) + usage

    def spending(self) -> tuple[Spending, ...]:
        order = get_args(Purpose)
        spent = [Spending(purpose, model, usage) for (purpose, model), usage in self.spent.items()]
        return tuple(sorted(spent, key=lambda one: (order.index(one.purpose), one.model)))

    def history(self, purpose: Purpose, model: str) -> tuple[tuple[str, Usage], ...]:
        found = [
            (key, kept.reply.usage)
            for key, kept in reversed(self.replies.items())
            if (kept.purpose, kept.model) == (purpose, model) and kept.reply.usage.calls
        ]
        return tuple(found[:1000])

    def forget(self, documents: Sequence[str]) -> None:
        gone = set(documents)
        self.replies = {key: kept for key, kept in self.replies.items() if not kept.documents & gone}

    def close(self) -> None:
        pass
