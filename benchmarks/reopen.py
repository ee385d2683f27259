"""How long a store of 100,000 chunks takes to open: at rest, and after its writer was killed with commits in the log.

    python -m benchmarks.reopen                  # a minute; writes benchmarks/results/reopen.json

Each opening is a process of its own, and what is measured is `Memory.open` alone, then the first document read and the
first question, with the cache of the arrays and without, and questions after one document was added. The median of
``--repeat`` openings, in seconds of the clock; those of processor time, which others on the machine change less, beside
them, with the load and the most memory a process held. ``--store`` keeps the store for another run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.large_store import make_large_store

from ecphoryrag.evaluation.provenance import machine, source_commit, versions

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
ALLOWED = 2.0
"""Seconds that opening may take."""
STEPS = ("open", "get", "question", "next question", "add", "question after it", "forget", "question after that")
OPEN = """
import json, os, resource, sys, time
from ecphoryrag.memory import Memory
from ecphoryrag.models.none import NoEncoder
from ecphoryrag.settings import Settings
settings, encoder = Settings(encoder="none", generator="none"), NoEncoder()
clock = lambda: (time.perf_counter(), time.process_time())
times = [clock()]
memory = Memory.open(sys.argv[1], settings=settings, encoder=encoder, create=False, read_only=sys.argv[2] == "read")
times.append(clock())
memory.get("d1")
times.append(clock())
if sys.argv[3] != "get":
    memory.recall("Whom did Marie Curie meet in Warsaw?")
times.append(clock())
memory.recall("Whom did Ada Lovelace meet in Vienna?") if sys.argv[3] != "get" else None
times.append(clock())
if sys.argv[3] == "add":
    memory.add({"id": "one more", "title": "Zuse's Engine", "text": "Konrad Zuse met Emmy Noether in Berlin."})
    times.append(clock())
    memory.recall("Whom did Konrad Zuse meet?")
    times.append(clock())
    memory.forget("one more")
    times.append(clock())
    memory.recall("Whom did Emmy Noether meet?")
    times.append(clock())
spans = [(after[0] - before[0], after[1] - before[1]) for before, after in zip(times, times[1:])]
print(json.dumps([spans, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, os.getloadavg()[0]]))
memory.close()
"""
WRITE = """
import sys
from ecphoryrag.memory import Memory
from ecphoryrag.models.none import NoEncoder
from ecphoryrag.settings import Settings
memory = Memory.open(sys.argv[1], settings=Settings(encoder="none", generator="none"), encoder=NoEncoder())
for number in range(10**9):
    def documents():
        for at in range(50):
            yield {"id": f"new {number} {at}", "text": f"Ada Lovelace met Engine {number} in London. " * 40}
    memory.add(documents())
    print(number, flush=True)
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    made = argparse.ArgumentParser(prog="reopen", description=(__doc__ or "").splitlines()[0])
    made.add_argument("--chunks", type=int, default=100_000)
    made.add_argument("--repeat", type=int, default=5)
    made.add_argument("--results", type=Path, default=RESULTS)
    made.add_argument("--store", type=Path)
    options = made.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="reopen-") as folder:
        record = measure(options.store or Path(folder) / "large.ecphory", options.chunks, options.repeat)
    slowest = max(found["open"] for found in record["seconds"].values())
    record |= {"held": slowest <= ALLOWED, "commit": source_commit(ROOT), "versions": versions(), "machine": machine()}
    print(json.dumps(record, indent=1))
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / "reopen.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0 if record["held"] else 1


def measure(path: Path, chunks: int, repeat: int) -> dict[str, Any]:
    """Make the store, and open it in every way."""
    there = chunks if path.exists() else make_large_store(path, chunks)
    path.with_name(f"{path.name}-cache").unlink(missing_ok=True)
    size = path.stat().st_size
    found = {"first question, no cache": opened(path, "write", "ask")}
    for name, mode, then in (
        ("read-only", "read", "get"),
        ("for writing", "write", "get"),
        ("with cache", "read", "ask"),
        ("one document more", "write", "add"),
    ):
        found[name] = median([opened(path, mode, then) for _ in range(repeat)])
    found["after a kill"] = median([after_a_kill(path) for _ in range(repeat)])
    return {"chunks": there, "bytes": size, "repeat": repeat, "seconds": found}


def opened(path: Path, mode: str, then: str) -> dict[str, float]:
    """One opening in a process of its own."""
    said = subprocess.run(
        [sys.executable, "-c", OPEN, str(path), mode, then], check=True, capture_output=True, text=True, cwd=ROOT
    )
    spans, memory, load = json.loads(said.stdout)
    found = {"load": load, "GiB at most": memory}
    for name, (wall, processor) in zip(STEPS, spans, strict=False):
        found |= {name: wall, f"{name}, processor": processor}
    return found


def after_a_kill(path: Path) -> dict[str, float]:
    """An opening of what a killed writer left."""
    with subprocess.Popen([sys.executable, "-c", WRITE, str(path)], stdout=subprocess.PIPE, cwd=ROOT) as writer:
        for _ in range(2):
            assert writer.stdout is not None
            writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
    return opened(path, "write", "get")


def median(found: Sequence[dict[str, float]]) -> dict[str, float]:
    """Of each figure."""
    return {name: round(statistics.median(one[name] for one in found), 4) for name in found[0]}


if __name__ == "__main__":
    sys.exit(main())
