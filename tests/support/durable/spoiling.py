"""Caches that are spoiled in every way, and what a memory then brings back."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ecphoryrag.store.cachefile import kept_stamp
from tests.support.durable.kills import caches_of
from tests.support.durable.story import document, opened, rankings


@dataclass(slots=True)
class Spoiled:
    """What was done to the caches, and where it was not noticed."""

    tried: int = 0
    unnoticed: list[str] = field(default_factory=list)


class Spoiler:
    """A store with caches, and an earlier state of it, and another store."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.path = folder / "s.ecphory"
        self._older, self._other = folder / "older", folder / "other"
        with opened(self.path) as memory:
            memory.add([document(f"doc{at}", 1) for at in range(12)])
            list(rankings(memory))
        shutil.copytree(folder, self._older, ignore=shutil.ignore_patterns("older", "other"))
        with opened(self.path) as memory:
            memory.add([document(f"doc{at}", 2) for at in range(3)])
            self.expected: list[Any] = list(rankings(memory))
        self._other.mkdir()
        with opened(self._other / "s.ecphory") as memory:
            memory.add([document(f"else{at}", 1) for at in range(12)])
            list(rankings(memory))
        self.sound = {file.name: file.read_bytes() for file in caches_of(self.path)}
        self._stamps = {file.name: kept_stamp(file) for file in caches_of(self.path)}
        assert None not in self._stamps.values()
        assert len(self.sound) == len(caches_of(self._other / "s.ecphory")) == len(caches_of(self._older / "s.ecphory"))

    def ways(self, places: int, bits: int, seed: int) -> Iterator[tuple[str, dict[str, bytes | None]]]:
        """So many truncations and flipped bits of each cache, and all swaps: what is done, and the files then."""
        drawn = random.Random(seed)
        for name, data in self.sound.items():
            for at in sorted(drawn.sample(range(len(data)), min(places, len(data)))):
                yield f"{name} cut at {at}", {name: data[:at]}
            for _ in range(bits):
                at, bit = drawn.randrange(len(data)), drawn.randrange(8)
                yield (
                    f"{name}, bit {bit} of byte {at}",
                    {name: data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]},
                )
            yield f"{name} deleted", {name: None}
            yield f"{name} empty", {name: b""}
            yield f"{name} longer", {name: data + b"\0"}
        for folder in (self._older, self._other):
            there = {file.name: file.read_bytes() for file in caches_of(folder / "s.ecphory")}
            yield f"all of {folder.name}", dict(there)
            for name, data in there.items():
                yield f"{name} of {folder.name}", {name: data}
        one, other = self.sound
        yield "one for the other", {one: self.sound[other], other: self.sound[one]}

    def try_all(self, places: int, bits: int, seed: int) -> Spoiled:
        """See that each is noticed, that the caches are made again, and that what is brought back stays the same."""
        found = Spoiled()
        for what, files in self.ways(places, bits, seed):
            found.tried += 1
            for name, data in (self.sound | files).items():
                file = self.path.parent / name
                if data is None:
                    file.unlink(missing_ok=True)
                else:
                    file.write_bytes(data)
            damaged = ("cut", "bit", "empty", "longer")
            if any(word in what for word in damaged):
                found.unnoticed += [
                    f"{what}: read" for name in files if kept_stamp(self.path.parent / name) is not None
                ]
            with opened(self.path) as memory:
                if list(rankings(memory)) != self.expected:
                    found.unnoticed.append(f"{what}: something else is brought back")
            stamps = {name: kept_stamp(self.path.parent / name) for name in self.sound}
            if stamps != self._stamps:
                found.unnoticed.append(f"{what}: not made again: {stamps}")
        return found
