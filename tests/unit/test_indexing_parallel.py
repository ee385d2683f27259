"""Extraction in threads: as fast as it should be, stopped cleanly, and never more in memory than said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ecphoryrag.errors import BudgetSpent, CircuitOpen, GenerationError, JobStopped, ModelNotAvailable, StoreError
from ecphoryrag.indexing import Loaded, extracting, index, pipeline, works
from ecphoryrag.indexing.extracting import LOOK_AHEAD
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.ports import Store
from ecphoryrag.settings import ChunkSettings, IndexingSettings
from ecphoryrag.store import open_store
from ecphoryrag.types import Chunk, Document, Failure, Usage
from tests.support.paid_extractor import PaidExtractor
from tests.support.store_tables import tables

ROOT = Path(__file__).parents[2]
ENCODER = HashEncoder()
SETTINGS = IndexingSettings(batch=8, chunks=ChunkSettings(budget=16, overlap=0))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.ecphory"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = open_store(path, ENCODER.identity, "paid 1")
    yield opened
    opened.close()
    wait_for_threads()
    assert threading.active_count() == 1, "a thread was not let go"


def wait_for_threads() -> None:
    """Each ends when its call has."""
    for thread in threading.enumerate():
        if thread.name == "ecphory-extract":
            thread.join(10)


def short(count: int) -> list[Document]:
    """Documents of one chunk each."""
    return [Document(f"{number:03}", f"Ada met Bela{number} here.") for number in range(count)]


def long(id: str, chunks: int) -> Document:
    """A document of so many chunks."""
    sentences = (f"Then Ada went to see Bela{number:02} in the old town." for number in range(chunks))
    return Document(id, " ".join(sentences))


def held(store: Store) -> list[str]:
    return [summary.id for summary in store.documents()]


MIXED = [long("a", 7), *short(30), long("b", 3), Document("c", "?! ..."), *short(2)]


def test_threads_make_the_same_store(store: Store, path: Path, tmp_path: Path) -> None:
    extractor = PaidExtractor(parallel=5, seconds=0.002)
    report = index(MIXED, store, ENCODER, extractor, SETTINGS)
    store.close()
    alone = open_store(tmp_path / "alone.ecphory", ENCODER.identity, "paid 1")
    expected = index(MIXED, alone, ENCODER, PaidExtractor(), SETTINGS)
    alone.close()
    assert tables(path) == tables(tmp_path / "alone.ecphory")
    assert sorted(report.added) == sorted(expected.added)
    assert (report.chunks, report.mentions) == (expected.chunks, expected.mentions)
    assert (report.unchanged, sorted(report.empty_chunks)) == (("000", "001"), sorted(expected.empty_chunks))
    assert sorted(extractor.calls) == sorted(set(extractor.calls))
    assert extractor.most_at_once == 5
    assert report.spending == expected.spending
    assert report.spending[0].usage.calls == report.chunks == len(extractor.calls)


@pytest.mark.parametrize(
    ("documents", "calls"), [(short(160), 160), ([long("one", 100)], 100)], ids=["160 documents", "100 chunks"]
)
def test_sixteen_at_once_are_at_least_twelve_times_as_fast(store: Store, documents: list[Document], calls: int) -> None:
    """One after the other the calls alone would take calls x 200 ms. The best of three: others use the machine too."""
    times = 0.0
    for _ in range(3):
        extractor = PaidExtractor(parallel=16, seconds=0.2)
        started = time.perf_counter()
        report = index(documents, store, ENCODER, extractor, SETTINGS)
        times = max(times, calls * 0.2 / (time.perf_counter() - started))
        assert len(report.added) == len(documents)
        assert len(extractor.calls) == calls
        if times >= 12:
            break
        store.delete(report.added)
    assert times >= 12


def test_a_slow_document_holds_up_no_other(store: Store) -> None:
    others = [f"{number:03}" for number in range(20)]
    deadline = time.monotonic() + 10

    def waiting(chunk: Chunk) -> None:
        while chunk.document_id == "slow" and held(store) != others and time.monotonic() < deadline:
            time.sleep(0.01)

    documents = [Document("slow", "Ada came last."), *short(20)]
    report = index(documents, store, ENCODER, PaidExtractor(parallel=2, failing=waiting), SETTINGS)
    assert report.added[-1] == "slow"
    assert time.monotonic() < deadline


def test_what_is_not_yet_needed_is_not_yet_read(store: Store) -> None:
    read = 0
    ahead: list[int] = []

    def documents() -> Iterator[Loaded]:
        nonlocal read
        for document in short(100):
            read += 1
            yield document

    extractor = PaidExtractor(parallel=2)

    def looking(chunk: Chunk) -> None:
        del chunk
        ahead.append(read - len(extractor.calls))

    extractor.failing = looking
    index(documents(), store, ENCODER, extractor, SETTINGS)
    assert 2 < max(ahead) <= 2 * LOOK_AHEAD + SETTINGS.batch + 2


def test_text_under_way_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each document has some 150 characters; one is begun while fewer than 200 are under way."""
    monkeypatch.setattr(works, "BATCH_CHARACTERS", 1)
    monkeypatch.setattr(extracting, "BATCH_CHARACTERS", 200)
    ended: list[str] = []
    under_way: list[int] = []

    def look(chunk: Chunk) -> None:
        time.sleep(0.003)
        begun = {id_ for id_, _ in extractor.calls.copy()}  # first: what ends or begins meanwhile must not be counted
        under_way.append(len({id_ for id_ in begun if ended.count(id_) < 3}))
        ended.append(chunk.document_id)

    extractor = PaidExtractor(parallel=8, failing=look)
    index([long(f"{number:02}", 3) for number in range(16)], store, ENCODER, extractor, SETTINGS)
    assert max(under_way) == 2


def test_one_id_twice_while_it_is_under_way_is_paid_once(store: Store) -> None:
    one, other = Document("a", "Ada."), Document("a", "Bela.", source="f.jsonl:3")
    extractor = PaidExtractor(parallel=4, seconds=0.05)
    report = index([one, one, other], store, ENCODER, extractor, IndexingSettings(batch=1))
    assert (report.added, report.unchanged) == (("a",), ("a",))
    assert report.failed == (Failure("f.jsonl:3", "the id 'a' was already given, with other content"),)
    assert extractor.calls == [("a", 0)]


def failing_at(place: tuple[str, int], error: BaseException) -> PaidExtractor:
    def fail(chunk: Chunk) -> None:
        if (chunk.document_id, chunk.ordinal) == place:
            raise error

    return PaidExtractor(parallel=3, seconds=0.005, failing=fail)


def test_a_document_that_cannot_be_read_fails_alone_and_its_repeat_with_it(store: Store) -> None:
    extractor = failing_at(("x", 2), GenerationError("cannot read this"))
    documents = [long("x", 40), *short(9), long("x", 40)]
    report = index(documents, store, ENCODER, extractor, SETTINGS)
    assert sorted(report.added) == held(store) == [f"{number:03}" for number in range(9)]
    assert report.failed == (Failure("x", "cannot read this"),) * 2
    assert len([id_ for id_, _ in extractor.calls if id_ == "x"]) < 40, "it went on though it was of no use"
    assert report.usage.calls == len(extractor.calls) - 1, "what the document cost was not counted"


@pytest.mark.parametrize("error", [BudgetSpent("the tokens are spent"), CircuitOpen("it failed too often")])
def test_a_stop_keeps_what_is_complete_and_adding_again_makes_the_missing_calls(
    store: Store, path: Path, tmp_path: Path, error: JobStopped
) -> None:
    error.usage = Usage(1, 100, 3)  # an attempt before the one that was refused
    extractor = failing_at(("b", 1), error)
    report = index(MIXED, store, ENCODER, extractor, SETTINGS)
    assert report.stopped == str(error)
    assert not report.interrupted
    assert 0 < len(report.added) < len(MIXED) - 2
    assert sorted(report.added) == held(store)
    assert set(report.unchanged) <= {"000", "001"}, "those given twice"
    assert report.failed == ()
    paid = len(extractor.calls)
    assert report.spending[0].usage == Usage(paid, 100 * paid, 20 * paid - 17)
    before = set(extractor.calls) - {("b", 1)}
    extractor.calls.clear()
    extractor.failing = lambda _: None
    rest = index(MIXED, store, ENCODER, extractor, SETTINGS)
    assert rest.stopped is None
    assert {*report.added, *rest.added} == {document.id for document in MIXED}
    assert before.isdisjoint(extractor.calls)
    store.close()
    alone = open_store(tmp_path / "alone.ecphory", ENCODER.identity, "paid 1")
    index(MIXED, alone, ENCODER, PaidExtractor(), SETTINGS)
    alone.close()
    assert tables(path) == tables(tmp_path / "alone.ecphory")


def test_after_a_stop_calls_under_way_are_waited_for_and_none_is_begun(store: Store) -> None:
    stopped = threading.Event()
    begun = threading.Barrier(3)

    def fail(chunk: Chunk) -> None:
        begun.wait(10)
        if chunk.document_id == "000":
            stopped.set()
            raise CircuitOpen("it failed too often")
        stopped.wait()
        time.sleep(0.2)

    extractor = PaidExtractor(parallel=3, failing=fail)
    report = index(short(30), store, ENCODER, extractor, SETTINGS)
    assert sorted(report.added) == ["001", "002"]
    assert len(extractor.calls) == 3


def test_a_missing_model_is_raised_once_what_is_complete_is_kept(store: Store) -> None:
    extractor = failing_at(("b", 1), ModelNotAvailable("start the server"))
    with pytest.raises(ModelNotAvailable, match="start the server") as caught:
        index(MIXED, store, ENCODER, extractor, SETTINGS)
    kept = held(store)
    assert len(kept) > 3
    assert f"Before this {len(kept)} documents were committed" in caught.value.__notes__[0]


def test_a_mistake_in_an_extractor_is_raised_as_it_is(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        index(MIXED, store, ENCODER, failing_at(("b", 1), ZeroDivisionError()), SETTINGS)


def test_a_store_that_cannot_be_written_ends_the_work(store: Store, path: Path) -> None:
    reading = open_store(path, ENCODER.identity, "paid 1", read_only=True)
    extractor = PaidExtractor(parallel=3, seconds=0.005)
    with pytest.raises(StoreError) as caught:
        index(short(300), reading, ENCODER, extractor, SETTINGS)
    assert "Before this 0 documents" in caught.value.__notes__[0]
    assert len(extractor.calls) < 100
    reading.close()


def test_ctrl_c_begins_no_call_and_commits_what_is_complete(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The document ``hangs`` does not come back in time; the one beside it does."""
    monkeypatch.setattr(pipeline, "INTERRUPTED_SECONDS", 0.5)
    pressed, over = threading.Event(), threading.Event()

    def press(chunk: Chunk) -> None:
        if chunk.document_id == "hangs":
            over.wait(20)
        elif chunk.document_id == "010":
            pressed.set()
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
        else:
            assert not pressed.is_set(), "a call was begun after Ctrl-C"

    extractor = PaidExtractor(parallel=2, failing=press)
    started = time.monotonic()
    report = index([Document("hangs", "Ada."), *short(40)], store, ENCODER, extractor, SETTINGS)
    assert time.monotonic() - started < 5
    assert report.interrupted
    assert report.added == tuple(held(store)) == tuple(f"{number:03}" for number in range(11))
    over.set()
    wait_for_threads()
    extractor.failing = lambda _: None
    rest = index([Document("hangs", "Ada."), *short(40)], store, ENCODER, extractor, SETTINGS)
    assert len(rest.unchanged) == 11
    assert len(rest.added) == 30
    assert len(extractor.calls) == 41, "the reply that came too late was kept, and not paid for again"


def test_a_second_ctrl_c_ends_the_waiting(store: Store) -> None:
    over = threading.Event()

    def press(chunk: Chunk) -> None:
        if chunk.document_id == "000":
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.3)
        over.wait(20)

    started = time.monotonic()
    report = index(short(3), store, ENCODER, PaidExtractor(parallel=2, failing=press), SETTINGS)
    assert report.interrupted
    assert time.monotonic() - started < pipeline.INTERRUPTED_SECONDS - 0.5
    over.set()
    wait_for_threads()


def test_a_call_that_hangs_does_not_keep_the_process(path: Path) -> None:
    code = f"""
    import os, signal, threading, time
    from pathlib import Path
    from ecphoryrag.indexing import index, pipeline
    from tests.unit.test_indexing_parallel import ENCODER, SETTINGS, PaidExtractor, short, open_store
    def hang(chunk):
        if chunk.document_id == "005":
            os.kill(os.getpid(), signal.SIGINT)
        if chunk.document_id >= "005":
            time.sleep(60)
    pipeline.INTERRUPTED_SECONDS = 0.2
    store = open_store(Path({str(path)!r}), ENCODER.identity, "paid 1")
    report = index(short(20), store, ENCODER, PaidExtractor(parallel=4, failing=hang), SETTINGS)
    store.close()
    print(report.interrupted, len(report.added))
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ended.returncode, ended.stdout.split(), ended.stderr) == (0, ["True", "5"], "")
