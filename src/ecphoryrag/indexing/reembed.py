"""Moving a store to another encoder: all its passages are encoded again, and then it switches."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ecphoryrag.errors import JobStopped, ModelError, ModelNotAvailable, StoreError
from ecphoryrag.indexing.interrupts import held_interrupts
from ecphoryrag.indexing.passages import passage_head, passage_vectors
from ecphoryrag.indexing.progress import Progress, ProgressCallback
from ecphoryrag.ports import Encoder, PendingChunk, Reembedding, Store
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.types import Failure, ReembedReport, Spending, Usage

CHUNKS = 4
"""Chunks encoded together, and then kept, for each document of the settings' batch."""


def reembed(
    store: Store, encoder: Encoder, settings: IndexingSettings, progress: ProgressCallback | None = None
) -> ReembedReport:
    """Encode what has no vector by this encoder yet, going on with an earlier run, and then switch the store to it.

    The store, which is open with its present encoder, is read and may be written meanwhile; once switched it must be
    opened again with the new one. A chunk that cannot be encoded is a line of the report, and the store then stays with
    the present encoder. Progress counts chunks. Raises StoreError, and ModelNotAvailable if the model is missing, with
    a note that says how many were encoded and are kept.
    """
    started = time.perf_counter()
    already = store.status().encoder == encoder.identity
    run = _Run(store.reembed(encoder.identity), encoder, CHUNKS * settings.batch, progress)
    switched, stopped, interrupted = False, None, False
    try:
        switched = run.all()
    except KeyboardInterrupt:
        interrupted = True
    except JobStopped as error:
        stopped = str(error)
    except (StoreError, ModelError) as error:
        error.add_note(f"Before this {run.encoded} chunks were encoded, which are kept; doing it again goes on there.")
        raise
    usage = run.usage
    seconds = time.perf_counter() - started
    return ReembedReport(
        encoder=encoder.identity,
        switched=switched,
        encoded=run.encoded,
        chunks=run.chunks,
        failed=tuple(Failure(id_, reason) for id_, reason in run.failed.items()),
        usage=replace(usage, seconds=seconds),
        spending=(Spending("embed", encoder.identity.name, usage),) if usage != Usage() else (),
        seconds=seconds,
        interrupted=interrupted,
        stopped=stopped,
        already=already,
    )


@dataclass(slots=True)
class _Run:
    """One call of :func:`reembed`, and what came of it so far."""

    move: Reembedding
    encoder: Encoder
    batch: int
    progress: ProgressCallback | None
    encoded: int = 0
    chunks: int = 0
    usage: Usage = field(default_factory=Usage)
    failed: dict[str, str] = field(default_factory=dict)
    """The first reason of each document."""

    def all(self) -> bool:
        """Encode until nothing is pending, then switch; False if some chunks could not be encoded."""
        while True:
            self.once()
            if self.failed:
                return False
            with held_interrupts():
                if self.move.finish():
                    return True
            # Others have written meanwhile: what they added is pending.

    def once(self) -> None:
        """Encode what is pending now, each chunk once."""
        done, self.chunks = self.move.progress()
        self.tell(done)
        last = 0
        while part := self.move.pending(self.batch, last):
            last = part[-1].row
            done += self.encode(part)
            self.tell(done)

    def encode(self, part: Sequence[PendingChunk]) -> int:
        """Encode these together, or one by one if that fails, to find which it is that fails; returns how many were."""
        heads = [passage_head(one.title, one.chunk) for one in part]
        try:
            encoded = passage_vectors(heads, [one.chunk.text for one in part], self.encoder)
        except (JobStopped, ModelNotAvailable):
            raise
        except ModelError as error:
            if len(part) > 1:
                return sum(self.encode([one]) for one in part)
            self.failed.setdefault(part[0].chunk.document_id, f"chunk {part[0].chunk.ordinal}: {error}")
            return 0
        self.usage += encoded.usage
        with held_interrupts():
            self.move.put(part, encoded.vectors)
            self.encoded += len(part)
        return len(part)

    def tell(self, done: int) -> None:
        """Report how far it has come."""
        if self.progress:
            self.progress(Progress("encode", done, self.chunks))
