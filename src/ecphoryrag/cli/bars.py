"""Progress on standard error, shown only where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ecphoryrag.cli.screen import one_line

if TYPE_CHECKING:
    from ecphoryrag.indexing.progress import Progress, ProgressCallback

_LONGEST_NAME = 40
_WORDS = {"load": "reading", "extract": "finding names", "encode": "encoding", "commit": "storing"}


@contextmanager
def bar(unit: str = "documents") -> Iterator[Callable[[str, int, int | None], None] | None]:
    """A function to call with what is being done, how many are done, and of how many; None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich_progress  # noqa: PLC0415 - only where a bar is shown
    from rich.console import Console  # noqa: PLC0415

    count = rich_progress.DownloadColumn() if unit == "bytes" else rich_progress.MofNCompleteColumn()
    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(),
        count,
        rich_progress.TimeElapsedColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(file=sys.stderr), transient=True) as shown:
        task = shown.add_task("", total=None)

        def tell(what: str, done: int, total: int | None) -> None:
            shown.update(task, description=what, completed=done, total=total)

        yield tell


@contextmanager
def adding(unit: str = "documents") -> Iterator[ProgressCallback | None]:
    """The bar of documents, or chunks, being worked on."""
    with bar(unit) as tell:
        if tell is None:
            yield None
            return

        def show(progress: Progress) -> None:
            name = one_line(progress.current or "")
            short = name if len(name) <= _LONGEST_NAME else "…" + name[-_LONGEST_NAME:]
            tell(f"{_WORDS[progress.stage]} {short}".rstrip(), progress.done, progress.total)

        yield show
