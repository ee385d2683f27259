"""Who writes, writes through the log, whatever others have done to it meanwhile, and keeps the locks that guard it."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from ecphoryrag.errors import NotAStore
from ecphoryrag.store import verify_store
from ecphoryrag.store.connections import ReaderPool
from ecphoryrag.store.sqlite import SqliteStore
from ecphoryrag.store.standing import first_bytes
from ecphoryrag.types import Document
from tests.support.durable.disk import Plan, installed
from tests.support.durable.story import damage, document, opened


def mode(path: Path) -> str:
    """The journal mode as the file's header says it."""
    return "wal" if first_bytes(path, 20)[18] == 2 else "delete"


def test_a_writer_that_has_not_written_yet_keeps_its_log_when_another_closes(tmp_path: Path) -> None:
    path = tmp_path / "s.ecphory"
    opened(path).close()
    with opened(path) as first:
        with opened(path) as second:
            second.add([document("two", 1)])
        first.add([document("one", 1)])
        assert mode(path) == "wal"
        assert path.with_name(path.name + "-wal").exists()
    assert mode(path) == "delete"


def test_a_memory_writes_through_the_log_after_it_was_repaired(tmp_path: Path) -> None:
    path = tmp_path / "s.ecphory"
    with opened(path) as memory:
        memory.add([document("one", 1)])
    with opened(path) as memory:
        damage(path)
        memory.repair()
        memory.add([document("two", 1)])
        assert mode(path) == "wal"


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not list its locks")
def test_checking_a_store_leaves_the_locks_of_those_who_have_it_open(tmp_path: Path) -> None:
    path = tmp_path / "s.ecphory"

    def locks() -> list[str]:
        node = f":{path.stat().st_ino}"
        listed = (line.split() for line in Path("/proc/locks").read_text().splitlines())
        return sorted(" ".join(words[3:]) for words in listed if str(os.getpid()) in words and words[5].endswith(node))

    with opened(path) as memory:
        memory.add([document("one", 1)])
        before = locks()
        assert before
        memory.verify(deep=True)
        assert locks() == before


def test_what_is_no_store_is_still_refused_by_its_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"x")
    with pytest.raises(NotAStore, match="does not begin"):
        verify_store(tmp_path / "short")


def test_a_reading_undoes_what_a_writer_has_left_half_done(tmp_path: Path) -> None:
    """Through a rollback journal, as a store is written to while it is brought up to date."""
    path = tmp_path / "s.ecphory"
    with opened(path) as memory:
        memory.add([document("one", 1)])
    pool = ReaderPool(path)
    with pool.connection() as reading:
        before = reading.execute("SELECT count(*) FROM properties").get
    plan = Plan(fault="ioerr", lasting=True, recording=True)
    with installed(plan):
        writer = apsw.Connection(str(path))
        writer.execute("PRAGMA cache_size = 1")  # pages go to the file before the transaction has ended
        writer.execute("BEGIN IMMEDIATE")
        for number in range(300):
            writer.execute("INSERT INTO properties VALUES (?, zeroblob(3000))", (f"p{number}",))
        assert [event for event in plan.events if event.file == "main" and event.act == "write"]
        plan.at = plan.count + 1  # so that the rolling back fails, as if the process had been killed
        with pytest.raises(apsw.IOError):
            writer.execute("COMMIT")
        writer.close()
        plan.mend()
    assert path.with_name(path.name + "-journal").exists()
    with pool.connection() as reading:
        assert reading.execute("SELECT count(*) FROM properties").get == before
    pool.close()


@pytest.mark.parametrize("change", ["delete", "update"])
def test_what_a_killed_process_had_begun_to_forget_is_gone_when_another_has_erased(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.ecphory"
    with opened(path) as memory:
        memory.add([Document("secret", "Zyxxyvex met Wvutsrq."), *(document(f"doc{at}", 1) for at in range(5))])
        memory.recall("Zyxxyvex")
    with monkeypatch.context() as dying:
        dying.setattr(SqliteStore, "flush", lambda _: None)  # as if the process were killed before it
        with opened(path) as memory:
            if change == "delete":
                memory.forget("secret")
            else:
                memory.add(Document("secret", "Nothing is told any more."))
    assert any(b"zyxxyvex" in file.read_bytes().lower() for file in tmp_path.iterdir())
    with opened(path) as memory:
        receipt = memory.forget(erase=True)
        assert receipt is not None
        assert receipt.complete
    for file in tmp_path.iterdir():
        assert b"zyxxyvex" not in file.read_bytes().lower(), file.name
