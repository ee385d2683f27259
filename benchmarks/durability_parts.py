"""The parts of the long ordeals: each works in a folder, and gives figures and what broke."""

from __future__ import annotations

import itertools
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from tests.support.durable.crowd import many_writers, one_writer
from tests.support.durable.faulty import Faulty, every
from tests.support.durable.hatchery import Hatchery
from tests.support.durable.kills import Reaper
from tests.support.durable.large import ask_once, build, kill_while_writing
from tests.support.durable.programs import Programs
from tests.support.durable.small_disk import DOCUMENTS, Filled, fill_limited, fill_mounted
from tests.support.durable.spoiling import Spoiler
from tests.support.durable.upgrading import all_of_it

from ecphoryrag.types import JsonValue

Outcome: TypeAlias = tuple[dict[str, JsonValue], list[str]]
"""Figures, and what broke."""
WRITERS = 4
MOST_SECONDS = 2.0
"""That a store of 100,000 chunks may take to open after a kill."""


@dataclass(frozen=True, slots=True)
class Long:
    """What a part works with; see the options of :mod:`benchmarks.durability`."""

    folder: Path
    kills: int
    slice: str
    places: int
    bits: int
    programs: int
    seconds: float
    readers: int
    documents: int
    chunks: int
    seed: int


def kills(long: Long) -> Outcome:
    """Workers killed at random moments and at counted writes."""
    with Hatchery() as hatchery:
        toll = Reaper(long.folder / "ordeal", hatchery).reap(long.kills, long.seed, tell)
    figures: dict[str, JsonValue] = {"kills": toll.kills, "stories": toll.stories}
    figures["slowest opening, processor s"] = toll.slowest
    return figures | {"while": dict(_counted(toll.during))}, toll.broken


def faults(long: Long) -> Outcome:
    """A failure of every kind at every act of the scripted run, passing and lasting."""
    faulty = Faulty(long.folder / "ordeal")
    part, _, parts = long.slice.partition("/")
    cases = list(itertools.islice(every(faulty.acts, long.seed), int(part) - 1, None, int(parts)))
    found = faulty.try_all(cases, tell)
    figures: dict[str, JsonValue] = {"acts": sum(map(len, faulty.acts)), "cases": found.cases, "slice": long.slice}
    return figures | {"failed": dict(_counted(found.hit)), "errors": dict(_counted(found.errors))}, found.broken


def caches(long: Long) -> Outcome:
    """Caches that were cut, changed, deleted and swapped."""
    found = Spoiler(long.folder / "ordeal").try_all(long.places, long.bits, long.seed)
    return {"tried": found.tried, "cut, of each": long.places, "bits, of each": long.bits}, found.unnoticed


def programs(long: Long) -> Outcome:
    """Programs of operations against the model."""
    machine = seeded(long.seed)(Programs)
    chosen = settings(
        max_examples=long.programs,
        stateful_step_count=20,
        deadline=None,
        derandomize=False,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    broken: list[str] = []
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except Exception as error:  # noqa: BLE001 - whatever an operation raises is what is to be told here
        broken.append(f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}")
    return {"programs": long.programs}, broken


def processes(long: Long) -> Outcome:
    """One writer and many readers, and many writers."""
    broken: list[str] = []
    figures: dict[str, JsonValue] = {"seconds": long.seconds, "readers": long.readers}
    with Hatchery() as hatchery:
        try:
            written, read = one_writer(hatchery, long.folder / "readers", long.readers, long.seconds)
            figures |= {"written anew": written, "fewest readings": min(read), "readings": sum(read)}
            there = many_writers(hatchery, long.folder / "writers", WRITERS, long.documents)
            figures |= {"writers": WRITERS, "documents": there}
            if there != WRITERS * long.documents:
                broken.append(f"{there} documents are there")
        except AssertionError as error:
            broken.append(str(error))
    return figures, broken


def disk(long: Long) -> Outcome:
    """A disk of 2 MB that fills up."""
    real, counted = fill_mounted(long.folder / "real"), fill_limited(long.folder / "counted")
    broken = [str(asdict(one)) for one in (real, counted) if one is not None and not _completed(one)]
    error = counted.error.partition("(")[0].replace(f"{long.folder}/", "")
    figures: dict[str, JsonValue] = {"kept, counted": counted.kept, "error": error}
    return figures | {"kept, real": "no file system could be mounted" if real is None else real.kept}, broken


def _completed(filled: Filled) -> bool:
    told = "the disk is full" in filled.error and filled.asked and not filled.left
    return told and filled.done == DOCUMENTS and filled.sound


def large(long: Long) -> Outcome:
    """Opening a large store after a kill, and its first question, with and without its caches."""
    path = long.folder / "s.ecphory"
    figures: dict[str, JsonValue] = {"building, s": build(path, long.chunks, tell)}
    broken: list[str] = []
    drawn = random.Random(long.seed)
    opened: list[float] = []
    with Hatchery() as hatchery:
        asked = ask_once(path)  # makes the caches
        figures |= {"chunks": asked.chunks, "first question ever, s": asked.question}
        for name in ("add", "delete", "add"):
            code = kill_while_writing(hatchery, path, name, drawn.random() * 2)
            if code not in (0, -signal.SIGKILL):
                broken.append(f"the writer failed by itself: {code}")
            asked = ask_once(path)
            opened.append(asked.opening)
            figures |= {f"after a kill in {name}: opening, s": asked.opening, "question, s": asked.question}
            asked = ask_once(path)
            opened.append(asked.opening)
            figures |= {"at rest: opening, s": asked.opening, "at rest: question, s": asked.question}
    if max(opened) > MOST_SECONDS:
        broken.append(f"an opening took {max(opened):.1f} s")
    return figures, broken


def upgrades(long: Long) -> Outcome:
    """Stores of every earlier format, killed and failed at every act of being copied and brought up to date."""
    found = all_of_it(long.folder / "ordeal", long.seed, tell)
    figures: dict[str, JsonValue] = {"tried": found.tried, "acts": dict(found.acts), "as before": found.old}
    return figures | {"up to date": found.new, "refused": found.refused}, found.broken


def _counted(found: Counter[str]) -> Iterator[tuple[str, int]]:
    yield from found.most_common()


def tell(what: str) -> None:
    """Say how far it has come, with the time."""
    print(f"  {time.strftime('%H:%M:%S')} {what}", flush=True)


PARTS: Mapping[str, Callable[[Long], Outcome]] = {
    "kills": kills,
    "faults": faults,
    "caches": caches,
    "programs": programs,
    "processes": processes,
    "disk": disk,
    "large": large,
    "upgrades": upgrades,
}
