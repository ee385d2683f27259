"""Copies of a store that are made before it is brought up to date, so that nothing depends on a migration being right.

``x.ecphory.format-3`` is the store ``x.ecphory`` as it was in format 3; if a file of that name is there with another
content, which is never touched, ``x.ecphory.format-3.2`` is, and so on.
"""

from __future__ import annotations

import filecmp
import glob
import itertools
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw

from ecphoryrag.errors import StoreError
from ecphoryrag.store.connections import beside
from ecphoryrag.store.copying import UNFINISHED, copy_store, make_as_private, put_new, remove_unfinished, unfinished
from ecphoryrag.types import Failure

FORMER = ".format-"
"""What is added to the store's name, with the number of the format, for the copy."""
_NAMES = re.compile(r"\d+(\.\d+)?(\.[0-9a-f]{8}\.tmp)?(-wal|-journal|-shm)?")
"""What follows in the names of copies, of copies that are not finished, and of what SQLite keeps beside them."""
MARGIN = 2**20
"""Bytes that are left free for the migration itself."""
_DISK = (OSError, apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError)
"""How a disk says that a copy cannot be made."""


def keep_former(path: Path, found: int) -> Path:
    """Copy the store, which is of format ``found``; where the copy is, which is on the disk then.

    Whoever calls holds the store's write lock, so that nothing changes meanwhile and nobody else makes a copy. One that
    is there with the same content, since a process was killed after it had made it, is taken for it. Raises StoreError
    if there is no room or the folder cannot be written, with nothing changed.
    """
    temporary = unfinished(_former(path, found, 1))
    try:
        for left in _beside(path):
            if UNFINISHED in left.name:  # of a process that was killed
                left.unlink(missing_ok=True)
        _check_room(path)
        make_as_private(temporary, path)
        try:
            copy_store(path, temporary, any_format=True)
            kept = _name(temporary, path, found)
        finally:
            remove_unfinished(temporary)
        _sync_folder(kept.parent)
    except _DISK as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise StoreError(
            f"The store {path} is of format {found} and must be brought up to date to be written to, but a copy of it "
            f"cannot be made first: {why}. Nothing was changed: free space beside it, or check the permissions of its "
            "folder, and try again."
        ) from error
    return kept


def formers(path: Path) -> list[Path]:
    """The copies of this store that lie beside it."""
    return [file for file in _beside(path) if _is_copy(path, file)]


def is_former(path: Path, file: Path) -> bool:
    """Whether the file's name is that of such a copy of the store, of an unfinished one, or of its log."""
    rest = file.name.removeprefix(path.name)
    return rest != file.name and rest.startswith(FORMER) and bool(_NAMES.fullmatch(rest, len(FORMER)))


def remove_formers(path: Path) -> list[Failure]:
    """Remove them all, with what is left of the making of others; those that cannot be removed, and why."""
    failures: list[Failure] = []
    for file in _beside(path):
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            what = "it is a copy of the store from before it was brought up to date, and could not be removed"
            failures.append(Failure(str(file), f"{what} ({error.strerror}): remove it yourself, and erase again"))
    return failures


def _former(path: Path, found: int, number: int) -> Path:
    return beside(path, f"{FORMER}{found}" + (f".{number}" if number > 1 else ""))


def _beside(path: Path) -> Iterator[Path]:
    for file in sorted(path.parent.glob(f"{glob.escape(path.name)}{FORMER}*")):
        if is_former(path, file) and (file.is_symlink() or not file.is_dir()):
            yield file


def _is_copy(path: Path, file: Path) -> bool:
    rest = file.name[len(path.name) + len(FORMER) :]
    return rest.replace(".", "", 1).isdecimal()


def _check_room(path: Path) -> None:
    wanted = sum(file.stat().st_size for file in (path, beside(path, "-wal")) if file.exists())
    free = shutil.disk_usage(path.absolute().parent).free
    if free < wanted + MARGIN:
        raise OSError(None, f"it needs {wanted + MARGIN} bytes, and {free} are free")


def _name(temporary: Path, path: Path, found: int) -> Path:
    """Give the copy the first name that is free, unless one of those that are not holds the same."""
    for number in itertools.count(1):
        target = _former(path, found, number)
        if target.is_file() and filecmp.cmp(temporary, target, shallow=False):
            return target
        with suppress(FileExistsError):
            put_new(temporary, target)
            return target
    raise AssertionError("counted to the end")


def _sync_folder(folder: Path) -> None:
    """Let the copy's name be on the disk too, where a folder can be opened."""
    with suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
