"""The report as Markdown: every table, and every plot as the table of its numbers."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from ecphoryrag.evaluation.bench.reporting.parts import Cell, Grid, Item, Part, Plot

_SPECIAL = re.compile(r"([\\`*_\[\]|])")


def document(title: str, lead: Sequence[str], shown: Sequence[tuple[str, Sequence[Part]]]) -> str:
    """The whole text, line end included; ``lead`` is Markdown already."""
    return "\n\n".join([f"# {escaped(title)}", *lead, *runs(shown, named=len(shown) > 1)]) + "\n"


def runs(shown: Sequence[tuple[str, Sequence[Part]]], *, named: bool) -> list[str]:
    """The blocks of all runs; ``named``: each under its name."""
    blocks = []
    level = "###" if named else "##"
    for name, parts in shown:
        if named:
            blocks.append(f"## {escaped(name)}")
        for part in parts:
            blocks.append(f"{level} {escaped(part.title)}")
            blocks += [_item(item) for item in part.items]
    return blocks


def escaped(text: str) -> str:
    """One line of text that stands for itself, whatever is in it."""
    return _SPECIAL.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))


def _item(item: Item) -> str:
    if isinstance(item, str):
        return escaped(item)
    if isinstance(item, Plot):
        return f"{escaped(item.caption)}\n\n{_grid(item.grid)}"
    return _grid(item)


def _grid(grid: Grid) -> str:
    lines = [
        "| " + " | ".join(map(escaped, grid.header)) + " |",
        "| " + " | ".join(["---", *["---:"] * (len(grid.header) - 1)]) + " |",
        *("| " + " | ".join(map(_cell, row)) + " |" for row in grid.rows),
    ]
    return f"{escaped(grid.caption)}\n\n" + "\n".join(lines)


def _cell(cell: Cell) -> str:
    text = escaped(cell.text)
    return {"best": f"**{text}**", "second": f"<u>{text}</u>"}.get(cell.mark, text)
