"""Searching files byte by byte, in a process of its own.

    python -m ecphoryrag.store.raw_bytes < request > reply

The request is JSON: ``files`` (paths) and ``needles`` (Base64). The reply gives for each file its size and the numbers
of the needles that are in it, or why it cannot be read. A process of its own, since closing a file drops all the locks
that a process has on it, and the store is open in the one that asks.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ecphoryrag.errors import StoreError

BLOCK = 8 * 2**20
"""Bytes searched at once."""
SHORTEST = 4
"""Bytes of the shortest needle."""
_BITS = 18
_FACTOR = 2654435761
"""Knuth's multiplicative hash of four bytes."""
PATIENCE = 3600.0
"""Seconds after which a search counts as hung."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search found in a file."""

    path: Path
    bytes: int
    found: tuple[int, ...]
    """Numbers of the needles that are in it."""
    error: str | None = None
    """Why it could not be read."""


def search(files: Sequence[Path], needles: Sequence[bytes]) -> list[Searched]:
    """Which of the needles, each of at least ``SHORTEST`` bytes, are in which file. Files that are gone are left out.

    Raises StoreError if the search itself fails.
    """
    request = {
        "files": [str(file.absolute()) for file in files],
        "needles": [base64.b64encode(needle).decode("ascii") for needle in needles],
    }
    words = [sys.executable, "-m", __name__]
    try:
        ran = subprocess.run(  # noqa: S603 - our own module
            words, input=json.dumps(request), capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        reply = json.loads(ran.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise StoreError(
            f"The files could not be searched for what was erased ({error}): the documents are forgotten, but the "
            "erasure is not finished; run `ecphory forget --erase` again."
        ) from error
    return [Searched(Path(path), size, tuple(found), why) for path, size, found, why in reply]


ByStart: TypeAlias = dict[bytes, dict[int, dict[bytes, list[int]]]]
"""Numbers of needles by their first four bytes, their length and themselves: thousands may begin alike."""


def found_in(data: bytes, needles: ByStart, table: np.ndarray) -> set[int]:
    """Numbers of the needles that are in the data; ``table`` is of the hashes of their first four bytes."""
    found: set[int] = set()
    for shift in range(SHORTEST):
        words = np.frombuffer(data, "<u4", count=max(len(data) - shift, 0) // 4, offset=min(shift, len(data)))
        places = np.flatnonzero(table[_hashes(words)]) * 4 + shift
        for place in places.tolist():
            for length, alike in needles.get(data[place : place + SHORTEST], {}).items():
                found.update(alike.get(data[place : place + length], ()))
    return found


def _hashes(words: np.ndarray) -> np.ndarray:
    product = words.astype(np.uint32) * np.uint32(_FACTOR)
    shifted: np.ndarray = product >> np.uint32(32 - _BITS)
    return shifted


def prepared(needles: Sequence[bytes]) -> tuple[ByStart, np.ndarray]:
    """The needles as :func:`found_in` wants them."""
    by_start: ByStart = {}
    for number, needle in enumerate(needles):
        by_start.setdefault(needle[:SHORTEST], {}).setdefault(len(needle), {}).setdefault(needle, []).append(number)
    table = np.zeros(2**_BITS, np.bool_)
    table[_hashes(np.frombuffer(b"".join(by_start), "<u4"))] = True
    return by_start, table


def _search_file(path: str, needles: Sequence[bytes]) -> tuple[int, list[int], str | None] | None:
    by_start, table = prepared(needles)
    longest = max(map(len, needles), default=SHORTEST)
    size, found, before = 0, set[int](), b""
    try:
        with Path(path).open("rb") as file:
            while block := file.read(BLOCK):
                size += len(block)
                found |= found_in(before + block, by_start, table)
                before = (before + block)[-(longest - 1) :]
    except FileNotFoundError:
        return None
    except OSError as error:
        return size, sorted(found), error.strerror or str(error)
    return size, sorted(found), None


def main() -> None:
    """See the module."""
    request = json.load(sys.stdin)
    needles = [base64.b64decode(needle) for needle in request["needles"]]
    searched = [(path, _search_file(path, needles)) for path in request["files"]]
    json.dump([(path, *found) for path, found in searched if found is not None], sys.stdout)


if __name__ == "__main__":
    main()
