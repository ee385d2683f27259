"""A process that tells a story to a memory, and dies of it.

    python -m tests.support.durable.worker "ORDER.json"

does what the order says, so that any kill at a counted write can be done again by hand.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.support.durable.disk import Death, Plan, die, installed
from tests.support.durable.story import DIMENSIONS, Step, opened, tell

ACKNOWLEDGED = "acknowledged"
FAILED = "failed"
OPENED = -2
"""Acknowledged when the memory is open."""
END = -1
"""Acknowledged when the story is told and the memory closed."""
_CHANGING = frozenset({"os.rename", "os.link", "os.remove", "os.mkdir", "os.truncate"})


def write_order(file: Path, steps: Sequence[Step], start: int, at: int = 0, death: Death = "before") -> None:
    """Write down what a worker is to do in the file's folder: tell these steps from this one on.

    At the count ``at`` of writes, syncs, openings, removals and renamings it kills itself; with 0 others must.
    """
    listed = [asdict(step) | {"versions": dict(step.versions)} for step in steps]
    file.write_text(json.dumps({"steps": listed, "start": start, "at": at, "death": death}))


def acknowledged(folder: Path) -> list[int]:
    """The numbers of the steps that were done, in order, and ``OPENED`` before those of each worker that opened it."""
    file = folder / ACKNOWLEDGED
    # What has no end of line was being written when the worker was killed: nobody was told of it.
    return [int(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def work(order: str) -> None:
    """Tell the story as the order in this file says; never returns if it dies."""
    folder = Path(order).parent
    given = json.loads(Path(order).read_text())
    steps = [Step(**one) for one in given["steps"]]
    plan = Plan(at=given["at"], death=given["death"])
    sys.addaudithook(watcher(plan, folder))
    try:
        with installed(plan):
            _tell_all(folder, steps, given["start"])
    except BaseException:
        (folder / FAILED).write_text(traceback.format_exc())
        raise


def watcher(plan: Plan, folder: Path) -> Any:
    """Counts what is done to files otherwise than by SQLite: caches and copies that are made, renamed and removed."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if not isinstance(flags, int) or not flags & (os.O_CREAT | os.O_TRUNC):
                return
        elif event in _CHANGING:
            name = arguments[0]
        else:
            return
        if isinstance(name, str) and name.startswith(f"{folder}{os.sep}s.ecphory") and plan.next("open", "beside"):
            die()

    return watch


def _tell_all(folder: Path, steps: list[Step], start: int) -> None:
    with (folder / ACKNOWLEDGED).open("a") as told:
        path = folder / "s.ecphory"
        memory = opened(path, DIMENSIONS[0])
        _acknowledge(told, OPENED)
        try:
            for step in steps[start:]:
                if step.kind == "reopen":
                    memory.close()
                    memory = opened(path, DIMENSIONS[0])
                else:
                    tell(memory, step, folder)
                _acknowledge(told, step.number)
        finally:
            memory.close()
        _acknowledge(told, END)


def _acknowledge(told: Any, number: int) -> None:
    told.write(f"{number}\n")
    told.flush()
    os.fsync(told.fileno())


def main() -> None:
    """See the module."""
    work(sys.argv[1])


if __name__ == "__main__":
    main()
