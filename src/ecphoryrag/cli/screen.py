"""Lines for people: styled and wrapped at a terminal, plain and whole everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ecphoryrag.cli.unseen import one_line, visible

__all__ = ["Branch", "PlainScreen", "Screen", "TerminalScreen", "one_line", "standard_output", "visible"]


@dataclass(frozen=True, slots=True)
class Branch:
    """A node of a tree and what hangs on it."""

    label: str
    below: tuple[Branch, ...] = ()


class Screen(Protocol):
    """Where lines go."""

    def line(self, text: str = "", style: str = "") -> None:
        """A line, or lines; styles are those of rich."""
        ...

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows with one cell a column."""
        ...

    def tree(self, root: Branch) -> None:
        """A tree, drawn with lines."""
        ...


class PlainScreen:
    """For pipes and files: no colours, no wrapping, tables as values between tabs without a header."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str = "", style: str = "") -> None:
        """The line as it is."""
        del style
        self._stream.write(visible(text) + "\n")

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """One row a line."""
        del header
        for row in rows:
            self._stream.write("\t".join(one_line(cell) for cell in row) + "\n")

    def tree(self, root: Branch) -> None:
        """One node a line."""
        for line in _drawn(root):
            self.line(line)


class TerminalScreen:
    """For a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._console = Console(file=stream, highlight=False)

    def line(self, text: str = "", style: str = "") -> None:
        """The line, wrapped to the terminal's width."""
        self._console.print(Text(visible(text), style=style))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """With a header and columns that fit the width."""
        table = Table(box=None, pad_edge=False)
        for name in header:
            table.add_column(name, overflow="fold")
        for row in rows:
            table.add_row(*(Text(one_line(cell)) for cell in row))
        self._console.print(table)

    def tree(self, root: Branch) -> None:
        """Wrapped under its own branch."""
        self._console.print(_rich_tree(root))


def standard_output() -> Screen:
    """The screen of standard output, by what it is."""
    return TerminalScreen(sys.stdout) if sys.stdout.isatty() else PlainScreen(sys.stdout)


def _drawn(root: Branch, before: str = "") -> Iterator[str]:
    yield before + one_line(root.label)
    stem = before.replace("├── ", "│   ").replace("└── ", "    ")
    for number, branch in enumerate(root.below, start=1):
        yield from _drawn(branch, stem + ("└── " if number == len(root.below) else "├── "))


def _rich_tree(root: Branch) -> Tree:
    tree = Tree(Text(one_line(root.label)))
    pending = [(tree, root)]
    while pending:
        at, branch = pending.pop()
        pending.extend((at.add(Text(one_line(below.label))), below) for below in branch.below)
    return tree
