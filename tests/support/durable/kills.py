"""Killing workers one after the other, and seeing after each kill what the store holds."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from ecphoryrag.store import verify_store
from ecphoryrag.types import Flaw
from tests.golden.make_store import FOLDER
from tests.support.durable.disk import Death
from tests.support.durable.hatchery import Hatched, Hatchery
from tests.support.durable.story import (
    Lines,
    Step,
    Told,
    decided,
    editions,
    exported,
    opened,
    rankings,
    story,
    write_import,
)
from tests.support.durable.worker import END, FAILED, OPENED, acknowledged, work, write_order

PATIENCE = 600.0
"""Seconds that a worker may take before it is held to be stuck."""
AT_MOST = 400
"""A kill at a counted write comes at most so many writes after the worker's start: some workers of a story die."""
MIGRATING = 90
"""And in a store of an earlier format, the first one at most so many: while it is copied and brought up to date."""
BESIDE_STORE = frozenset({"journal", "format"})
"""Flaws that a killed writer may leave until the store is opened for writing."""
NEW = "new"
BASES = tuple(base for golden in sorted(FOLDER.glob("*.sqlite")) for base in (NEW, golden.stem))
"""What stories begin with: a new store, or one of an earlier format."""


class Broken(AssertionError):
    """A store that does not hold what it must."""


@dataclass(slots=True)
class Toll:
    """What became of the kills."""

    kills: int = 0
    stories: int = 0
    during: Counter[str] = field(default_factory=Counter)
    """Kills by what the worker was doing."""
    slowest: float = 0.0
    """Seconds of the processor that the slowest opening after a kill took."""
    broken: list[str] = field(default_factory=list)

    def add(self, other: Toll) -> None:
        """Count these too."""
        self.kills += other.kills
        self.stories += other.stories
        self.during += other.during
        self.slowest = max(self.slowest, other.slowest)
        self.broken += other.broken


class Reaper:
    """Tells stories to stores in a folder, and kills who tells them."""

    def __init__(self, folder: Path, hatchery: Hatchery) -> None:
        self._folder = folder
        self._hatchery = hatchery
        (folder / "lines").mkdir(parents=True)
        self._lines = Lines(folder / "lines")
        self._golden = {base: self._give(base) for base in BASES if base != NEW}

    def _give(self, base: str) -> dict[str, int]:
        path = self._folder / "lines" / base
        shutil.copy(FOLDER / f"{base}.sqlite", path)
        return dict(self._lines.give(path))

    def reap(self, kills: int, seed: int, told: Callable[[str], None] = lambda _: None) -> Toll:
        """Kill so many times, in as many stories as that takes; a story in which something breaks is given up."""
        toll = Toll()
        while toll.kills < kills:
            number = seed * 100_000 + toll.stories
            folder = self._folder / f"story {number}"
            trial = Trial(folder, self._lines, number)
            base = BASES[toll.stories % len(BASES)]
            trial.begin(base, self._golden.get(base, {}))
            try:
                trial.run(self._start, kills - toll.kills)
            except (AssertionError, OSError) as error:
                trial.toll.broken.append(f"story {number} ({base}), {trial.toll.kills} kills: {error!r}"[:2000])
            else:
                shutil.rmtree(folder)
            toll.add(trial.toll)
            told(f"{toll.kills} kills, {toll.stories} stories, {len(toll.broken)} broken")
        return toll

    def _start(self, order: Path) -> Hatched:
        return self._hatchery.start(work, order=str(order))


class Trial:
    """One story, told by one worker after the other."""

    def __init__(self, folder: Path, lines: Lines, seed: int) -> None:
        folder.mkdir()
        self.folder = folder
        self.toll = Toll(stories=1)
        self._lines = lines
        self._seed = seed
        self._drawn = random.Random(f"kills of {seed}")
        self._steps: list[Step] = []
        self._told = Told()
        self._erased: list[str] = []
        """Words of what was erased."""

    def begin(self, base: str, versions: dict[str, int]) -> None:
        """Write the story that begins with this store."""
        if base != NEW:
            shutil.copy(FOLDER / f"{base}.sqlite", self.folder / "s.ecphory")
        self._told = Told(versions)
        self._steps = story(self._seed, versions=versions)
        for step in self._steps:
            if step.kind == "import":
                write_import(step, self.folder, self._lines)

    def run(self, start: Callable[[Path], Hatched], kills: int) -> None:
        """Let workers tell it and kill them, so many times at most, until one comes to the end. Raises Broken."""
        done = seen = 0
        while done < len(self._steps):
            kill = self.toll.kills < kills
            order, counted = self._order(done, kill=kill)
            worker = start(order)
            if kill and not counted:
                time.sleep(self._drawn.random() * 0.6)
                worker.kill()
            code = worker.wait(PATIENCE)
            if not kill and code == -signal.SIGKILL:
                raise Broken(f"a worker did not end within {PATIENCE:g} s")
            failed = self.folder / FAILED
            if code != -signal.SIGKILL and (code or failed.exists()):
                raise Broken(f"a worker failed by itself: {failed.read_text() if failed.exists() else code}")
            said = acknowledged(self.folder)[seen:]
            seen += len(said)
            ended = END in said
            reached = len(self._steps) if ended else max((done - 1, *said)) + 1
            for finished in self._steps[done:reached]:
                if finished.kind == "erase":
                    self._erased += [word for id_, at in finished.versions.items() for word in editions(id_, at - 1)]
                self._told = self._told.after(finished)
            done = reached
            step = None if done == len(self._steps) else self._steps[done]
            if not ended:
                self.toll.kills += 1
                self.toll.during[step.kind if step and OPENED in said else "open" if step else "close"] += 1
            self._look(step)

    def _order(self, done: int, *, kill: bool) -> tuple[Path, bool]:
        """The next worker's order, and whether it kills itself at a counted write."""
        deaths: tuple[Death, ...] = ("before", "half", "after")
        counted = kill and self._drawn.random() < 0.6
        migrating = bool(self._told.versions) and not self.toll.kills
        counted = counted or (kill and migrating)
        at = self._drawn.randint(1, MIGRATING if migrating else AT_MOST) if counted else 0
        order = self.folder / f"order {self.toll.kills}.json"
        write_order(order, self._steps, done, at, self._drawn.choice(deaths))
        return order, counted

    def _look(self, step: Step | None) -> None:
        """Look at a copy of what the kill has left, so that the next worker meets it as it is."""
        copy = self.folder / "look"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        self._search()
        for file in self.folder.iterdir():
            if file.is_file() and file.name.startswith(("s.ecphory", "copy ")) and not file.name.endswith("-shm"):
                shutil.copy(file, copy / file.name)
        path = copy / "s.ecphory"
        repairing = step is not None and step.kind == "repair"
        erasing = step is not None and step.kind == "erase"
        left_by = BESIDE_STORE | ({"erasure"} if erasing else set())
        if path.exists() and path.stat().st_size:
            flaws = wrong(path)
            if any(flaw.kind not in left_by and not repairing and flaw.kind != "property" for flaw in flaws):
                raise Broken(f"verify, before anything is opened: {flaws}")
        caches = caches_of(path)
        started = time.process_time()
        memory = opened(path, self._told.dimension)
        self.toll.slowest = max(self.toll.slowest, time.process_time() - started)
        with memory:
            if repairing or erasing:
                memory.repair()
            cached = list(rankings(memory)) if caches else []
            lines, found = exported(memory), Told({}, memory.status().encoder.dimension, decided(memory))
        if left := wrong(path):
            raise Broken(f"verify, after it was opened and closed: {left}")
        self._compare(step, lines, found)
        if caches:
            for file in caches_of(path):
                file.unlink()
            with opened(path) as memory:
                if list(rankings(memory)) != cached:
                    raise Broken("the caches that were left bring back something else than none")
        for file in copy.glob("copy *"):
            if not file.name.endswith((".tmp", "-wal", "-journal")) and wrong(file):
                raise Broken(f"the backup {file.name} is not sound: {wrong(file)}")

    def _search(self) -> None:
        """Look for what was erased in the bytes of all that is the store's."""
        for file in self.folder.glob("s.ecphory*"):
            content = file.read_bytes()
            if found := [word for word in self._erased if word.encode() in content]:
                raise Broken(f"{found} of what was erased in {file.name}")

    def _compare(self, step: Step | None, lines: dict[str, str], found: Told) -> None:
        dimension = found.dimension
        for at in (self._told, self._told.after(step) if step else self._told):
            self._lines.of(at.versions, dimension)
        versions: dict[str, int] = {}
        for id_, line in lines.items():
            version = self._lines.known(id_, line, dimension)
            if version is None:
                raise Broken(f"the document {id_} is neither of one version nor of another: {line}")
            versions[id_] = version
        found = replace(found, versions=versions)
        if not self._told.allows(step, found):
            raise Broken(f"told {self._told}, in the middle of {step}, found {found}")
        self._told = found


def wrong(path: Path) -> list[Flaw]:
    """What a deep check finds, notes left out."""
    return [flaw for flaw in verify_store(path, deep=True).flaws if flaw.severity != "note"]


def caches_of(path: Path) -> list[Path]:
    """The caches beside the store that are there."""
    files = [path.with_name(path.name + name) for name in ("-cache", "-vectors")]
    return [file for file in files if file.exists()]
