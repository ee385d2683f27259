"""One process writes a run at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ecphoryrag.errors import InputError

LOCK = ".lock"


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Holds the run's folder, which is made if need be. Raises InputError if another process holds it.

    The lock is the system's own on an open file, so it ends with its process, however that ends.
    """
    run.mkdir(parents=True, exist_ok=True)
    with (run / LOCK).open("ab") as file:
        if not _try_lock(file):
            raise InputError(f"another process is writing the run {run}; wait for it, or name another folder")
        yield


def _try_lock(file: IO[bytes]) -> bool:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - only there

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
