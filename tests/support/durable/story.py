"""A story that is told to a memory, step by step, and the plain model of what the memory must then hold.

Everything follows from a seed. A document is made from its id and a version, so that the model is a mapping of ids to
versions, and what a store must export for each is known from a store that never met with any trouble.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

import apsw

from ecphoryrag.decisions import Selection
from ecphoryrag.memory import Memory
from ecphoryrag.settings import ChunkSettings, IndexingSettings, ModelsSettings, Settings
from ecphoryrag.store import kept_encoder
from ecphoryrag.store.connections import transaction
from ecphoryrag.store.faults import translating
from ecphoryrag.types import Document
from tests.support.durable.quick import QuickEncoder, QuickExtractor

SETTINGS = Settings(
    generator="none",
    indexing=IndexingSettings(chunks=ChunkSettings(budget=24, overlap=0)),
    models=ModelsSettings(ledger=False),
)
"""Small chunks, so that a document has several."""
DIMENSIONS = (8, 12)
"""Of the encoder a story begins with, and of the one it moves to."""
DECIDED = '{"decision":'
"""How the line of a decision begins."""
QUESTION = "Who met Bela Toth in Harbour 2?"

Kind: TypeAlias = Literal[
    "add",
    "update",
    "delete",
    "erase",
    "reembed",
    "import",
    "backup",
    "repair",
    "ask",
    "reopen",
    "merge",
    "split",
    "undo",
]
Versions: TypeAlias = Mapping[str, int]
Decisions: TypeAlias = tuple[tuple[str, bool], ...]
"""The reasons given for decisions about names, and whether they were undone."""
MERGED = ("Anna Marsh", "Ida Moen")
SPLIT = "Bela Toth"
"""Named in every document."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is asked of the memory."""

    kind: Kind
    number: int
    """Of the step in its story."""
    versions: Versions = field(default_factory=dict)
    """What add, update and import bring; of what is deleted or erased the ids alone count."""
    dimension: int = 0
    """Of the encoder that is moved to."""
    decision: str = ""
    """The reason of what is merged, split or undone: it stands for the decision."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the memory must hold: the documents of which version, and by which encoder."""

    versions: Versions = field(default_factory=dict)
    dimension: int = DIMENSIONS[0]
    decisions: Decisions = ()

    def after(self, step: Step) -> Told:
        """What it must hold when the step is done."""
        match step.kind:
            case "add" | "update" | "import":
                return replace(self, versions={**self.versions, **step.versions})
            case "delete" | "erase":
                left = {k: v for k, v in self.versions.items() if k not in step.versions}
                named = step.kind == "delete" or any(left.values())  # what nothing names any more is erased with them
                return replace(self, versions=left, decisions=self.decisions if named else ())
            case "reembed":
                return replace(self, dimension=step.dimension)
            case "merge" | "split" if step.decision not in dict(self.decisions):
                return replace(self, decisions=(*self.decisions, (step.decision, False)))
            case "undo":
                return replace(self, decisions=tuple((one, was or one == step.decision) for one, was in self.decisions))
            case _:
                return self

    def allows(self, step: Step | None, found: Told) -> bool:
        """Whether a memory that was stopped at some moment of the step may hold this."""
        after = self if step is None else self.after(step)
        if found.decisions not in (self.decisions, after.decisions):
            return False
        if step is not None and step.kind in {"delete", "erase"}:
            return found.versions in (self.versions, after.versions) and found.dimension == self.dimension
        ids = {**self.versions, **after.versions}
        both = {id_: {self.versions.get(id_), after.versions.get(id_)} for id_ in ids}
        return (
            found.versions.keys() <= ids.keys()
            and all(found.versions.get(id_) in either for id_, either in both.items())
            and found.dimension in (self.dimension, after.dimension)
        )


def document(id: str, version: int) -> Document:
    """The document of this id in this version: some sentences with names, the version in most and in the metadata.

    What is merged and split stands in sentences so short that no chunk ends inside of a name.
    """
    drawn = random.Random(f"{id} {version}")
    people = ("Anna Marsh", "Bela Toth", "Ida Moen", "Ellen Tsai", f"Keeper {id}")
    edition = f"v{version}x{drawn.randrange(10**6)}"
    sentences = [
        f"{id} is told in edition {edition}.",
        "It is by Anna Marsh.",
        "It is by Ida Moen.",
        "It is by Bela Toth.",
    ]
    for at in range(drawn.randrange(1, 7)):
        one, other = drawn.sample(people, 2)
        sentences.append(
            f"{one} met {other} in Harbour {drawn.randrange(6)} on day {at} of edition v{version}, "
            f"and spoke of {drawn.choice(('grain', 'salt', 'rope', 'the lost Silver Bell'))}."
        )
    return Document(id, " ".join(sentences), f"Harbour {id[-1]} ({id})", {"version": version})


def editions(id: str, version: int) -> list[str]:
    """The words that stand in the document alone, of each version up to this one."""
    return [document(id, at).text.split(".")[0].rpartition(" ")[2] for at in range(1, version + 1)]


def story(seed: int, length: int = 14, *, versions: Versions = MappingProxyType({})) -> list[Step]:
    """So many steps, beginning with these documents."""
    drawn = random.Random(seed)
    told = Told(versions)
    steps: list[Step] = []
    kinds: tuple[Kind, ...] = (
        *("add",) * 2,
        *("update",) * 3,
        *("delete",) * 3,
        "erase",
        *("reembed",) * 2,
        *("import", "backup", "repair", "repair", "ask", "ask", "reopen"),
        *("merge", "split", "undo"),
    )
    for number in range(length):
        named = any(told.versions.values())  # documents of ours, that have the names in them
        step = _step(drawn, drawn.choice(kinds) if named else "add", number, told)
        steps.append(step)
        told = told.after(step)
    return steps


def _step(drawn: random.Random, kind: Kind, number: int, told: Told) -> Step:
    there = sorted(told.versions)
    match kind:
        case "add":
            return Step(kind, number, {f"doc{number}{letter}": 1 for letter in "abcd"[: drawn.randint(1, 4)]})
        case "update" | "delete" | "erase":
            chosen = drawn.sample(there, min(len(there), drawn.randint(1, 2)))
            return Step(kind, number, {id_: told.versions[id_] + 1 for id_ in chosen})
        case "import":
            fresh = {f"imp{number}{letter}": 1 for letter in "ab"}
            return Step(kind, number, {**fresh, **{id_: told.versions[id_] + 1 for id_ in there[:1]}})
        case "merge" | "split" | "undo":
            return _deciding(kind, number, [one for one, undone in told.decisions if not undone])
        case "reembed":
            return Step(kind, number, dimension=next(one for one in DIMENSIONS if one != told.dimension))
        case _:
            return Step(kind, number)


def _deciding(kind: Kind, number: int, forced: list[str]) -> Step:
    """A decision, at most one of a kind in force at once; or that the last one is undone."""
    if kind != "undo" and not any(one.startswith(kind) for one in forced):
        return Step(kind, number, decision=f"{kind} {number}")
    return Step("undo", number, decision=forced[-1]) if forced else Step("ask", number)


class Lines:
    """The lines that a store exports for documents in their versions, from stores that nothing ever happened to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[tuple[str, int, int], str] = {}
        self._versions: dict[tuple[str, int, str], int] = {}
        self._made = 0

    def give(self, path: Path) -> Versions:
        """Take the documents of an undisturbed store as version 0 of their ids, by either encoder.

        Moved away and back they may have other vectors than they came with: whoever made them read other headings.
        """
        found: dict[str, str] = {}
        for dimension in (*DIMENSIONS, DIMENSIONS[0]):
            with opened(path) as memory:
                memory.reembed(QuickEncoder(dimension))
                found = exported(memory)
            for id_, line in found.items():
                self._learn(id_, 0, dimension, line)
        return dict.fromkeys(found, 0)

    def _learn(self, id: str, version: int, dimension: int, line: str) -> None:
        self._known.setdefault((id, version, dimension), line)
        self._versions[id, dimension, line] = version

    def of(self, versions: Versions, dimension: int) -> dict[str, str]:
        """The lines by id."""
        missing = {id_: at for id_, at in versions.items() if (id_, at, dimension) not in self._known}
        if missing:
            self._made += 1
            with opened(self._folder / f"lines {self._made}", dimension) as memory:
                memory.add([document(id_, at) for id_, at in missing.items()])
                for id_, line in exported(memory).items():
                    self._learn(id_, missing[id_], dimension, line)
        return {id_: self._known[id_, at, dimension] for id_, at in versions.items()}

    def known(self, id: str, line: str, dimension: int) -> int | None:
        """Which version of the document this line is."""
        return self._versions.get((id, dimension, line))


def opened(path: Path, dimension: int | None = None) -> Memory:
    """The memory at this path, opened with the encoder it has, or else with this one."""
    kept = kept_encoder(path)
    encoder = QuickEncoder(kept.dimension if kept else dimension or DIMENSIONS[0])
    return Memory.open(path, settings=SETTINGS, encoder=encoder, extractor=QuickExtractor())


def exported(memory: Memory) -> dict[str, str]:
    """The lines of all documents, with vectors, by id."""
    return {json.loads(line)["id"]: line for line in _export(memory) if not line.startswith(DECIDED)}


def decided(memory: Memory) -> Decisions:
    """The decisions about names that a story has made, in their order."""
    found = (json.loads(line)["decision"] for line in _export(memory) if line.startswith(DECIDED))
    return tuple((one["reason"], one["undone"]) for one in found if one["reason"].startswith(("merge", "split")))


def whole(memory: Memory, *, decisions: bool = True) -> str:
    """All that the memory exports, with vectors; without ``decisions`` the lines of documents alone."""
    lines = _export(memory)
    return "".join(lines if decisions else exported(memory).values())


def _export(memory: Memory) -> list[str]:
    output = io.StringIO()
    report = memory.export(output, vectors=True)
    assert not report.left_out, report.left_out
    return output.getvalue().splitlines(keepends=True)[1:]


def tell(memory: Memory, step: Step, folder: Path) -> None:
    """Ask this of the memory; doing it again when it was done in part does the rest."""
    _TELLING[step.kind](memory, step, folder)


def _add(memory: Memory, step: Step, folder: Path) -> None:
    del folder
    report = memory.add([document(id_, at) for id_, at in step.versions.items()])
    assert not report.failed, report.failed


def _delete(memory: Memory, step: Step, folder: Path) -> None:
    del folder
    memory.forget(*sorted({one.id for one in memory.documents()} & step.versions.keys()))


def _erase(memory: Memory, step: Step, folder: Path) -> None:
    """Of what was deleted before the kill there is nothing left to name: then what was begun is finished."""
    del folder
    receipt = memory.forget(*sorted({one.id for one in memory.documents()} & step.versions.keys()), erase=True)
    assert receipt is not None
    assert receipt.complete, receipt


def _reembed(memory: Memory, step: Step, folder: Path) -> None:
    kept = kept_encoder(folder / "s.ecphory")
    if kept is None or kept.dimension != step.dimension:
        memory.reembed(QuickEncoder(step.dimension))


def _import(memory: Memory, step: Step, folder: Path) -> None:
    report = memory.import_file(folder / f"import {step.number}.jsonl")
    assert not report.failed, report.failed


def _backup(memory: Memory, step: Step, folder: Path) -> None:
    copy = folder / f"copy {step.number}"
    if not copy.exists():
        memory.backup(copy)


def _repair(memory: Memory, step: Step, folder: Path) -> None:
    del step
    damage(folder / "s.ecphory")
    memory.repair()


def _decide(memory: Memory, step: Step, folder: Path) -> None:
    del folder
    if step.decision in dict(decided(memory)):
        return
    if step.kind == "merge":
        memory.merge(*MERGED, reason=step.decision)
    else:
        memory.split(SPLIT, f"of {step.number}", Selection(where={"version": 1}), reason=step.decision)


def _undo(memory: Memory, step: Step, folder: Path) -> None:
    del folder
    for one in memory.decisions():
        if one.decision.reason == step.decision and not one.decision.undone:
            memory.undo(one.decision.number)


def _ask(memory: Memory, step: Step, folder: Path) -> None:
    del step, folder
    memory.recall(QUESTION)
    memory.recall(QUESTION, method="paper")


_TELLING: Mapping[Kind, Callable[[Memory, Step, Path], None]] = {
    "add": _add,
    "update": _add,
    "delete": _delete,
    "erase": _erase,
    "reembed": _reembed,
    "import": _import,
    "backup": _backup,
    "repair": _repair,
    "merge": _decide,
    "split": _decide,
    "undo": _undo,
    "ask": _ask,
}
"""What is done for a step, all but opening again, which whoever holds the memory does."""


def write_import(step: Step, folder: Path, lines: Lines) -> None:
    """The file that the step imports: an export of a store that holds its documents in their versions."""
    header = {"ecphory_export": 1, "format": 1, "encoder": None, "documents": len(step.versions), "vectors": False}
    records = [json.loads(line) for line in lines.of(step.versions, DIMENSIONS[0]).values()]
    for record in records:
        for chunk in record["chunks"]:
            del chunk["vector"]
    text = "".join(json.dumps(one) + "\n" for one in (header, *records))
    (folder / f"import {step.number}.jsonl").write_text(text, encoding="utf-8")


def damage(path: Path) -> None:
    """Spoil what can be made again from the texts: words, the lexical index, an entity of no chunk."""
    with translating(path), closing(apsw.Connection(str(path))) as connection:
        connection.set_busy_timeout(5000)
        with transaction(connection, "IMMEDIATE"):
            connection.execute("UPDATE chunks SET words = x'00000000'")
            connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
            connection.execute("INSERT INTO entities (key) VALUES ('nobody at all') ON CONFLICT DO NOTHING")


def rankings(memory: Memory) -> Iterator[tuple[str, list[tuple[str, int, float]], list[tuple[str, float]]]]:
    """What some questions bring back, with scores, by two methods."""
    for question in (QUESTION, "the lost Silver Bell"):
        for method in ("ecphory", "paper"):
            found = memory.recall(question, method=method, k=8)
            yield (
                question,
                [(one.chunk.document_id, one.chunk.ordinal, one.score) for one in found.chunks],
                [(one.entity.key, one.score) for one in found.entities],
            )
