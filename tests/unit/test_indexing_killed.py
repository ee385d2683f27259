"""Indexing by a process that is killed, again and again: nothing is lost, and nothing is paid for twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path

from ecphoryrag.indexing import index
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.settings import ChunkSettings, IndexingSettings
from ecphoryrag.store import open_store
from ecphoryrag.types import Document
from tests.support.paid_extractor import PaidExtractor
from tests.support.store_tables import tables

ROOT = Path(__file__).parents[2]
ENCODER = HashEncoder()
SETTINGS = IndexingSettings(batch=8, chunks=ChunkSettings(budget=16, overlap=0))
KILLS = 6
THREADS = 8
DOCUMENTS = [
    Document(
        f"{number:02}",
        " ".join(f"Then Ada{number} went to see Bela{at} in the old town." for at in range(1 + number % 5)),
        f"Tale {number}",
    )
    for number in range(50)
]
CALLS = sum(1 + number % 5 for number in range(50))

_PROCESS = """
from pathlib import Path
from tests.unit.test_indexing_killed import *
store = open_store(Path({store!r}), ENCODER.identity, "paid 1")
extractor = PaidExtractor(parallel=THREADS, seconds=0.03, file=Path({file!r}))
report = index(DOCUMENTS, store, ENCODER, extractor, SETTINGS)
store.close()
print(len(report.added), len(report.unchanged))
"""


def begin(store: Path, file: Path) -> subprocess.Popen[str]:
    code = textwrap.dedent(_PROCESS).format(store=str(store), file=str(file))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def events(file: Path) -> list[tuple[str, str]]:
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    return [(event, key) for event, key in (line.split() for line in lines)]


def test_killed_at_any_moment_it_goes_on_at_exactly_the_missing_calls(tmp_path: Path) -> None:
    """A call is repeated only if it was under way when the process was killed."""
    path, file = tmp_path / "s.ecphory", tmp_path / "calls"
    chance = random.Random(7)
    under_way: Counter[str] = Counter()
    for _ in range(KILLS):
        wanted = len(events(file)) + chance.randrange(2, 38)
        with begin(path, file) as process:
            while len(events(file)) < wanted and process.poll() is None:
                time.sleep(0.002)
            process.kill()
        happened = events(file)
        kept = {key for event, key in happened if event == "kept"}
        missing = Counter(key for event, key in happened if event == "paid" and key not in kept)
        assert max((missing - under_way).values(), default=0) <= 1
        assert len(missing - under_way) <= THREADS
        under_way |= missing
    assert 0 < len({key for event, key in events(file) if event == "kept"}) < CALLS, "it was not killed half-way"
    with begin(path, file) as process:
        output, _ = process.communicate(timeout=60)
    assert sum(map(int, output.split())) == len(DOCUMENTS)
    done: set[str] = set()
    for event, key in events(file):
        assert key not in done, "what was kept was paid for again"
        if event == "kept":
            done.add(key)
    assert len(done) == CALLS
    assert Counter(key for event, key in events(file) if event == "paid") == Counter(done) + under_way

    other = tmp_path / "undisturbed.ecphory"
    store = open_store(other, ENCODER.identity, "paid 1")
    index(DOCUMENTS, store, ENCODER, PaidExtractor(), SETTINGS)
    store.close()
    assert tables(path) == tables(other)
