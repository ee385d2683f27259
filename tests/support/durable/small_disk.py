"""A store on a disk that fills up while documents are added, and gets room again.

    python -m tests.support.durable.small_disk FOLDER

runs the ordeal on the file system at this folder, which is 2 MB large and can be mounted anew, and writes what came of
it as JSON.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from ecphoryrag.errors import EcphoryError, StoreError
from tests.support.durable.disk import Plan, installed
from tests.support.durable.hatchery import ROOT
from tests.support.durable.kills import wrong
from tests.support.durable.story import document, exported, opened, rankings

SIZE = "2m"
DOCUMENTS = 400
"""More than 2 MB can hold."""


@dataclass(frozen=True, slots=True)
class Filled:
    """What came of it."""

    kept: int
    """Documents that were there when the disk was full."""
    error: str
    note: str
    backup_error: str
    left: list[str]
    """Files of the backup that failed."""
    asked: bool
    """Whether questions were answered while the disk was full, also by who opened the store then."""
    done: int
    """Documents in the end."""
    sound: bool


def fill(folder: Path, make_room: Callable[[], None]) -> Filled:
    """Add documents until the disk is full, read, make room, and add the rest."""
    path = folder / "s.ecphory"
    documents = [document(f"doc{at}", 1) for at in range(DOCUMENTS)]
    with opened(path) as memory:
        with pytest.raises(StoreError) as caught:
            memory.add(documents)
        kept = len(memory.documents())
        asked = bool(list(rankings(memory)))
        with opened(path) as other:
            asked = asked and len(other.documents()) == kept and bool(list(rankings(other)))
        backup_error = ""
        try:
            memory.backup(folder / "copy")
        except EcphoryError as error:
            backup_error = str(error)
        left = [file.name for file in folder.iterdir() if file.name.startswith("copy")]
        make_room()
        memory.add(documents)
    with opened(path) as memory:
        done = len(exported(memory))
    notes = "".join(getattr(caught.value, "__notes__", []))
    return Filled(kept, str(caught.value), notes, backup_error, left, asked, done, not wrong(path))


def fill_mounted(folder: Path) -> Filled | None:
    """On a real file system of 2 MB; None if this machine does not let us mount one.

    It is mounted in a name space of its own, which ends with the process.
    """
    if shutil.which("unshare") is None:
        return None
    folder.mkdir()
    script = f'mount -t tmpfs -o size={SIZE} tmpfs "$1" || exit 77; exec "$2" -m {__name__} "$1"'
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(folder), sys.executable]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if ended.returncode == 77 or "unshare" in ended.stderr.partition("\n")[0]:
        return None
    assert ended.returncode == 0, ended.stderr
    return Filled(**json.loads(ended.stdout))


def fill_limited(folder: Path) -> Filled:
    """On a disk that lets SQLite take 2 MB and no more; what is no SQLite's is not limited."""
    folder.mkdir()
    with installed(Plan(room=2 << 20)) as plan:
        return fill(folder, plan.mend)


def main() -> None:
    """See the module."""
    folder = Path(sys.argv[1])
    room = ["mount", "-o", "remount,size=64m", str(folder)]

    def make_room() -> None:
        subprocess.run(room, check=True)

    filled = fill(folder, make_room)
    sys.stdout.write(json.dumps(asdict(filled)))


if __name__ == "__main__":
    main()
