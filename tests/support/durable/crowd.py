"""Many processes at one store: those that write, and those that read and see whether what they read fits together."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ecphoryrag.memory import Memory
from ecphoryrag.models.fakes import HashEncoder
from tests.support.durable.hatchery import Hatched, Hatchery
from tests.support.durable.quick import QuickExtractor
from tests.support.durable.story import SETTINGS, opened

PAIRS = 4
"""Documents that are written again and again."""
SENTENCES = 8
PATIENCE = 300.0


def versioned(id: str, version: int) -> dict[str, object]:
    """A record that says its version in every sentence, so in every chunk, in its title and in its metadata."""
    text = " ".join(
        f"Keeper {id} met Anna Marsh in edition{version} of the tale number {at}." for at in range(SENTENCES)
    )
    return {"id": id, "title": f"Tale {id} edition{version}", "text": text, "version": version}


def write_for(path: str, seconds: float, report: str) -> None:
    """Update documents one after the other for so many seconds, and write down how often."""
    ends = time.monotonic() + seconds
    version = 0
    with opened(Path(path)) as memory:
        while time.monotonic() < ends or version < 2:
            version += 1
            for at in range(PAIRS):
                outcome = memory.add([versioned(f"doc{at}", version)])
                assert not outcome.failed, outcome.failed
    Path(report).write_text(json.dumps({"versions": version}))


def read_for(path: str, seconds: float, report: str) -> None:
    """Read with one long-lived memory for so many seconds; raises AssertionError for what does not fit together."""
    ends = time.monotonic() + seconds
    readings = 0
    seen: set[int] = set()
    last = [0] * PAIRS
    with Memory.open(
        path, settings=SETTINGS, read_only=True, encoder=HashEncoder(8), extractor=QuickExtractor()
    ) as memory:
        while time.monotonic() < ends or len(seen) < 2:
            versions = _read(memory, readings % PAIRS)
            for at, version in enumerate(versions):
                assert version >= last[at], f"doc{at} went back from {last[at]} to {version}"
            assert max(versions) - min(versions) <= 1, f"the commits came in another order: {versions}"
            last, readings = versions, readings + 1
            seen.add(max(versions))
    Path(report).write_text(json.dumps({"readings": readings, "versions": len(seen)}))


def _read(memory: Memory, at: int) -> list[int]:
    """The versions of all documents in one reading, each whole."""
    indexed = memory.inspect(f"doc{at}")
    version = indexed.document.metadata["version"]
    assert indexed.document.text.count(f"edition{version} ") == SENTENCES
    assert all(f"edition{version} " in chunk.text for chunk in indexed.chunks)
    found = memory.recall("Where did Keeper doc1 meet Anna Marsh?", k=100)
    by_document: dict[str, set[object]] = {}
    for one in found.chunks:
        version = one.metadata["version"]
        assert f"edition{version} " in one.chunk.text
        assert f"edition{version}" in one.title
        by_document.setdefault(one.chunk.document_id, set()).add(version)
    assert len(by_document) == PAIRS, f"recalled of {sorted(by_document)} alone"
    assert all(len(versions) == 1 for versions in by_document.values()), by_document
    return [int(str(next(iter(by_document[f"doc{at}"])))) for at in range(PAIRS)]


def add_some(path: str, first: int, count: int, at_once: int) -> None:
    """Add documents of this writer's own, a few in a call."""
    with opened(Path(path)) as memory:
        for start in range(first, first + count, at_once):
            batch = [versioned(f"doc{at}", 1) for at in range(start, min(start + at_once, first + count))]
            report = memory.add(batch)
            assert not report.failed, report.failed


def one_writer(hatchery: Hatchery, folder: Path, readers: int, seconds: float) -> tuple[int, list[int]]:
    """Let one process write and others read for so long: how often all was written anew, and how often each read.

    Raises AssertionError if one of them failed.
    """
    folder.mkdir()
    path = folder / "s.ecphory"
    with opened(path) as memory:
        memory.add([versioned(f"doc{at}", 0) for at in range(PAIRS)])
    running: list[Hatched] = []
    for at in range(readers):
        words = {"path": str(path), "seconds": seconds, "report": str(folder / f"reader {at}")}
        running.append(hatchery.start(read_for, **words))
    writer = {"path": str(path), "seconds": seconds, "report": str(folder / "writer")}
    running.append(hatchery.start(write_for, **writer))
    codes = [one.wait(PATIENCE + seconds) for one in running]
    assert codes == [0] * len(codes), f"exit codes {codes}: see what was written to standard error"
    read = [json.loads((folder / f"reader {at}").read_text()) for at in range(readers)]
    assert all(one["versions"] > 1 for one in read), "a long-lived reader saw no change"
    return json.loads((folder / "writer").read_text())["versions"], [one["readings"] for one in read]


def many_writers(hatchery: Hatchery, folder: Path, writers: int, documents: int) -> int:
    """Let so many processes add so many documents each at once: how many are there then, all of them sound."""
    folder.mkdir()
    path = folder / "s.ecphory"
    running = []
    for at in range(writers):
        words = {"path": str(path), "first": at * documents, "count": documents, "at_once": 10}
        running.append(hatchery.start(add_some, **words))
    codes = [one.wait(PATIENCE) for one in running]
    assert codes == [0] * len(codes), f"exit codes {codes}: see what was written to standard error"
    with opened(path) as memory:
        report = memory.verify(deep=True)
        assert report.sound, report.flaws
        ids = {one.id for one in memory.documents()}
    return len(ids & {f"doc{at}" for at in range(writers * documents)})
