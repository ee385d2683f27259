"""What is derived from a snapshot once a generation and setting, and kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ecphoryrag.recall.graph import Graph, facts, graph
from ecphoryrag.recall.lexical import LexicalIndex, lexical_index
from ecphoryrag.settings.recall import AboutSettings, FlatSettings
from ecphoryrag.snapshot import Snapshot

Setting = TypeVar("Setting", bound=Hashable)
Derived = TypeVar("Derived")


class _Kept(Generic[Setting, Derived]):
    """What a pure function gave for the newest snapshot it was asked about, by setting.

    Two threads that need the same at once may both derive it: the result is the same, and neither waits.
    """

    def __init__(self, derive: Callable[[Snapshot, Setting], Derived]) -> None:
        self._derive = derive
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._found: dict[Setting, Derived] = {}

    def __call__(self, snapshot: Snapshot, setting: Setting) -> Derived:
        with self._lock:
            if self._snapshot is not snapshot:
                self._snapshot, self._found = snapshot, {}
            found = self._found
        if setting not in found:
            # `found` belongs to this snapshot even if another thread has moved on to a newer one meanwhile.
            found[setting] = self._derive(snapshot, setting)
        return found[setting]


def prepare(snapshot: Snapshot, settings: AboutSettings) -> Graph:
    """The graph over all chunks of the snapshot; pure."""
    return graph(facts(snapshot, settings))


class PreparedCache:
    """Graphs and lexical indexes of the newest generation; safe to share between threads."""

    def __init__(self) -> None:
        self.graph = _Kept(prepare)
        """Snapshot and AboutSettings to Graph: see :func:`prepare`."""
        self.index = _Kept[FlatSettings, LexicalIndex](lexical_index)
        """Snapshot and FlatSettings to LexicalIndex."""
