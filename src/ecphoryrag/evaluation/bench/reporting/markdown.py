"""The report as Markdown: every table, and every plot as the table of its numbers."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from ecphoryrag.evaluation.bench.reporting.parts import Cell, Grid, Item, Part, Plot

_SPECIAL = re.compile(r"([\\`*_\[\]|])")


def document(title: str, lead: Sequence[str], runs: Sequence[tuple[str, Sequence[Part]]]) -> str:
    """The whole text, line end included; ``lead`` is Markdown already."""
    blocks = [f"# {escaped(title)}", *lead]
    for name, parts in runs:
        if len(runs) > 1:
            blocks.append(f"## {escaped(name)}")
        level = "###" if len(runs) > 1 else "##"
        for part in parts:
            blocks.append(f"{level} {escaped(part.title)}")
            blocks += [_item(item) for item in part.items]
    return "\n\n".join(blocks) + "\n"


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
