"""Programs of operations, made up by hypothesis, and the model that they are held against."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ecphoryrag.memory import Memory
from tests.support.durable.story import Step, Told, decided, document, opened, rankings, tell, whole

IDS = st.sampled_from([f"doc{letter}" for letter in "abcdef"])
DEEP = 3
"""Every so many steps, and in the end, the check is a deep one."""


class Programs(RuleBasedStateMachine):
    """Adds, updates, deletes, merges, splits, reopens, copies and brings back; always as the model says."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = Path(tempfile.mkdtemp(prefix="programs"))
        self._told = Told()
        self._number = self._checked = 0
        self._memory: Memory

    @initialize()
    def open(self) -> None:
        """Begin with an empty store."""
        self._memory = opened(self._folder / "s.ecphory")

    def _tell(self, kind: Any, **words: Any) -> None:
        self._number += 1
        step = Step(kind, self._number, **words)
        tell(self._memory, step, self._folder)
        self._told = self._told.after(step)

    def _named(self) -> bool:
        return bool(self._told.versions)

    @rule(ids=st.lists(IDS, min_size=1, max_size=3, unique=True))
    def add(self, ids: list[str]) -> None:
        """Add these, or update those that are there."""
        self._tell("add", versions={id_: self._told.versions.get(id_, 0) + 1 for id_ in ids})

    @rule(id=IDS)
    def add_again(self, id: str) -> None:
        """Add what is there already: nothing happens."""
        if id in self._told.versions:
            report = self._memory.add(document(id, self._told.versions[id]))
            assert report.unchanged == (id,)

    @rule(ids=st.lists(IDS, min_size=1, max_size=3, unique=True))
    def delete(self, ids: list[str]) -> None:
        """Delete those of these that are there."""
        self._tell("delete", versions={id_: 0 for id_ in ids if id_ in self._told.versions})

    @precondition(lambda self: self._named() and not self._forced("merge"))
    @rule()
    def merge(self) -> None:
        """Merge two names."""
        self._tell("merge", decision=f"merge {self._number}")

    @precondition(lambda self: self._named() and not self._forced("split"))
    @rule()
    def split(self) -> None:
        """Split a name by a filter."""
        self._tell("split", decision=f"split {self._number}")

    def _forced(self, kind: str = "") -> list[str]:
        return [one for one, undone in self._told.decisions if one.startswith(kind) and not undone]

    @precondition(lambda self: self._forced())
    @rule()
    def undo(self) -> None:
        """Undo the last decision in force."""
        self._tell("undo", decision=self._forced()[-1])

    @rule()
    def ask(self) -> None:
        """Ask, so that caches are there to go stale."""
        self._tell("ask")

    @rule()
    def reopen(self) -> None:
        """Close and open."""
        self._memory.close()
        self._memory = opened(self._folder / "s.ecphory")

    @rule()
    def restore(self) -> None:
        """Go on with a backup in the store's place."""
        copy = self._folder / "copy"
        self._memory.backup(copy)
        self._memory.close()
        self._clear()
        copy.rename(self._folder / "s.ecphory")
        self._memory = opened(self._folder / "s.ecphory")

    @rule()
    def import_again(self) -> None:
        """Go on with a new store that has imported the export of the former."""
        file = self._folder / "export.jsonl"
        with file.open("w", encoding="utf-8") as output:
            self._memory.export(output, vectors=True)
        self._memory.close()
        self._clear()
        self._memory = opened(self._folder / "s.ecphory")
        report = self._memory.import_file(file)
        assert not report.failed, report.failed

    def _clear(self) -> None:
        for file in self._folder.glob("s.ecphory*"):
            file.unlink()

    @invariant()
    def sound(self) -> None:
        """The store passes its check, and holds the documents and decisions that the model does."""
        if not hasattr(self, "_memory"):
            return
        self._checked += 1
        report = self._memory.verify(deep=self._checked % DEEP == 0)
        assert [flaw for flaw in report.flaws if flaw.severity != "note"] == []
        found = {one.id: one.metadata["version"] for one in self._memory.documents()}
        assert found == dict(self._told.versions)
        assert decided(self._memory) == self._told.decisions

    def teardown(self) -> None:
        """In the end the export is that of a store that only ever held this, added in another order; and recall too."""
        try:
            self._compare()
        finally:
            self._memory.close()
            shutil.rmtree(self._folder)

    def _compare(self) -> None:
        assert [flaw for flaw in self._memory.verify(deep=True).flaws if flaw.severity != "note"] == []
        with opened(self._folder / "fresh.ecphory") as fresh:
            for id_, version in reversed(list(self._told.versions.items())):
                fresh.add(document(id_, version))
            assert whole(self._memory, decisions=False) == whole(fresh, decisions=False)
            if not self._forced():
                assert list(rankings(self._memory)) == list(rankings(fresh))
