"""Bringing stores of earlier formats up to date while processes die and the disk fails, and what must be there then."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from ecphoryrag.errors import EcphoryError
from ecphoryrag.store import open_store, verify_store
from ecphoryrag.store.former import formers
from ecphoryrag.store.schema import FORMAT
from tests.golden.make_store import FOLDER, described
from tests.support.durable.disk import FAULTS, Death, Plan, installed
from tests.support.durable.hatchery import Hatchery
from tests.support.durable.worker import watcher
from tests.support.indexed_documents import ENCODER, EXTRACTOR

NAME = "s.ecphory"
OLDER = sorted(FOLDER.glob("store-format-*.sqlite"))[:-1]
"""A store of each earlier format."""
ADVICE = re.compile(r"try again|check th")
PATIENCE = 60.0


@dataclass(slots=True)
class Upgraded:
    """What the ordeal showed."""

    acts: dict[str, int] = field(default_factory=dict)
    """Writes, syncs, openings, removals and namings of bringing each up to date."""
    tried: int = 0
    old: int = 0
    """Stores that were found as they had been."""
    new: int = 0
    refused: int = 0
    """Openings that failed with an error."""
    broken: list[str] = field(default_factory=list)


def upgrade(folder: str, at: int, death: Death) -> None:
    """Open the store in the folder for writing; dies at the act of this number, if it comes to so many."""
    plan = Plan(at=at, death=death)
    sys.addaudithook(watcher(plan, Path(folder)))
    with installed(plan):
        open_store(Path(folder) / NAME, ENCODER.identity, EXTRACTOR).close()


def dump(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, those of the lexical index too; what a killed writer left half done is undone."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        names = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name != 'search'"
        ).fetchall()
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}
        return {name: sorted(found, key=repr) for name, found in rows.items()} | {
            "format": [(connection.execute("PRAGMA user_version").get,)]
        }


class Upgrading:
    """Tries openings in a folder."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._drawn = random.Random(seed)
        folder.mkdir(parents=True)
        self.found = Upgraded()

    def kill(self, hatchery: Hatchery, golden: Path, deaths: tuple[Death, ...], every: int = 1) -> None:
        """Kill at every act, or every so manieth from a drawn one, and half of those who recover from it too."""
        at = self._drawn.randrange(every) + 1
        while True:
            code = 0
            for death in deaths:
                case = f"{golden.stem}, killed {death} act {at}"
                run = self._begin(golden)
                code = hatchery.start(upgrade, folder=str(run), at=at, death=death).wait(PATIENCE)
                if code not in (0, -signal.SIGKILL):
                    self.found.broken.append(f"{case}: ended with {code}")
                if self._drawn.random() < 0.5:
                    hatchery.start(upgrade, folder=str(run), at=self._drawn.randint(1, at), death=death).wait(PATIENCE)
                self._look(case, golden)
            if not code:
                self.found.acts[golden.stem] = at
                return
            at += every

    def fail(self, golden: Path, every: int = 1) -> None:
        """Let each kind of failure come at every act of SQLite's, or every so manieth, passing and lasting."""
        at, hit = self._drawn.randrange(every) + 1, True
        while hit:
            hit = False
            for fault in FAULTS:
                for lasting in (False, True):
                    case = f"{golden.stem}, {fault} {'from' if lasting else 'at'} act {at}"
                    path = self._begin(golden) / NAME
                    plan = Plan(at, fault, lasting=lasting)
                    with installed(plan):
                        try:
                            open_store(path, ENCODER.identity, EXTRACTOR).close()
                        except EcphoryError as error:
                            self.found.refused += 1
                            if not ADVICE.search(str(error)) or str(path) not in str(error):
                                self.found.broken.append(f"{case}: says {error}")
                        plan.mend()
                    hit = hit or plan.hit is not None
                    self._look(case, golden)
            at += every

    def _begin(self, golden: Path) -> Path:
        run = self._folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir()
        shutil.copy(golden, run / NAME)
        return run

    def _look(self, case: str, golden: Path) -> None:
        self.found.tried += 1
        self.found.broken += [f"{case}: {what}" for what in self._wrong(golden)]

    def _wrong(self, golden: Path) -> Iterator[str]:
        """What is wrong with what is left, and with what the next opening makes of it."""
        run, look = self._folder / "run", self._folder / "look"
        shutil.rmtree(look, ignore_errors=True)
        shutil.copytree(run, look, ignore=shutil.ignore_patterns("*-shm"))
        number, before = int(golden.stem.rpartition("-")[2]), dump(_copied(golden, self._folder))
        copies = formers(look / NAME)
        yield from (f"{copy.name} is not the store as it was" for copy in copies if dump(copy) != before)
        after = dump(look / NAME)
        if after == before:
            self.found.old += 1
        else:
            self.found.new += 1
            if not copies:
                yield "brought up to date without a copy"
            if after["format"] != [(FORMAT,)]:
                yield f"of format {after['format']}"
            changed = [name for name in before if name not in ("format", "migrations") and after[name] != before[name]]
            if changed:
                yield f"changed: {changed}"
        path = run / NAME
        with closing(open_store(path, ENCODER.identity, EXTRACTOR)) as store:
            if described(store) != json.loads(golden.with_suffix(".json").read_text(encoding="utf-8")):
                yield "the next opening does not find what was there"
        if [flaw for flaw in verify_store(path, deep=True).flaws if flaw.severity != "note"]:
            yield "not sound after the next opening"
        left = {file.name for file in run.iterdir()} - {f"{NAME}-cache", f"{NAME}-vectors"}
        if left != {NAME, f"{NAME}.format-{number}"}:
            yield f"left after the next opening: {sorted(left)}"
        elif dump(run / f"{NAME}.format-{number}") != before:
            yield "the copy is not the store as it was, after the next opening"


def _copied(golden: Path, folder: Path) -> Path:
    copy = folder / golden.name
    if not copy.exists():
        shutil.copy(golden, copy)
    return copy


def all_of_it(folder: Path, seed: int, told: Callable[[str], None] = lambda _: None) -> Upgraded:
    """The long form: every act of every earlier format."""
    ordeal = Upgrading(folder, seed)
    with Hatchery() as hatchery:
        for golden in OLDER:
            ordeal.kill(hatchery, golden, ("before", "half", "after"))
            ordeal.fail(golden)
            told(f"{golden.stem}: {ordeal.found.tried} tried, {len(ordeal.found.broken)} broken")
    return ordeal.found
