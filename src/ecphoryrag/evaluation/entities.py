"""How well names are resolved: pairwise precision and recall against pairs of mentions that a person has labelled."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ecphoryrag.errors import DocumentNotFound, InputError
from ecphoryrag.memory import Memory
from ecphoryrag.text.keys import name_key
from ecphoryrag.types import JsonValue

THRESHOLDS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
"""Scores from which proposed duplicates are taken as merged, beside the one asked for."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A mention: the document, the name, and where it stands."""

    document: str
    name: str
    field: str
    start: int


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two mentions, and whether they are of one thing."""

    kind: str
    """How the pair was found."""
    one: Labelled
    other: Labelled
    same: bool


@dataclass(frozen=True, slots=True)
class Scored:
    """Pairs said to be the same, against those that are."""

    name: str
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int

    @property
    def precision(self) -> float | None:
        """Of the pairs said to be the same the part that is; None if none was."""
        said = self.true_positive + self.false_positive
        return self.true_positive / said if said else None

    @property
    def recall(self) -> float | None:
        """Of the pairs that are the same the part that was found; None if there are none."""
        same = self.true_positive + self.false_negative
        return self.true_positive / same if same else None

    def to_json(self) -> dict[str, JsonValue]:
        """With precision and recall."""
        return {**asdict(self), "precision": self.precision, "recall": self.recall}


@dataclass(frozen=True, slots=True)
class EntityReport:
    """The outcome, by what was measured and by kind of pair."""

    pairs: int
    missing: tuple[str, ...]
    """Mentions that the store does not have, as `document: name`; their pairs are left out."""
    scores: tuple[Scored, ...]
    kinds: Mapping[str, tuple[int, int]]
    """Of each kind how many pairs there are, and how many of them are the same."""

    def to_json(self) -> dict[str, JsonValue]:
        """As written to a file."""
        return {
            "pairs": self.pairs,
            "missing": [*self.missing],
            "scores": [one.to_json() for one in self.scores],
            "kinds": {kind: [*counts] for kind, counts in sorted(self.kinds.items())},
        }

    def table(self) -> list[str]:
        """Lines of Markdown."""
        lines = [
            "| said to be the same | precision | recall | right | wrong | missed |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for one in self.scores:
            counts = f"{one.true_positive} | {one.false_positive} | {one.false_negative}"
            lines.append(f"| {one.name} | {_shown(one.precision)} | {_shown(one.recall)} | {counts} |")
        lines += ["", "| how the pair was found | pairs | the same |", "| --- | --- | --- |"]
        lines += [f"| {kind} | {total} | {same} |" for kind, (total, same) in sorted(self.kinds.items())]
        left = f"; {len(self.missing)} mentions are not in the store" if self.missing else ""
        return [*lines, "", f"{self.pairs} pairs{left}."]


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def read_labels(path: Path) -> list[LabelledPair]:
    """Labelled pairs from JSONL; lines that begin with # are comments. Raises InputError, naming the line."""
    found: list[LabelledPair] = []
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as labels ({error}); name another file.") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip() and not line.startswith("#"):
            try:
                found.append(_pair(json.loads(line)))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(
                    f"{path}:{number} is no labelled pair ({error}): it needs `one` and `other`, each with `document` "
                    "and `name`, and `same`."
                ) from error
    if not found:
        raise InputError(f"{path} holds no labelled pair.")
    return found


def _pair(record: dict[str, Any]) -> LabelledPair:
    if not isinstance(record["same"], bool):
        raise ValueError("`same` is neither true nor false")  # noqa: TRY004 - as for all else
    one, other = (_mention(record[part]) for part in ("one", "other"))
    return LabelledPair(str(record.get("kind", "")), one, other, record["same"])


def _mention(record: dict[str, Any]) -> Labelled:
    return Labelled(
        str(record["document"]), str(record["name"]), str(record.get("field", "text")), int(record.get("start", -1))
    )


def evaluate_entities(memory: Memory, pairs: Sequence[LabelledPair], least: float | None = None) -> EntityReport:
    """Measure the present resolution, decisions included, and that with the proposed duplicates merged.

    A proposal of at least a score is taken as merged, and merges join as a union; ``least`` is one more score to
    measure. A mention is found by its place, else by its name in its document.
    """
    found = {mention: _entity(memory, mention) for pair in pairs for mention in (pair.one, pair.other)}
    missing = tuple(sorted({f"{one.document}: {one.name}" for one, key in found.items() if key is None}))
    known = [(found[one.one], found[one.other], one) for one in pairs]
    asked = [(a, b, pair) for a, b, pair in known if a is not None and b is not None]
    proposed = memory.duplicates(least=0.0)
    scores = [_scored("the same entity", [(a == b, pair.same) for a, b, pair in asked])]
    for threshold in sorted({*THRESHOLDS, *([] if least is None else [least])}, reverse=True):
        union = _Union()
        for duplicate in proposed:
            if duplicate.score >= threshold:
                union.join(duplicate.one_key, duplicate.other_key)
        said = [(union.root(a) == union.root(b), pair.same) for a, b, pair in asked]
        scores.append(_scored(f"with duplicates of {threshold:g} merged", said))
        apart = [one for (a, b, _), one in zip(asked, said, strict=True) if a != b]
        scores.append(_scored(f"duplicates of {threshold:g}, of different names alone", apart))
    kinds: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for _, _, pair in asked:
        total, same = kinds[pair.kind]
        kinds[pair.kind] = (total + 1, same + pair.same)
    return EntityReport(len(asked), missing, tuple(scores), dict(kinds))


def _entity(memory: Memory, wanted: Labelled) -> str | None:
    """The key of the entity that a mention is of; None if the store has no such mention."""
    try:
        indexed = memory.inspect(wanted.document)
    except DocumentNotFound:
        return None
    mentions = [mention for one in indexed.extractions for mention in one.mentions]
    there = [m.key for m in mentions if (m.field, m.start, m.name) == (wanted.field, wanted.start, wanted.name)]
    named = [m.key for m in mentions if name_key(m.name) == name_key(wanted.name)]
    return next(iter([*there, *named]), None)


def _scored(name: str, said: Sequence[tuple[bool, bool]]) -> Scored:
    counts = {both: said.count(both) for both in ((True, True), (True, False), (False, True), (False, False))}
    return Scored(name, counts[True, True], counts[True, False], counts[False, True], counts[False, False])


class _Union:
    """Keys that are joined."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def root(self, key: str) -> str:
        """The key that stands for all joined with this one."""
        while self._parent.setdefault(key, key) != key:
            self._parent[key] = self._parent[self._parent[key]]
            key = self._parent[key]
        return key

    def join(self, one: str, other: str) -> None:
        """From now on these are one."""
        self._parent[self.root(one)] = self.root(other)
