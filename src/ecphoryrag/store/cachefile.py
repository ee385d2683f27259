"""Files beside a store that only save time: arrays and string tables in safetensors format, stamped and checked.

A file is used only if its stamp is the one asked for and its checksum holds; otherwise it counts as absent.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import itertools
import json
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from ecphoryrag.errors import StoreError

_LONGEST_HEADER = 1 << 16
"""Bytes; those of our files have some thousands."""
Arrays = dict[str, NDArray[Any]]


def write_cache(path: Path, stamp: str, arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Replace the file in one step; False if its folder or the disk does not allow it, which costs only time."""
    packed = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    data = save(packed, {"stamp": stamp, "checksum": _checksum(stamp, packed)})
    try:
        handle, name = tempfile.mkstemp(prefix=path.name + ".", suffix=".tmp", dir=path.parent)
    except OSError:
        return False
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except OSError:
        return False
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    return True


def remove_cache(path: Path) -> None:
    """Remove the file, and what killed writers left of it; one that is being written now will fail harmlessly.

    Raises StoreError if it is there and cannot be removed, for it may hold what was to be forgotten.
    """
    for file in (path, *path.parent.glob(f"{glob.escape(path.name)}.*.tmp")):
        if file.is_dir() and not file.is_symlink():
            continue  # somebody else's: no cache of ours is a folder
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"The cache {file} cannot be removed ({error.strerror}), and may still hold what was forgotten: "
                "remove it yourself."
            ) from error


def read_cache(path: Path, stamp: str) -> Arrays | None:
    """The arrays (read-only), or None if the file is absent, of another stamp, or damaged."""
    try:
        data = _bytes(path)
    except OSError:
        return None
    try:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])["__metadata__"]
        if header["stamp"] != stamp:
            return None
        arrays: Arrays = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return arrays if header.get("checksum") == _checksum(stamp, arrays) else None


def peeked_stamp(path: Path) -> str | None:
    """The stamp that the file says it has, read without the rest of it and not checked; None if there is none."""
    try:
        data = _bytes(path, _LONGEST_HEADER)
        size = int.from_bytes(data[:8], "little")
        stamp = json.loads(data[8 : 8 + size])["__metadata__"]["stamp"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return stamp if isinstance(stamp, str) else None


def kept_stamp(path: Path) -> str | None:
    """The stamp of the file, if its checksum holds; None if it is damaged. Raises OSError if it cannot be read."""
    data = _bytes(path)
    try:
        size = int.from_bytes(data[:8], "little")
        stamp = json.loads(data[8 : 8 + size])["__metadata__"]["stamp"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return stamp if isinstance(stamp, str) and read_cache(path, stamp) is not None else None


def _bytes(path: Path, most: int = -1) -> bytes:
    """All of the file, or ``most`` bytes; of no pipe, which would be waited for, and of no device. Raises OSError."""
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "no file", str(path))
    with path.open("rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise FileNotFoundError(errno.ENOENT, "no file", str(path))
        return file.read(most)


def _checksum(stamp: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    digest = hashlib.blake2b(stamp.encode("utf-8"), digest_size=32)
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()


def pack_strings(strings: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """UTF-8 of all strings in a row, and (n + 1,) offsets in characters."""
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return np.frombuffer("".join(strings).encode("utf-8"), np.uint8), offsets


def unpack_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[str]:
    """The strings again."""
    text = data.tobytes().decode("utf-8")
    bounds = offsets.tolist()
    return [text[start:stop] for start, stop in itertools.pairwise(bounds)]
