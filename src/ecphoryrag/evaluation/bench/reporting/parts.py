"""What a report is made of, whatever it is written as: grids of cells, plots, sentences, and single questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ecphoryrag.evaluation.bench.rows import Rows
from ecphoryrag.evaluation.bench.table import TableRow
from ecphoryrag.evaluation.bench.texts import Texts
from ecphoryrag.types import JsonValue

Mark = Literal["", "best", "second"]


@dataclass(frozen=True, slots=True)
class Run:
    """A stored run, read."""

    name: str
    """Of its folder."""
    rows: Rows
    table: tuple[TableRow, ...]
    texts: Texts
    manifest: Mapping[str, JsonValue]
    """Empty if the folder has none."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a grid."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; the first column names the rows."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A point with the half-width of its interval, if it has one."""

    x: float
    y: float
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A line, or a single point."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    most: float = math.inf
    """The greatest value there can be; the least is 0."""
    spread: bool = False
    """The horizontal axis covers orders of magnitude, zero included."""


@dataclass(frozen=True, slots=True)
class Plot:
    """Panels that share their series' colours; ``grid`` holds the same numbers."""

    caption: str
    panels: tuple[Panel, ...]
    grid: Grid

    @property
    def labels(self) -> tuple[str, ...]:
        """Of all series, in the order in which they come."""
        return tuple(dict.fromkeys(series.label for panel in self.panels for series in panel.series))


Item: TypeAlias = Grid | Plot | str
"""A text is a paragraph."""


@dataclass(frozen=True, slots=True)
class Part:
    """Under a heading."""

    title: str
    items: tuple[Item, ...]


def folder_name(run: Path) -> str:
    """The run's name: its folder's, wherever that lies."""
    return run.resolve().name


def groups(rows: Sequence[TableRow]) -> dict[tuple[str, str], list[TableRow]]:
    """By data set and encoder, in the order in which they come."""
    grouped: dict[tuple[str, str], list[TableRow]] = {}
    for row in rows:
        grouped.setdefault((row.dataset, row.encoder), []).append(row)
    return grouped
