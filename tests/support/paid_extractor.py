"""An extractor by plain rules that is like one with a language model: it takes time, it is paid by the call, and it
fails as it is told to."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ecphoryrag.text.keys import name_key
from ecphoryrag.types import Chunk, Document, Extraction, Mention, Usage

_NAME = re.compile(r"[A-Z]\w+")
Failing = Callable[[Chunk], str | None]
"""The reason for which a chunk fails, or None; it may also raise, wait, or press Ctrl-C."""


class PaidExtractor:
    """Each capitalised word is a mention. Accepted replies are kept, by chunk, as a ledger keeps them.

    With a file, each call is a line ``paid`` when it is made and a line ``kept`` when its reply is, so that what was
    kept survives the process.
    """

    model = "scripted/paid"
    basis = "20 tokens a reply"

    def __init__(
        self,
        *,
        parallel: int = 1,
        seconds: float = 0,
        failing: Failing = lambda _: None,
        file: Path | None = None,
        identity: str = "paid 1",
    ) -> None:
        self.parallel = parallel
        self.identity = identity
        self.failing = failing
        self.calls: list[tuple[str, int]] = []
        """(document id, ordinal) of each call made."""
        self.most_at_once = 0
        self._seconds = seconds
        self._file = file
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(parallel)
        self._at_once = 0
        self._kept: set[str] = set()
        if file is not None and file.exists():
            lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
            self._kept = {key for event, key in lines if event == "kept"}

    def halt(self) -> None:
        """There is nothing to wait for."""

    def resume(self) -> None:
        """There was nothing to halt."""

    def estimate(self, document: Document, chunks: Sequence[Chunk]) -> Usage:
        """100 tokens in and 20 out for each chunk whose reply is not kept."""
        missing = sum(_key(document, chunk) not in self._kept for chunk in chunks)
        return Usage(missing, 100 * missing, 20 * missing, cached=len(chunks) - missing)

    def extract(self, document: Document, chunks: Sequence[Chunk]) -> list[Extraction]:
        """One extraction a chunk, each for a call."""
        return [self._extract(document, chunk) for chunk in chunks]

    def _extract(self, document: Document, chunk: Chunk) -> Extraction:
        key = _key(document, chunk)
        if key in self._kept:
            return Extraction(_mentions(chunk), usage=Usage(cached=1))
        with self._places:
            failure = self._call(document, chunk, key)
        if failure is not None:
            return Extraction(usage=Usage(2, 200, 7), failure=failure)
        self._kept.add(key)
        return Extraction(_mentions(chunk), usage=Usage(1, 100, 20), dropped=chunk.text.count("?"))

    def _call(self, document: Document, chunk: Chunk, key: str) -> str | None:
        """What a call fails of, if it does; as a server takes it, ``parallel`` at once."""
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.calls.append((document.id, chunk.ordinal))
        try:
            self._note("paid", key)
            time.sleep(self._seconds)
            failure = self.failing(chunk)
        finally:
            with self._lock:
                self._at_once -= 1
        if failure is None:
            self._note("kept", key)
        return failure

    def _note(self, event: str, key: str) -> None:
        if self._file is None:
            return
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, f"{event} {key}\n".encode())
        finally:
            os.close(descriptor)


def _key(document: Document, chunk: Chunk) -> str:
    return f"{document.content_hash}:{chunk.ordinal}"


def _mentions(chunk: Chunk) -> tuple[Mention, ...]:
    return tuple(
        Mention(found[0], name_key(found[0]), chunk.start + found.start(), chunk.start + found.end())
        for found in _NAME.finditer(chunk.text)
        if name_key(found[0])
    )
