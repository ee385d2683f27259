"""A store of very many chunks: how long it takes to open it after a kill, and to answer first."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ecphoryrag.types import Document
from tests.support.durable.hatchery import Hatchery
from tests.support.durable.story import opened

BATCH = 2500
SYLLABLES = ("ka", "lo", "mi", "ren", "tas", "ul", "ver", "dor", "an", "eth", "bri", "sol")
PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class Asked:
    """Seconds of opening and of the first question, and how many chunks there are."""

    opening: float
    question: float
    chunks: int


def name(drawn: random.Random) -> str:
    """One of some 20,000 made-up names."""
    return " ".join("".join(drawn.choices(SYLLABLES, k=2)).capitalize() for _ in range(2))


def texts(first: int, count: int) -> Iterator[Document]:
    """Documents of one or two chunks, with three names."""
    for at in range(first, first + count):
        drawn = random.Random(at)
        one, other, place = name(drawn), name(drawn), name(drawn)
        text = f"{one} met {other} in {place} in {1500 + at % 500}, and kept the harbour there."
        yield Document(f"d{at}", text, one, {"version": 1})


def build(path: Path, chunks: int, told: Callable[[str], None] = lambda _: None) -> float:
    """Add so many chunks at least; returns the seconds it took."""
    started = time.perf_counter()
    made = 0
    with opened(path) as memory:
        for first in itertools.count(0, BATCH):
            report = memory.add(texts(first, BATCH))
            assert not report.failed, report.failed
            made += report.chunks
            told(f"{made} chunks")
            if made >= chunks:
                break
    return time.perf_counter() - started


def ask_once(path: Path) -> Asked:
    """Open, ask, and close."""
    started = time.perf_counter()
    with opened(path) as memory:
        opening = time.perf_counter() - started
        started = time.perf_counter()
        found = memory.recall("Who met Kalo Miren in the harbour?")
        question = time.perf_counter() - started
        assert found.chunks
        return Asked(opening, question, memory.status().chunks)


def write_on(path: str, what: str) -> None:
    """Add or delete until killed."""
    with opened(Path(path)) as memory:
        for first in range(1_000_000, 2_000_000, 100):
            if what == "add":
                memory.add(texts(first, 100))
            else:
                memory.forget(*(one.id for one in memory.documents()[:20]))


def kill_while_writing(hatchery: Hatchery, path: Path, what: str, after: float) -> int:
    """Start a writer, kill it after so many seconds more than it takes to begin, and return its exit code."""
    writer = hatchery.start(write_on, path=str(path), what=what)
    log = path.with_name(path.name + "-wal")
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and not (log.exists() and log.stat().st_size):
        time.sleep(0.01)
    time.sleep(after)
    writer.kill()
    return writer.wait(PATIENCE)
