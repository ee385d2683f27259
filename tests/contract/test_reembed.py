"""Moving a store to another encoder: readable meanwhile, resumable, and switched at once."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

import apsw
import numpy as np
import pytest

from ecphoryrag.errors import BadVectors, BudgetSpent, EncoderMismatch, ModelNotAvailable, StoreError, StoreReadOnly
from ecphoryrag.indexing.progress import Progress
from ecphoryrag.indexing.reembed import reembed
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.models.none import NoEncoder
from ecphoryrag.ports import Encoded, Encoder, PendingChunk, Store
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.store import kept_encoder, open_store
from ecphoryrag.store.reembed import SqliteReembedding
from ecphoryrag.types import Usage
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document, sample

NEXT = HashEncoder(16)
SMALL = IndexingSettings(batch=1)


class Watched:
    """An encoder that notes what it is given, and fails for texts with a word in them."""

    def __init__(self, inner: Encoder, refuses: str = "", error: Exception | None = None) -> None:
        self.inner = inner
        self.refuses = refuses
        self.error = error or BadVectors("this encoder does not like it")
        self.identity = inner.identity
        self.title_share = inner.title_share
        self.given: list[str] = []

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        if self.refuses and any(self.refuses in text for text in texts):
            raise self.error
        self.given += texts
        return self.inner.encode(texts, kind)

    def close(self) -> None:
        self.inner.close()


def opened(path: Path, encoder: Encoder = ENCODER, **options: bool) -> Store:
    return open_store(path, encoder.identity, EXTRACTOR, **options)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that holds the sample."""
    path = tmp_path / "test.ecphory"
    store = opened(path)
    for document in sample():
        store.commit(document)
    store.close()
    return path


def text_of(pending: PendingChunk) -> str:
    above = [pending.title, *(one for one in pending.chunk.headings if one != pending.title)]
    return "\n".join([*filter(None, above), pending.chunk.text])


def vectors_of(store: Store) -> dict[tuple[str, int], np.ndarray]:
    with store.reading() as view:
        shot = view.snapshot
        ordinals = [one.chunk.ordinal for one in view.chunks(range(len(shot.vectors)))]
        ids = [shot.document_ids[document] for document in shot.chunk_documents]
        return {key: shot.vectors[row] for row, key in enumerate(zip(ids, ordinals, strict=True))}


def assert_all_from(store: Store, encoder: Encoder) -> None:
    """Each vector is that of its title and text, by this encoder and no other."""
    found = vectors_of(store)
    assert found
    for summary in store.documents():
        for chunk in store.indexed(summary.id).chunks:
            text = text_of(PendingChunk(0, summary.title, chunk, ""))
            expected = encoder.encode([text], "passage").vectors[0]
            np.testing.assert_allclose(found[summary.id, chunk.ordinal], expected, atol=2e-3)


def test_all_passages_are_encoded_and_the_store_is_the_next_encoders(path: Path) -> None:
    store = opened(path)
    with store.reading() as view:
        view.entity_vectors(ENCODER)
    report = reembed(store, NEXT, SMALL)
    assert report.switched
    assert report.encoded == report.chunks == 8
    assert report.encoder == NEXT.identity
    assert [(one.purpose, one.model) for one in report.spending] == [("embed", "hash")]
    assert report.usage.embedding_tokens == report.spending[0].usage.embedding_tokens > 0
    for suffix in ("-cache", "-vectors"):
        assert not path.with_name(path.name + suffix).exists(), suffix
    store.close()
    assert kept_encoder(path) == NEXT.identity
    again = opened(path, NEXT)
    assert_all_from(again, NEXT)
    assert again.status().reembedding is None
    with again.reading() as view:
        assert view.entity_vectors(NEXT).shape[1] == 16
    again.close()


def test_headings_and_shares_are_heeded(tmp_path: Path) -> None:
    """An encoder that gives titles a share gets them as when documents are added."""

    sharing = Watched(NEXT)
    sharing.title_share = 0.5
    store = opened(tmp_path / "t")
    store.commit(indexed_document("a", "Old Town", "Silent Harbour"))
    assert reembed(store, sharing, SMALL).switched
    store.close()
    store = opened(tmp_path / "t", NEXT)
    head, text = NEXT.encode(["Silent Harbour", "Old Town"], "passage").vectors
    expected = (head + text) / np.linalg.norm(head + text)
    np.testing.assert_allclose(store.indexed("a").vectors[0], expected, atol=2e-3)
    store.close()


def test_it_is_read_by_the_present_encoder_until_the_switch(path: Path) -> None:
    store, reader = opened(path), opened(path, read_only=True)
    before = vectors_of(reader)
    move = store.reembed(NEXT.identity)
    chunks = move.pending(100)
    move.put(chunks[:5], np.full((5, 16), 0.25, np.float32))
    assert reader.status().reembedding == "to hash: 5 of 8 chunks"
    assert not move.finish()
    assert {key: tuple(row) for key, row in vectors_of(reader).items()} == {
        key: tuple(row) for key, row in before.items()
    }
    with reader.reading() as view:
        move.put(chunks[5:], np.full((3, 16), 0.25, np.float32))
        assert move.finish()
        assert view.snapshot.vectors.shape == (8, 8)  # what was begun before the switch ends as it began
        assert len(view.chunks([0, 1])) == 2
    for stale in (reader, store):
        with pytest.raises(
            EncoderMismatch, match=r"was moved to the encoder 'hash' \(version 1, 16 dim.*open it again"
        ):
            vectors_of(stale)
        with pytest.raises(EncoderMismatch):
            stale.indexed("a")
        with pytest.raises(EncoderMismatch):
            stale.status()
        assert stale.get("a").id == "a"
    with pytest.raises(EncoderMismatch, match="open it again"):
        store.commit(indexed_document("z", "Zed"))
    reader.close()
    store.close()
    with pytest.raises(EncoderMismatch, match="reembed --encoder hash"):
        opened(path)


def test_readings_do_not_rebuild_their_arrays_while_it_goes_on(path: Path) -> None:
    store = opened(path)
    with store.reading() as view:
        before = view.snapshot
    move = store.reembed(NEXT.identity)
    move.put(move.pending(3), np.full((3, 16), 0.25, np.float32))
    with store.reading() as view:
        assert view.snapshot is before
    store.close()


def test_documents_added_updated_and_forgotten_meanwhile(path: Path) -> None:
    store, other = opened(path), opened(path)
    move = store.reembed(NEXT.identity)
    chunks = move.pending(100)
    late = [one for one in chunks if one.chunk.document_id in {"a", "b", "東"}]
    early = [one for one in chunks if one not in late]
    move.put(early, NEXT.encode([text_of(one) for one in early], "passage").vectors)
    changed = early[0].chunk.document_id
    last = store.get("東")
    other.commit(indexed_document("東", last.text.replace("told of", "sung of"), headings=last.headings))
    assert [one.row for one in late][-2:] == [one.row for one in move.pending(100)][-2:]  # others in the same rows
    other.commit(indexed_document(changed, "It has Another Text now", "Other Title"))
    other.commit(indexed_document("a", "Anna Marsh wrote nothing", "Silent Harbour"))
    other.delete(["b"])
    other.commit(indexed_document("new", "Quite New", "New"))
    # Vectors of texts that are no longer there come too late, whoever has their rows now.
    move.put(late, np.full((len(late), 16), 0.25, np.float32))
    assert {one.chunk.document_id for one in move.pending(100)} == {changed, "a", "new", "東"}
    assert not move.finish()
    watched = Watched(NEXT)
    report = reembed(store, watched, SMALL)
    assert report.switched
    assert len(watched.given) == report.encoded == 5
    store.close()
    other.close()
    again = opened(path, NEXT)
    assert_all_from(again, NEXT)
    again.close()


def test_what_is_added_while_the_last_are_encoded_is_encoded_too(path: Path) -> None:
    store, other = opened(path), opened(path)

    class Busy(Watched):
        def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
            if not self.given:
                other.commit(indexed_document("0", "Came Late"))
                other.commit(indexed_document("z", "Came Later", "Z"))
            return super().encode(texts, kind)

    assert reembed(store, Busy(NEXT), IndexingSettings()).switched
    store.close()
    other.close()
    again = opened(path, NEXT)
    assert "0" in {one.id for one in again.documents()}
    assert_all_from(again, NEXT)
    again.close()


def test_what_is_added_at_the_last_moment_stops_the_switch(path: Path) -> None:
    store, other = opened(path), opened(path)
    move = store.reembed(NEXT.identity)
    assert isinstance(move, SqliteReembedding)
    chunks = move.pending(100)
    move.put(chunks, np.full((len(chunks), 16), 0.25, np.float32))
    writing = move._access.writing

    def later(*, moving: bool) -> AbstractContextManager[apsw.Connection]:
        other.commit(indexed_document("z", "Came Late"))
        return writing(moving=moving)

    move._access = replace(move._access, writing=later)
    assert not move.finish()
    assert len(vectors_of(store)) == 9
    store.close()
    other.close()


def test_another_target_takes_its_place_and_the_present_one_gives_it_up(path: Path) -> None:
    store = opened(path)
    first = store.reembed(NEXT.identity)
    chunks = first.pending(4)
    first.put(chunks, np.full((4, 16), 0.25, np.float32))
    third = HashEncoder(4)
    second = store.reembed(third.identity)
    assert second.progress() == (0, 8)
    with pytest.raises(StoreError, match="given up for one to hash"):
        first.put(chunks, np.ones((4, 16), np.float32))
    for one in (first, second):
        assert not one.finish()
    present = store.reembed(ENCODER.identity)
    assert (present.progress(), present.pending(9), present.finish()) == ((8, 8), [], True)
    assert store.status().reembedding is None
    with pytest.raises(StoreError, match="was given up meanwhile"):
        second.put(chunks, np.ones((4, 4), np.float32))
    assert len(vectors_of(store)) == 8
    store.close()


def test_a_report_when_it_is_already_there(path: Path) -> None:
    store = opened(path)
    watched = Watched(ENCODER)
    report = reembed(store, watched, SMALL)
    assert (report.switched, report.encoded, watched.given, report.spending) == (True, 0, [], ())
    assert len(vectors_of(store)) == 8
    store.close()


def test_to_and_from_no_vectors(path: Path) -> None:
    store = opened(path)
    assert reembed(store, NoEncoder(), SMALL).switched
    store.close()
    store = opened(path, NoEncoder())
    assert next(iter(vectors_of(store).values())).shape == (0,)
    assert reembed(store, NEXT, SMALL).switched
    store.close()
    store = opened(path, NEXT)
    assert_all_from(store, NEXT)
    store.close()


def test_an_empty_store_switches(tmp_path: Path) -> None:
    store = opened(tmp_path / "t")
    assert reembed(store, NEXT, SMALL).switched
    store.close()
    assert kept_encoder(tmp_path / "t") == NEXT.identity


def test_a_chunk_that_cannot_be_encoded_is_named_and_the_rest_is_kept(path: Path) -> None:
    store = opened(path)
    report = reembed(store, Watched(NEXT, "filmed"), IndexingSettings())
    assert not report.switched
    assert [(one.source, one.reason) for one in report.failed] == [("a", "chunk 1: this encoder does not like it")]
    assert report.encoded == 7
    assert len(vectors_of(store)) == 8
    watched = Watched(NEXT)
    assert reembed(store, watched, SMALL).switched
    assert watched.given == ["Silent Harbour\nIt was filmed by Bela Toth."]
    store.close()


def test_a_spent_budget_and_an_interrupt_stop_it_and_keep_what_is_done(path: Path) -> None:
    store = opened(path)
    report = reembed(store, Watched(NEXT, "filmed", BudgetSpent("nothing left")), IndexingSettings(batch=1))
    assert (report.switched, report.stopped, report.failed) == (False, "nothing left", ())
    seen: list[Progress] = []

    def stop(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 2:
            raise KeyboardInterrupt

    report = reembed(store, NEXT, SMALL, stop)
    assert (report.switched, report.interrupted) == (False, True)
    assert [(one.stage, one.total) for one in seen] == [("encode", 8), ("encode", 8)]
    assert report.encoded == 4
    with pytest.raises(ModelNotAvailable) as raised:
        reembed(store, Watched(NEXT, "Toth", ModelNotAvailable("gone")), SMALL)
    assert "chunks were encoded, which are kept" in raised.value.__notes__[0]
    store.close()


def test_vectors_of_another_shape_are_refused(path: Path) -> None:
    store = opened(path)
    move = store.reembed(NEXT.identity)
    chunks = move.pending(2)
    for bad in (np.ones((2, 8), np.float32), np.ones((1, 16), np.float32), np.full((2, 16), np.nan, np.float32)):
        with pytest.raises(ValueError, match="finite vectors of 16 dimensions"):
            move.put(chunks, bad)
    assert move.progress() == (0, 8)
    store.close()
    reader = opened(path, read_only=True)
    with pytest.raises(StoreReadOnly):
        reader.reembed(NEXT.identity)
    reader.close()


def test_what_a_store_is_kept_by_is_read_without_its_encoder(path: Path, tmp_path: Path) -> None:
    assert kept_encoder(path) == ENCODER.identity
    assert kept_encoder(tmp_path / "none") is None
    (tmp_path / "empty").touch()
    assert kept_encoder(tmp_path / "empty") is None
    with sqlite3.connect(tmp_path / "begun") as plain:  # as a process leaves it that was killed in making a store
        plain.executescript("CREATE TABLE t (c); DROP TABLE t;")
    plain.close()
    assert (tmp_path / "begun").stat().st_size
    assert kept_encoder(tmp_path / "begun") is None
    store = opened(tmp_path / "begun")
    assert store.status().documents == 0
    store.close()
    old = Path(__file__).parents[1] / "golden" / "store-format-1.sqlite"
    (tmp_path / "old").write_bytes(old.read_bytes())
    assert kept_encoder(tmp_path / "old") == ENCODER.identity
    assert (tmp_path / "old").read_bytes() == old.read_bytes()


def test_forgetting_meanwhile_leaves_nothing_of_the_next_vectors(path: Path) -> None:
    store = opened(path)
    move = store.reembed(NEXT.identity)
    mark = np.frombuffer(b"marked vector of sixteen values!", "<f2")
    assert np.isfinite(mark).all()
    chunks = [one for one in move.pending(100) if one.chunk.document_id == "c"]
    move.put(chunks, np.tile(mark.astype(np.float32), (len(chunks), 1)))
    store.flush()
    store.delete(["c"])
    store.close()
    for file in path.parent.iterdir():
        assert mark.tobytes() not in file.read_bytes(), file


def test_a_reader_undoes_what_a_killed_writer_left(path: Path, tmp_path: Path) -> None:
    """Without a log SQLite leaves a rollback journal, which a connection that cannot write cannot roll back."""
    left = tmp_path / "left"
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE chunks SET vector = zeroblob(16)")
    writer.execute("UPDATE documents SET title = 'half', text = text || hex(zeroblob(20000))")
    left.write_bytes(path.read_bytes())
    left.with_name("left-journal").write_bytes(path.with_name(path.name + "-journal").read_bytes())
    writer.execute("ROLLBACK")
    writer.close()
    assert left.read_bytes() != path.read_bytes()
    assert kept_encoder(left) == ENCODER.identity
    with closing(opened(left, read_only=True)) as store, closing(opened(path, read_only=True)) as whole:
        found, expected = vectors_of(store), vectors_of(whole)
        assert all(np.array_equal(found[key], row) for key, row in expected.items())
        assert store.get("a") == whole.get("a")


RUNS = """
import os, sys, time
from pathlib import Path
from ecphoryrag.indexing.reembed import reembed
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.settings.indexing import IndexingSettings
from ecphoryrag.store.sqlite import SqliteStore
from tests.support.indexed_documents import ENCODER, EXTRACTOR

class Slow(HashEncoder):
    def encode(self, texts, kind):
        time.sleep(0.01)
        return super().encode(texts, kind)

def run(path, log):
    store = SqliteStore(path, ENCODER.identity, EXTRACTOR, create=False, read_only=False)
    settings = IndexingSettings(batch=1)
    return reembed(store, Slow(16), settings, lambda progress: log.write_text(f"{progress.done}\\n")).switched

for line in sys.stdin:
    child = os.fork()
    if not child:
        os._exit(0 if run(*map(Path, sys.argv[1:])) else 1)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""A process that does a run in a child for each line that it is sent: imports take longer than the runs."""


def wait_until_told_more(log: Path, done: int) -> None:
    """Until a run has told of more than so many chunks, or a while; -1: until one has told of any, now or before."""
    end = time.monotonic() + 5
    while time.monotonic() < end and int((log.read_text() if log.exists() else "") or 0) <= done:
        time.sleep(0.002)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_killed_at_any_moment_it_stays_readable_and_goes_on(tmp_path: Path) -> None:
    path, log = tmp_path / "t", tmp_path / "log"
    store = opened(path)
    for number in range(60):
        store.commit(indexed_document(f"{number:03}", f"Town {number}\nRiver {number}\nHill {number}", "Places"))
    before = vectors_of(store)
    store.close()
    draw, done, kills = random.Random(7), 0, 0
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"}
    command = [sys.executable, "-c", RUNS, str(path), str(log)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True, bufsize=1) as runs:
        assert runs.stdin
        assert runs.stdout
        while kept_encoder(path) == ENCODER.identity:
            runs.stdin.write("run\n")
            child = int(runs.stdout.readline())
            if kills < 10:
                wait_until_told_more(log, done if kills % 2 else -1)
                time.sleep(draw.uniform(0, 0.03))
                with suppress(ProcessLookupError):  # it may have come to its end
                    os.kill(child, signal.SIGKILL)
            ended = int(runs.stdout.readline())
            assert ended in {0, -signal.SIGKILL}
            kills += ended == -signal.SIGKILL
            told = int((log.read_text() if log.exists() else "") or 0)
            if kept_encoder(path) == ENCODER.identity:
                store = opened(path)
                found = vectors_of(store)
                assert found.keys() == before.keys()
                assert all(np.array_equal(found[key], row) for key, row in before.items())
                kept = store.reembed(NEXT.identity).progress()[0]
                assert kept >= max(done, told)  # what it told as done is kept, and so is not done again
                done = kept
                store.close()
        runs.stdin.close()
    assert kills >= 3
    assert done > 0
    again = opened(path, NEXT)
    assert_all_from(again, NEXT)
    again.close()


def test_the_switch_is_one_step_for_readers_in_other_threads(path: Path) -> None:
    store = opened(path)
    stop, wrong, read = threading.Event(), [], 0

    def look() -> None:
        nonlocal read
        with closing(opened(path, read_only=True)) as reader:
            while not stop.is_set():
                try:
                    found = vectors_of(reader)
                except EncoderMismatch:
                    return
                read += 1
                if len(found) != 8 or any(row.shape != (8,) for row in found.values()):
                    wrong.append(found)

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    while read < 4:
        time.sleep(0.005)
    assert reembed(store, NEXT, SMALL).switched
    for thread in threads:
        thread.join(5)
    ended = not any(thread.is_alive() for thread in threads)
    stop.set()
    assert ended
    assert not wrong
    store.close()


def test_usage_is_none_where_nothing_was_spent(path: Path) -> None:
    store = opened(path)
    report = reembed(store, ENCODER, SMALL)
    assert report.usage == Usage(seconds=report.seconds)
    store.close()
