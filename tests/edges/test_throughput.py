"""Many calls at once: a server that takes its time is kept busy, and the rest of the work hides behind the waiting."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from ecphoryrag.memory import Memory
from ecphoryrag.types import Document
from tests.support.scripted_extraction import documents, settings
from tests.support.scripted_server import scripted_server

LATENCY = 0.2
AT_ONCE = 16
MANY, FEW = 400, 10
"""Enough that the first calls, for which threads and connections are made, and the last count for little."""
LEAST_GAIN = 12.0
TRIES = 3
"""Another job on the machine can only make it slower: the best of so many says what it can do."""


def rate(store: Path, url: str, at_once: int, given: Sequence[Document]) -> float:
    """Documents a second: extracting, encoding and committing, from the first call to the report."""
    with Memory.open(store, settings=settings(url, encoder="static", concurrency=at_once)) as memory:
        memory.add({"id": "first", "text": "It was quiet."})  # the encoder is read, the server asked who it is
        start = time.perf_counter()
        report = memory.add(given)
        seconds = time.perf_counter() - start
    assert len(report.added) == len(given)
    assert report.usage.calls == len(given)
    assert not report.incomplete
    return len(given) / seconds


def test_sixteen_at_once_are_twelve_times_as_fast_as_one(tmp_path: Path) -> None:
    with scripted_server(LATENCY) as url:
        serial = rate(tmp_path / "serial", url, 1, documents(FEW))
        gains = []
        for attempt in range(TRIES):
            gains.append(rate(tmp_path / f"parallel-{attempt}", url, AT_ONCE, documents(MANY)) / serial)
            if gains[-1] >= LEAST_GAIN:
                break
    assert serial > 0.8 / LATENCY, "one at a time should be little slower than the server"
    assert max(gains) >= LEAST_GAIN, gains
