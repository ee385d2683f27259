"""A scripted run with a disk that fails at the n-th act, and what must be true then."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from ecphoryrag.errors import EcphoryError, EncoderMismatch
from ecphoryrag.memory import Memory
from ecphoryrag.types import Generation, Usage
from tests.golden.make_store import FOLDER
from tests.support.durable.disk import FAULTS, Event, Fault, Plan, installed
from tests.support.durable.kills import Broken, wrong
from tests.support.durable.story import DIMENSIONS, Lines, Step, Told, decided, exported, opened, tell, write_import

BASE = "store-format-2.sqlite"
SECRET = "qzjvwx reply of a model"
"""Stands in the ledger's replies that are made of the document that is forgotten."""
ADVICE = re.compile(r"\b(try again|free space|check|name another|open it|move it|remove|restore|run|again)\b")
"""Each error must say what to do now."""
BARE = re.compile(r"Traceback|apsw|\bNone\b")

PARTS: tuple[tuple[Step, ...], ...] = (
    (
        Step("ask", 0),
        Step("add", 1, MappingProxyType({"one": 1, "two": 1, "three": 1})),
        Step("update", 2, MappingProxyType({"one": 2})),
    ),
    (Step("ask", 3), Step("delete", 4, MappingProxyType({"two": 2, "ida": 1}))),
    (Step("reembed", 5, dimension=DIMENSIONS[1]), Step("ask", 6)),
    (Step("merge", 12, decision="merge"), Step("split", 13, decision="split"), Step("undo", 14, decision="merge")),
    (Step("import", 7, MappingProxyType({"four": 1, "three": 2})), Step("reopen", 8), Step("backup", 9)),
    (Step("repair", 10), Step("add", 11, MappingProxyType({"five": 1}))),
)
"""One story in parts, each from opening to closing. Opening brings the store of an earlier format up to date first, and
before the deletion replies are kept in the ledger."""


@dataclass(frozen=True, slots=True)
class Case:
    """One run of a part: which act fails, how, whether the disk then keeps failing, and whether the memory is opened
    again before what failed is done again."""

    part: int
    at: int
    fault: Fault
    lasting: bool = False
    reopening: bool = False


@dataclass(slots=True)
class Found:
    """What the cases showed."""

    cases: int = 0
    hit: Counter[str] = field(default_factory=Counter)
    """Cases by what failed: act and file."""
    errors: Counter[str] = field(default_factory=Counter)
    """Errors that were raised, by class; ``none`` where the failure cost nothing."""
    broken: list[str] = field(default_factory=list)


class Faulty:
    """Runs the parts on failing disks, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "lines").mkdir(parents=True)
        lines = Lines(folder / "lines")
        shutil.copy(FOLDER / BASE, folder / "lines" / "base")
        told = Told(lines.give(folder / "lines" / "base"))
        self._lines = lines
        self._before: list[Told] = []
        self.acts: list[list[Event]] = []
        """All that each part asks of a disk that does not fail."""
        shutil.copytree(folder / "lines", folder / "part 0", ignore=lambda _, names: names)
        shutil.copy(FOLDER / BASE, folder / "part 0" / "s.ecphory")
        for at, part in enumerate(PARTS):
            self._before.append(told)
            for step in part:
                if step.kind == "import":
                    write_import(step, folder / f"part {at}", lines)
                told = told.after(step)
                lines.of(told.versions, told.dimension)
            plan = Plan(recording=True)
            self._run(plan, Case(at, 0, "ioerr"))
            self.acts.append(plan.events)
            shutil.move(folder / "run", folder / f"part {at + 1}")

    def try_all(self, cases: Iterable[Case], told: Callable[[str], None] = lambda _: None) -> Found:
        """Run each; one in which something breaks leaves its folder behind."""
        found = Found()
        for case in cases:
            plan = Plan(case.at, case.fault, lasting=case.lasting)
            try:
                errors = self._run(plan, case)
            except AssertionError as error:
                found.broken.append(f"{case}, hit {plan.hit}: {error}"[:3000])
                shutil.rmtree(self._folder / f"broken {len(found.broken)}", ignore_errors=True)
                (self._folder / "run").rename(self._folder / f"broken {len(found.broken)}")
                errors = []
            found.cases += 1
            found.hit["nothing" if plan.hit is None else f"{plan.hit.act} {plan.hit.file}"] += 1
            found.errors.update([type(error).__name__ for error in errors] or ["none"])
            if found.cases % 50 == 0:
                told(f"{found.cases} cases, {len(found.broken)} broken")
        return found

    def _run(self, plan: Plan, case: Case) -> list[EcphoryError]:
        shutil.rmtree(self._folder / "run", ignore_errors=True)
        shutil.copytree(self._folder / f"part {case.part}", self._folder / "run")
        run = _Run(self._folder / "run", self._lines, plan, case, self._before[case.part])
        with installed(plan):
            run.all()
        run.look(run.path, None)
        run.see_nothing_of(SECRET)
        return run.errors


@dataclass(slots=True)
class _Run:
    """One run of a part."""

    folder: Path
    lines: Lines
    plan: Plan
    case: Case
    told: Told
    memory: Memory | None = None
    errors: list[EcphoryError] = field(default_factory=list)

    def all(self) -> None:
        """Do every step; what fails is looked at and done again. Raises Broken."""
        try:
            for step in PARTS[self.case.part]:
                self.trying(step)
                self.told = self.told.after(step)
            self.trying(None)
        finally:
            self.plan.mend()
            with suppress(EcphoryError):
                self.close()

    @property
    def path(self) -> Path:
        """Of the store."""
        return self.folder / "s.ecphory"

    def do(self, step: Step | None) -> None:
        """One step, with a memory that is opened if it is not open; None closes it."""
        if step is None or step.kind == "reopen":
            self.close()
        if step is None:
            return
        memory = self.memory = self.memory or opened(self.path)
        if step.kind == "delete":
            keep_replies(memory, step)
        if step.kind != "reopen":
            tell(memory, step, self.folder)

    def close(self) -> None:
        """Close the memory, if it is open."""
        memory, self.memory = self.memory, None
        if memory is not None:
            memory.close()

    def trying(self, step: Step | None) -> None:
        """Do it; if that fails, see that it fails well, let the disk be sound again, and do it again."""
        try:
            self.do(step)
        except EcphoryError as error:
            self.errors.append(error)
            self.judge(error)
            # Said by a store that was moved before the failure: all who have it open must open it again.
            reopening = self.case.reopening or isinstance(error, EncoderMismatch)
        except Exception as error:
            raise Broken(f"in {step}: no error of this package but {type(error).__name__}: {error}") from error
        else:
            return
        self.plan.mend()
        self.look_at_copy(step)
        if reopening:
            with suppress(EcphoryError):
                self.close()
        try:
            self.do(step)
        except Exception as error:
            raise Broken(f"{step} cannot be completed: {type(error).__name__}: {error}") from error

    def judge(self, error: EcphoryError) -> None:
        """Whether the error says what happened, to what, and what to do now."""
        said = str(error)
        if self.plan.hit is None:
            raise Broken(f"an error though nothing failed: {said}")
        if (self.path.name not in said and "copy " not in said) or not ADVICE.search(said) or BARE.search(said):
            raise Broken(f"an error that is not clear: {said}")

    def look_at_copy(self, step: Step | None) -> None:
        """What is on the disk at this moment opens, and holds what was acknowledged."""
        copy = self.folder / "look"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for file in list(self.folder.iterdir()):
            if file.name.startswith("s.ecphory") and not file.name.endswith("-shm"):
                shutil.copy(file, copy / file.name)
        self.look(copy / "s.ecphory", step)

    def look(self, path: Path, step: Step | None) -> None:
        """The store at the path is sound and holds what it must."""
        self.plan.recording = False
        with opened(path, self.told.dimension) as memory:
            if step is not None and step.kind == "repair":
                memory.repair()
            lines, decisions, dimension = exported(memory), decided(memory), memory.status().encoder.dimension
        if left := wrong(path):
            raise Broken(f"verify: {left}")
        for at in (self.told, self.told.after(step) if step else self.told):
            self.lines.of(at.versions, dimension)
        found = {id_: self.lines.known(id_, line, dimension) for id_, line in lines.items()}
        torn = [id_ for id_, version in found.items() if version is None]
        held = Told({id_: version for id_, version in found.items() if version is not None}, dimension, decisions)
        if torn or not self.told.allows(step, held):
            raise Broken(f"told {self.told}, in the middle of {step}, found {held}, torn {torn}")

    def see_nothing_of(self, secret: str) -> None:
        """What was forgotten is in no byte beside the store."""
        for file in self.folder.glob("s.ecphory*"):
            if secret.encode() in file.read_bytes():
                raise Broken(f"{file.name} still holds the reply made of what was forgotten")


def keep_replies(memory: Memory, step: Step) -> None:
    """Put a reply into the ledger that was made of what the step forgets, as a language model's extraction does."""
    if step.versions.keys() - {one.id for one in memory.documents()}:
        return  # they are forgotten already
    ledger = memory._parts.replies
    assert ledger is not None
    reply = Generation(SECRET, "stop", Usage(1, 2, 3))
    ledger.keep(f"key {step.number}", reply, "index", "scripted", tuple(step.versions))


def sampled(parts: list[list[Event]], seed: int) -> Iterator[Case]:
    """Some of all cases: of every act on every kind of file one, of writes each fault."""
    drawn = random.Random(seed)
    places: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for part, acts in enumerate(parts):
        for event in acts:
            places.setdefault((event.act, event.file), []).append((part, event.number))
    for (act, _), found in places.items():
        for fault in FAULTS if act == "write" else (drawn.choice(("ioerr", "full")),):
            part, at = drawn.choice(found)
            yield Case(part, at, fault, drawn.random() < 0.5, drawn.random() < 0.5)


def every(parts: list[list[Event]], seed: int) -> Iterator[Case]:
    """All cases: at each act each fault, both passing and lasting."""
    drawn = random.Random(seed)
    for part, acts in enumerate(parts):
        for event in acts:
            for fault in FAULTS:
                if event.act == "write" or fault in ("ioerr", "full"):  # of other acts the rest is the same
                    for lasting in (False, True):
                        yield Case(part, event.number, fault, lasting, drawn.random() < 0.5)
