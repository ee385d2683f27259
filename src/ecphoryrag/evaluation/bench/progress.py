"""How far a run is, and how long it will still take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class BenchProgress:
    """Told at every step."""

    cell: str
    """Data set, encoder and label."""
    doing: str
    """``ask``, or what the method is doing to index."""
    done: int
    """Of this cell's questions, or of what is done to index."""
    total: int | None
    asked: int
    """Questions that have a row, of the whole run."""
    questions: int
    """Of the whole run."""
    seconds_left: float | None
    """For the questions that have no row; None while none was asked. Indexing is not in it."""


Tell: TypeAlias = Callable[[BenchProgress], None]


class Pace:
    """Seconds a question, by label, from the rows so far; of a label without rows, the mean of all."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._asked: dict[str, int] = {}

    def add(self, label: str, seconds: float) -> None:
        """A question of this label took so long."""
        self._seconds[label] = self._seconds.get(label, 0.0) + seconds
        self._asked[label] = self._asked.get(label, 0) + 1

    def left(self, questions: Mapping[str, int]) -> float | None:
        """Seconds for so many questions of each label."""
        asked = sum(self._asked.values())
        if not asked:
            return None
        mean = sum(self._seconds.values()) / asked
        return sum(
            count * (self._seconds[label] / self._asked[label] if label in self._asked else mean)
            for label, count in questions.items()
        )
