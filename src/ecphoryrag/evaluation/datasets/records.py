"""Reading JSON that others wrote: every complaint names the file and the record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ecphoryrag.errors import InputError
from ecphoryrag.types import JsonValue

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Record:
    """A JSON object of a file, with where it stands."""

    values: Mapping[str, JsonValue]
    where: str
    """File and position, for messages."""

    def text(self, name: str) -> str:
        """The field, text that is not blank. Raises InputError."""
        value = self.values.get(name)
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(f"`{name}` must be text that is not blank; found {_shown(value)}")
        return value

    def first_text(self, *names: str) -> str:
        """The first of these fields that is there. Raises InputError if it is not text, or none is there."""
        for name in names:
            if name in self.values:
                return self.text(name)
        raise self.wrong(f"there is none of {', '.join(f'`{name}`' for name in names)}")

    def optional_text(self, name: str) -> str:
        """The field, or "" if it is absent, null or blank. Raises InputError if it is anything but text."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(f"`{name}` must be text; found {_shown(value)}")
        return value or ""

    def texts(self, name: str) -> list[str]:
        """The field, a list of texts; blank ones are left out. Raises InputError."""
        items = self.items(name)
        if not all(isinstance(item, str) for item in items):
            raise self.wrong(f"`{name}` must be a list of texts; found {_shown(self.values.get(name))}")
        return [item for item in items if isinstance(item, str) and item.strip()]

    def items(self, name: str) -> list[JsonValue]:
        """The field, a list. Raises InputError."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.wrong(f"`{name}` must be a list; found {_shown(value)}")
        return value

    def records(self, name: str) -> list[Record]:
        """The field, a list of objects. Raises InputError."""
        found = []
        for number, item in enumerate(self.items(name), 1):
            if not isinstance(item, dict):
                raise self.wrong(f"item {number} of `{name}` must be an object; found {_shown(item)}")
            found.append(Record(item, f"{self.where}, item {number} of `{name}`"))
        return found

    def pairs(self, name: str, read: Callable[[JsonValue], T | None], shape: str) -> list[tuple[str, T]]:
        """The field, a list of ``[text, second]`` where ``read`` takes the second, or gives None if it is malformed."""
        found = []
        for number, item in enumerate(self.items(name), 1):
            if isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
                second = read(item[1])
                if second is not None:
                    found.append((item[0], second))
                    continue
            raise self.wrong(f"item {number} of `{name}` must be {shape}; found {_shown(item)}")
        return found

    def wrong(self, what: str) -> InputError:
        """An error about this record."""
        return InputError(f"{self.where}: {what}")


def sentences(value: JsonValue) -> list[str] | None:
    """A list of texts, or None if it is something else."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [item for item in value if isinstance(item, str)]
    return None


def whole_number(value: JsonValue) -> int | None:
    """A whole number, or None if it is something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def json_list(path: Path) -> Iterator[Record]:
    """The objects of a file that is one JSON list. Raises InputError."""
    text = _read(path)
    try:
        content = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        hint = "; it looks like JSON Lines, which this format is not" if text.lstrip().startswith("{") else ""
        raise InputError(f"{path}: not valid JSON ({error}){hint}; is the download complete?") from error
    if not isinstance(content, list):
        raise InputError(f"{path}: expected one JSON list of records, found {type(content).__name__}")
    for number, value in enumerate(content, 1):
        yield _record(value, path, f"record {number}")


def json_lines(path: Path) -> Iterator[Record]:
    """The objects of a file of JSON Lines; blank lines are passed over. Raises InputError."""
    for number, line in enumerate(_read(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: not valid JSON ({error}); is the download complete?") from error
        yield _record(value, path, f"line {number}")


def _record(value: JsonValue, path: Path, position: str) -> Record:
    if not isinstance(value, dict):
        raise InputError(f"{path}, {position}: expected a JSON object, found {_shown(value)}")
    identity = value.get("_id", value.get("id"))
    named = f" (id {identity})" if isinstance(identity, str) else ""
    return Record(value, f"{path}, {position}{named}")


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error


def _shown(value: JsonValue) -> str:
    shown = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:57] + "..."
