"""What a method keeps in its folder: an index with the digest of what it was made of, and a journal of paid work.

Files are written under another name and moved into place, so that a killed run leaves the old file or the new one. The
journal is appended to line by line; a last line that was cut off is left out and done again.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecphoryrag.evaluation.baselines.port import Clock, Indexed
from ecphoryrag.types import JsonValue, Usage

Arrays = Mapping[str, NDArray[Any]]
_REPORT, _ARRAYS, _JOURNAL = "index.json", "index.npz", "journal.jsonl"


def digest(parts: Sequence[JsonValue]) -> str:
    """Hexadecimal BLAKE2b-128 of the parts: equal exactly if they are, text with lone surrogates included."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        state.update(json.dumps(part, ensure_ascii=True, sort_keys=True).encode("ascii") + b"\n")
    return state.hexdigest()


def load_index(folder: Path, made_of: str) -> tuple[Indexed, Arrays] | None:
    """The index if it is there, whole, and made of this; otherwise None, and it is to be built."""
    try:
        record = json.loads((folder / _REPORT).read_text("utf-8"))
        if record["made_of"] != made_of:
            return None
        with (folder / _ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = dict(stored)
        if str(arrays.pop("made_of")) != made_of:
            return None
        report = Indexed(Usage(**record["usage"]), record["seconds"], dict(record["figures"]), tuple(record["notes"]))
    except (FileNotFoundError, KeyError, TypeError, ValueError, zipfile.BadZipFile, EOFError):
        return None  # not there, or cut off, or of an earlier version: all of them mean building it
    return report, arrays


def save_index(folder: Path, made_of: str, report: Indexed, arrays: Arrays) -> None:
    """Keep the index; the arrays first, as the report says that they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{_ARRAYS}.new.npz"
    np.savez(draft, allow_pickle=False, **{**arrays, "made_of": np.array(made_of)})
    draft.replace(folder / _ARRAYS)
    record = {
        "made_of": made_of,
        "usage": asdict(report.usage),
        "seconds": report.seconds,
        "figures": dict(report.figures),
        "notes": list(report.notes),
    }
    text = folder / f"{_REPORT}.new"
    text.write_text(json.dumps(record, ensure_ascii=True, indent=1), "utf-8")
    text.replace(folder / _REPORT)


class Journal:
    """Results of calls that were paid for, by key, each with what it cost; on disk as soon as it is added."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        """``clock`` is told of the seconds that a result, when it is found, had taken."""
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / _JOURNAL
        self._clock = clock
        self._kept: dict[str, tuple[JsonValue, Usage]] = {}
        whole = 0
        for line in self._lines():
            try:
                record = json.loads(line)
                self._kept[record["key"]] = record["value"], Usage(**record["usage"])
            except (ValueError, KeyError, TypeError):
                break
            whole += len(line)
        if self._path.exists() and whole < self._path.stat().st_size:
            with self._path.open("r+b") as file:
                file.truncate(whole)

    def find(self, key: str) -> tuple[JsonValue, Usage] | None:
        """The result under this key and what it cost."""
        found = self._kept.get(key)
        if found is not None:
            self._clock.skip(found[1].seconds)
        return found

    def add(self, key: str, value: JsonValue, usage: Usage) -> None:
        """Keep a result."""
        line = json.dumps({"key": key, "value": value, "usage": asdict(usage)}, ensure_ascii=True) + "\n"
        with self._path.open("ab") as file:
            file.write(line.encode("ascii"))
        self._kept[key] = value, usage

    def _lines(self) -> list[bytes]:
        if not self._path.exists():
            return []
        return [line for line in self._path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
