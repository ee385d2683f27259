"""Two ordeals of an indexing with a language model: replies that are spoiled, and kills. They tell; tests judge.

Both go on where an earlier run of them ended, since a soak with a real model takes long and may be stopped.
"""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ecphoryrag.memory import Memory
from ecphoryrag.settings import ChunkSettings, Settings
from ecphoryrag.text.chunking import chunk_document
from ecphoryrag.types import AddReport, Chunk, Document
from tests.support.index_worker import command, write_job
from tests.support.llama_server import CHAT
from tests.support.loopback import Asked, LoopbackServer

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600.0
"""Seconds without any call, after which a worker is held to be stuck."""

_QUOTED = re.compile(r"^> ", re.MULTILINE)

Place: TypeAlias = tuple[str, int]
"""A chunk: id of its document, ordinal."""


class Texts:
    """Tells of a chat which chunk it is about, by the chunk's text."""

    def __init__(self, documents: Iterable[Document], settings: ChunkSettings) -> None:
        self.chunks: dict[Place, Chunk] = {
            (chunk.document_id, chunk.ordinal): chunk
            for document in documents
            for chunk in chunk_document(document, settings)
        }
        self._plain = {place: _plain(chunk.text) for place, chunk in self.chunks.items()}

    def place(self, asked: Asked) -> Place | None:
        """The chunk, None for a chat about none of them."""
        prompt = _plain(asked.prompt)
        found = [place for place, text in self._plain.items() if text in prompt]
        return max(found, key=lambda place: len(self._plain[place])) if found else None

    def calls(self, asked: Iterable[Asked]) -> Counter[Place]:
        """How many of these requests were chats about which chunk."""
        chats = (self.place(one) for one in asked if one.path == CHAT)
        return Counter(place for place in chats if place is not None)


def _plain(text: str) -> str:
    """The text without the marks of quoting, and with one space for any."""
    return " ".join(_QUOTED.sub("", text).split())


@dataclass(frozen=True, slots=True)
class Held:
    """What a store says of its chunks."""

    failed: frozenset[Place]
    empty: frozenset[Place]
    """Neither failed nor with any mention."""
    there: frozenset[Place]
    incomplete: frozenset[str]
    """The documents that ``status`` names as incomplete."""

    @property
    def hidden(self) -> frozenset[str]:
        """Documents that have a failed chunk and are not named as incomplete: there must be none."""
        return frozenset(id_ for id_, _ in self.failed) - self.incomplete


def held(memory: Memory) -> Held:
    """Read from the store, chunk by chunk."""
    failed, empty, there = set(), set(), set()
    for summary in memory.documents():
        indexed = memory.inspect(summary.id)
        for chunk, extraction in zip(indexed.chunks, indexed.extractions, strict=True):
            place = (summary.id, chunk.ordinal)
            there.add(place)
            if extraction.failure is not None:
                failed.add(place)
            elif not extraction.mentions:
                empty.add(place)
    incomplete = frozenset(failure.source for failure in memory.status().incomplete)
    return Held(frozenset(failed), frozenset(empty), frozenset(there), incomplete)


@dataclass(frozen=True, slots=True)
class Adding:
    """One run of adding all documents: what it reported, the calls it made, and the store afterwards."""

    report: AddReport
    calls: Counter[Place]
    held: Held


def adding(store: Path, settings: Settings, documents: Sequence[Document], server: LoopbackServer) -> Adding:
    """Add the documents and see what became of it; ``server`` is the one that the settings name."""
    before = len(server.asked)
    with Memory.open(store, settings=settings) as memory:
        report = memory.add(documents)
        calls = Texts(documents, settings.indexing.chunks).calls(server.asked[before:])
        return Adding(report, calls, held(memory))


@dataclass(frozen=True, slots=True)
class Killed:
    """A run that was killed: how often it had asked for which chunk, and what it left."""

    asked: Counter[Place]
    paid: frozenset[Place]
    """Chunks whose reply the ledger held when it was dead."""


@dataclass(slots=True)
class Kills:
    """What became of the kills."""

    runs: list[Killed] = field(default_factory=list)
    last: Counter[Place] = field(default_factory=Counter)
    """Calls of the run that came to its end."""

    @property
    def calls(self) -> Counter[Place]:
        """Of all runs."""
        return sum((run.asked for run in self.runs), self.last)

    def paid_again(self) -> dict[int, set[Place]]:
        """For each run (the last too) the chunks it asked for though the ledger had held them: must be none."""
        later = [*(run.asked for run in self.runs[1:]), self.last]
        found = {at: run.paid & set(asked) for at, (run, asked) in enumerate(zip(self.runs, later, strict=True))}
        return {at: set(places) for at, places in found.items() if places}

    def in_flight(self) -> list[int]:
        """For each kill, how many chunks had been asked for and were not in the ledger."""
        return [len(set(run.asked) - run.paid) for run in self.runs]


@dataclass(frozen=True, slots=True)
class Job:
    """An indexing that is to be killed."""

    store: Path
    settings: Settings
    documents: Sequence[Document]
    server: LoopbackServer
    """The one that the settings name."""
    paid: Callable[[], Iterable[Place]]
    """The chunks whose reply the ledger holds."""
    seed: int = 0
    jitter: float = 0.04
    """Seconds within which a kill follows the call after which it was planned."""


def kills(job: Job, number: int, told: Callable[[str], None] = lambda _: None) -> Kills:
    """Start and kill an indexing so many times (fewer only if it comes to its end before), then let it end.

    A kill comes after a drawn number of calls, plus a drawn part of ``jitter``. Raises RuntimeError if a run fails by
    itself, or makes no call for ``PATIENCE`` seconds.
    """
    drawn = random.Random(job.seed)
    texts = Texts(job.documents, job.settings.indexing.chunks)
    files = write_job(job.store.parent, job.settings, job.documents)
    done = Kills()
    paid = frozenset(job.paid())
    for left in range(number, 0, -1):
        missing = len(texts.chunks) - len(paid)
        after = drawn.randint(1, max(1, missing // (left + 1)))  # so that something is left for the later ones
        before = len(job.server.asked)
        worker = _start(job.store, files)
        _await_calls(worker, job.server, texts, before, after)
        time.sleep(drawn.random() * job.jitter)
        ended = worker.poll() is not None
        worker.kill()
        _outcome(worker, killed=not ended)
        asked = texts.calls(job.server.asked[before:])
        if ended:
            done.last = asked
            return done
        paid = frozenset(job.paid())
        done.runs.append(Killed(asked, paid))
        told(f"kill {len(done.runs)}: {asked.total()} calls, {len(paid)} chunks paid for")
    before = len(job.server.asked)
    _outcome(_start(job.store, files), killed=False)
    done.last = texts.calls(job.server.asked[before:])
    return done


def _start(store: Path, files: tuple[Path, Path]) -> subprocess.Popen[str]:
    return subprocess.Popen(command(store, files), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _await_calls(worker: subprocess.Popen[str], server: LoopbackServer, texts: Texts, before: int, after: int) -> None:
    patient_until = time.monotonic() + PATIENCE
    seen = 0
    while seen < after and worker.poll() is None:
        time.sleep(0.002)
        asked = server.asked
        if len(asked) > before + seen:
            seen = sum(texts.calls(asked[before:]).values())
            patient_until = time.monotonic() + PATIENCE
        if time.monotonic() > patient_until:
            worker.kill()
            raise RuntimeError(f"the indexing made no call for {PATIENCE:.0f} s: {worker.communicate()[1]}")


def _outcome(worker: subprocess.Popen[str], *, killed: bool) -> None:
    with suppress(subprocess.TimeoutExpired):
        said = worker.communicate(timeout=None if not killed else PATIENCE)
        if not killed and (worker.returncode or not said[0].endswith("done\n")):
            raise RuntimeError(f"the indexing failed by itself: {said[1]}")
