"""Chunks to mentions: here one after the other, or in as many threads as the extractor has a use for."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias

from ecphoryrag.errors import InputError, JobStopped, ModelError, ModelNotAvailable
from ecphoryrag.indexing.interrupts import held_interrupts
from ecphoryrag.indexing.works import BATCH_CHARACTERS, Work
from ecphoryrag.ports import Extractor
from ecphoryrag.types import Chunk, Extraction, Usage

LOOK_AHEAD = 4
"""Chunks handed out for each thread, so that the threads have work while the main one encodes and commits."""
SPARE = 4
"""One thread more for each so many: it makes its request ready, or reads its reply, while the server is kept busy.

How many calls are under way is for the extractor to bound.
"""
_GLANCE = 0.5
"""Seconds of one waiting for the threads: Ctrl-C does not end a waiting on every system."""


def threads_for(parallel: int) -> int:
    """Threads that keep so many calls under way; as many calls at most are made whose replies are not kept yet."""
    return parallel + parallel // SPARE


class Extracting(Protocol):
    """Documents being extracted, and those that are finished."""

    finished: list[Work]
    """Documents with all their wanted extractions, or an error; whoever commits one removes it."""
    spent: Usage
    """On all extractions that came back, those of unfinished documents and those that ended in an error among them."""

    def advance(self) -> bool:
        """Go on until a document is finished; False if there is no more to do.

        Raises JobStopped and ModelNotAvailable as the extractor does; what is finished by then stays so.
        """
        ...

    def stop(self, seconds: float) -> None:
        """Begin nothing more, and wait so long for what is under way."""
        ...

    def close(self) -> None:
        """Let the threads go."""
        ...


def extracting(works: Iterator[Work], extractor: Extractor, batch: int) -> Extracting:
    """The documents of ``works``, extracted by ``extractor`` in the way that suits it.

    An extractor by rules gets whole documents, ``batch`` of them before any is handed on. One that calls a language
    model gets one chunk a call, and each document is handed on as soon as its chunks are there: with one thread in the
    order of arrival, with several as they are ready, so that a slow one holds up no other.
    """
    if extractor.parallel > 1:
        return Crew(works, extractor)
    return Alone(works, extractor, batch if extractor.model is None else 1)


class Alone:
    """Extracts in the thread that asks (see :class:`Extracting`)."""

    def __init__(self, works: Iterator[Work], extractor: Extractor, batch: int) -> None:
        self.finished: list[Work] = []
        self.spent = Usage()
        self._works = works
        self._extractor = extractor
        self._batch = batch

    def advance(self) -> bool:
        """See :meth:`Extracting.advance`."""
        characters = 0
        for work in self._works:
            try:
                self._extract(work)
            except (InputError, ModelError) as error:
                self.spent += _spent_on(error)
                if _ends_all(error):
                    raise
                work.error = error
            self.finished.append(work)
            characters += len(work.document.text)
            if len(self.finished) >= self._batch or characters >= BATCH_CHARACTERS:
                break
        return bool(self.finished)

    def _extract(self, work: Work) -> None:
        whole = self._extractor.model is None
        for chunks in [work.wanted] if whole else [(chunk,) for chunk in work.wanted]:
            extractions = self._extractor.extract(work.document, chunks)
            for chunk, extraction in zip(chunks, extractions, strict=True):
                work.found[chunk.ordinal] = extraction
                self.spent += extraction.usage

    def stop(self, seconds: float) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """There is no thread to let go."""


_Outcome: TypeAlias = Extraction | BaseException | None
"""What came of a chunk; None: it was not begun."""


class Crew:
    """Extracts in threads, a chunk a call (see :class:`Extracting`).

    Only the thread that asks touches documents; the others take a chunk and lay down what came of it. They are daemons
    of our own and not those of an executor, which the interpreter would wait for at its end: a call that hangs must
    not keep a process alive whose user has pressed Ctrl-C.
    """

    def __init__(self, works: Iterator[Work], extractor: Extractor) -> None:
        self.finished: list[Work] = []
        self.spent = Usage()
        self._works = works
        self._extractor = extractor
        self._crew = threads_for(extractor.parallel)
        self._threads: list[threading.Thread] = []
        self._waiting: deque[tuple[Work, Chunk]] = deque()
        self._handed: SimpleQueue[tuple[Work, Chunk] | None] = SimpleQueue()
        self._outcomes: deque[tuple[Work, Chunk, _Outcome]] = deque()
        # Not threading.Event or Condition: Ctrl-C inside their waiting can leave their lock held for ever.
        self._told: SimpleQueue[None] = SimpleQueue()
        self._stopping = False
        self._out = 0
        """Chunks handed out whose outcome has not been taken in."""
        self._characters = 0
        """Text of the documents begun and not finished."""

    def advance(self) -> bool:
        """See :meth:`Extracting.advance`."""
        self._hand_out()
        while not self.finished:
            if not self._out:
                return False
            self._await(_GLANCE)
            while self._outcomes:
                self._take_in()
            self._hand_out()
        return True

    def stop(self, seconds: float) -> None:
        """See :meth:`Extracting.stop`."""
        self._stopping = True
        self._waiting.clear()
        end = time.monotonic() + seconds
        while True:
            while self._outcomes:
                with suppress(JobStopped, ModelNotAvailable):  # it is known why the work ends
                    self._take_in()
            left = end - time.monotonic()
            if not self._out or left <= 0:
                return
            self._await(min(left, _GLANCE))

    def close(self) -> None:
        """Let the threads go: at once those that wait for work, the others once their call has ended."""
        self._stopping = True
        for _ in self._threads:
            self._handed.put(None)
        if not self._out:
            for thread in self._threads:
                thread.join()

    def _await(self, seconds: float) -> None:
        with suppress(Empty):
            self._told.get(timeout=seconds)

    def _hand_out(self) -> None:
        ahead = LOOK_AHEAD * self._extractor.parallel
        while self._out < ahead and self._has_waiting():
            with held_interrupts():
                self._handed.put(self._waiting.popleft())
                self._out += 1
                if len(self._threads) < min(self._out, self._crew):
                    thread = threading.Thread(target=self._work, name="ecphory-extract", daemon=True)
                    self._threads.append(thread)
                    thread.start()

    def _has_waiting(self) -> bool:
        """Whether a chunk waits to be handed out, if need be of the next document."""
        while not self._waiting and (self._characters < BATCH_CHARACTERS or not self._out):
            work = next(self._works, None)
            if work is None:
                return False
            if not work.wanted:
                self.finished.append(work)
            self._characters += len(work.document.text) if work.wanted else 0
            self._waiting.extend((work, chunk) for chunk in work.wanted)
        return bool(self._waiting)

    def _work(self) -> None:
        """What a thread does."""
        while (task := self._handed.get()) is not None:
            work, chunk = task
            outcome: _Outcome = None
            if not self._stopping and work.error is None:
                try:
                    (outcome,) = self._extractor.extract(work.document, (chunk,))
                except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for it
                    outcome = error
                    self._stopping = self._stopping or _ends_all(error)
            self._outcomes.append((work, chunk, outcome))
            self._told.put(None)

    def _take_in(self) -> None:
        with held_interrupts():
            work, chunk, outcome = self._outcomes.popleft()
            self._out -= 1
            self.spent += _spent_on(outcome)
            running = work.error is None
            if isinstance(outcome, Extraction):
                work.found[chunk.ordinal] = outcome
            elif isinstance(outcome, InputError | ModelError) and not _ends_all(outcome):
                work.error = work.error or outcome
            elif outcome is not None:
                raise outcome
            if running and (work.error is not None or len(work.found) == len(work.wanted)):
                self.finished.append(work)
                self._characters -= len(work.document.text)


def _ends_all(error: BaseException) -> bool:
    """Whether an extractor's error says something of all that is to come, and not of one document alone."""
    return isinstance(error, JobStopped | ModelNotAvailable) or not isinstance(error, InputError | ModelError)


def _spent_on(outcome: _Outcome) -> Usage:
    return outcome.usage if isinstance(outcome, Extraction | ModelError) else Usage()
