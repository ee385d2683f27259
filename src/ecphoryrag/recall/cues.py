"""Cues: the entities that a question names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.snapshot import Snapshot
from ecphoryrag.text.keys import is_linkable, normal_words

LONGEST_NAME = 16
"""Words of the longest name looked for: few titles are longer, in scripts whose every sign counts as a word too."""


@dataclass(frozen=True, slots=True)
class FoundCue:
    """A known name in the question, ``question[start:end]``, and the entity it names, aliases of it behind."""

    start: int | None
    """None for a name that a language model read out of the question."""
    end: int | None
    entities: tuple[int, ...]
    frequency: int
    """Documents that mention the entity, or chunks that hold the rarest of its words, whichever are more: "built" is
    the name of few things and a word of many texts, and tells little."""
    share: float = 1.0
    """What it weighs beside a cue that stands in the question."""
    told: str | None = None
    """The words of the language model that are this name."""


@dataclass(frozen=True, slots=True)
class CueRule:
    """Which names are too short or too common to be cues unless written as names."""

    positions: Mapping[str, int]
    """Entity key to position."""
    frequency: NDArray[np.int64]
    """(m,) documents that mention the entity."""
    held_by: Callable[[str], int]
    """How many chunks hold the rarest word of a part of the question."""
    mentioned: NDArray[np.bool_]
    """(m,) whether any chunk that may be recalled mentions it."""
    common: float
    """More documents than this make a name of one word common."""
    namesakes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Key to all entities that bear the name, where splits made several: a question that says it may mean any."""


@dataclass(frozen=True, slots=True)
class ToldNames:
    """Names that a language model read out of the question, and what they weigh beside those that stand in it."""

    names: tuple[str, ...] = ()
    share: float = 1.0


def find_cues(question: str, rule: CueRule, aliases: NDArray[np.int32], *, is_name: bool = False) -> list[FoundCue]:
    """The known names in the question, longest first, none overlapping, in the order of the question.

    ``aliases`` are the (a, 2) pairs of entities that are one thing. ``is_name``: the text is a name, not a sentence
    whose first word is capital whatever it means.
    """
    words = normal_words(question)
    taken = [False] * len(words)
    found: list[FoundCue] = []
    for length in range(min(LONGEST_NAME, len(words)), 0, -1):
        for at in range(len(words) - length + 1):
            if any(taken[at : at + length]):
                continue
            start, end = words[at].start, words[at + length - 1].end
            key = " ".join(word.norm for word in words[at : at + length])
            entity = rule.positions.get(key)
            if entity is None or not rule.mentioned[entity]:
                continue
            frequency = max(int(rule.frequency[entity]), rule.held_by(question[start:end]))
            as_name = _as_name(question, start, end, is_name=is_name)
            if not as_name and not _tells(key, common=frequency > rule.common):
                continue
            taken[at : at + length] = [True] * length
            others = [*aliases_of(entity, aliases), *(one for one in rule.namesakes.get(key, ()) if one != entity)]
            same = [other for other in others if rule.mentioned[other]]
            found.append(FoundCue(start, end, (entity, *same), frequency))
    return sorted(found, key=lambda cue: cue.start or 0)


def namesakes(snapshot: Snapshot) -> dict[str, list[int]]:
    """By key the entities that bear its name, where decisions about names have changed what does."""
    found: dict[str, list[int]] = {}
    for entity, names in sorted(snapshot.names.items()):
        for name in names:
            found.setdefault(name, []).append(entity)
    return found


def add_named(
    question: str, found: Sequence[FoundCue], told: ToldNames, rule: CueRule, aliases: NDArray[np.int32]
) -> list[FoundCue]:
    """The cues ``found`` in the question, and behind them those in the names that a language model read out of it.

    A model's name is matched as the question's own are. One that stands in the question was matched there already
    (``Director``, for "the director", is no name), and what is a cue already, by whatever name, is not one again.
    """
    cues = list(found)
    known = {entity for cue in found for entity in cue.entities}
    asked = _running(question)
    for name in told.names:
        if _running(name) in asked:
            continue
        for cue in find_cues(name, rule, aliases, is_name=True):
            if known.isdisjoint(cue.entities):
                cues.append(replace(cue, start=None, end=None, share=told.share, told=name[cue.start : cue.end]))
                known.update(cue.entities)
    return cues


def _running(text: str) -> str:
    return f" {' '.join(word.norm for word in normal_words(text))} "


def aliases_of(entity: int, pairs: NDArray[np.int32]) -> list[int]:
    """The other entity of each of the (a, 2) pairs that hold this one."""
    return [*pairs[pairs[:, 0] == entity, 1].tolist(), *pairs[pairs[:, 1] == entity, 0].tolist()]


def _as_name(question: str, start: int, end: int, *, is_name: bool) -> bool:
    """Whether these words are written as a name. The question's first word is capital whatever it means."""
    written = any(sign.isupper() or sign.isdigit() for sign in question[start:end])
    return written and (is_name or bool(question[:start].strip()))


def _tells(key: str, *, common: bool) -> bool:
    """Whether words that are not written as a name are likely meant as one."""
    return is_linkable(key) and (" " in key or not common)
