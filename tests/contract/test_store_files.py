"""The SQLite store as a file: where it may lie, what it refuses, and what survives other processes and accidents."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from ecphoryrag.errors import (
    NotAStore,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreNotFound,
    StoreReadOnly,
    StoreTooNew,
)
from ecphoryrag.ports import Store
from ecphoryrag.store import connections, current, guarded, open_store, schema, sqlite, upgrade
from ecphoryrag.store.schema import APPLICATION_ID, FORMAT
from tests.support.indexed_documents import ENCODER, EXTRACTOR, contents, indexed_document, sample
from tests.support.reference_snapshot import reference_snapshot

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is made."""
    return tmp_path / "test.ecphory"


@contextmanager
def opened(path: Path, *, create: bool = True, read_only: bool = False) -> Iterator[Store]:
    store = open_store(path, ENCODER.identity, EXTRACTOR, create=create, read_only=read_only)
    try:
        yield store
    finally:
        store.close()


def fill(path: Path) -> None:
    with opened(path) as store:
        for document in sample():
            store.commit(document)
        store.flush()


def assert_sample(path: Path, *, read_only: bool = False) -> None:
    with opened(path, create=False, read_only=read_only) as store, store.reading() as view:
        assert contents(view.snapshot) == contents(reference_snapshot(sample()))


@pytest.mark.parametrize(
    "name", ["a b#c?d%20e&mode=ro.ecphory", "käse 東京.ecphory", "file:x.ecphory", "no suffix", "'q\".db"]
)
def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "with space #?% ü"
    folder.mkdir()
    fill(folder / name)
    assert_sample(folder / name)
    assert_sample(folder / name, read_only=True)
    assert {file.name for file in folder.iterdir()} == {name, name + "-cache"}


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fill(Path("file:rel.ecphory"))
    assert (tmp_path / "file:rel.ecphory").exists()


def test_the_file_says_what_it_is(path: Path) -> None:
    fill(path)
    with sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert plain.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        assert plain.execute("SELECT number, name FROM migrations").fetchall() == [
            (migration.number, migration.name) for migration in schema.MIGRATIONS
        ]
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert plain.execute("PRAGMA foreign_key_check").fetchall() == []
    plain.close()


def test_the_index_agrees_with_itself_after_updates_and_deletes(path: Path) -> None:
    fill(path)
    with opened(path) as store:
        store.delete(["a"])
        store.commit(indexed_document("b", "Quite Other"))
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    assert (
        connection.execute("SELECT count(*) FROM search_docsize").get
        == connection.execute("SELECT count(*) FROM chunks").get
    )
    connection.close()


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        ("text", NotAStore),
        ("short", NotAStore),
        ("other database", NotAStore),
        ("folder", NotAStore),
        ("newer", StoreTooNew),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_another_file_is_refused_and_left_alone(path: Path, what: str, kind: type[StoreError], read_only: bool) -> None:
    if what == "folder":
        path.mkdir()
    elif what == "other database":
        with sqlite3.connect(path) as plain:
            plain.execute("CREATE TABLE t (x)")
        plain.close()
    elif what == "newer":
        fill(path)
        with sqlite3.connect(path) as plain:
            plain.execute(f"PRAGMA user_version = {FORMAT + 1}")
        plain.close()
    else:
        path.write_bytes(b"x" * (5000 if what == "text" else 10))
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(kind, match=r"test\.ecphory"), opened(path, read_only=read_only):
        pass
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert {file.name for file in path.parent.iterdir()} <= {path.name, path.name + "-cache"}


def test_an_empty_file_becomes_a_store_only_where_one_may_be_made(path: Path) -> None:
    path.touch()
    with pytest.raises(NotAStore, match="empty"), opened(path, create=False):
        pass
    fill(path)
    assert_sample(path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nowhere"), opened(tmp_path / "nowhere" / "x.ecphory"):
        pass
    with pytest.raises(StoreNotFound, match="nowhere"), opened(tmp_path / "nowhere" / "x.ecphory", create=False):
        pass


def test_a_damaged_file_says_so(path: Path) -> None:
    fill(path)
    data = bytearray(path.read_bytes())
    for page in range(1, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
    path.write_bytes(data)
    (path.parent / (path.name + "-cache")).unlink(missing_ok=True)
    with pytest.raises(StoreDamaged, match=r"test\.ecphory"), opened(path) as store, store.reading():
        pass


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path)

    def fail(connection: apsw.Connection) -> None:
        connection.execute("CREATE TABLE half (done)")
        raise RuntimeError("no more")

    def succeed(connection: apsw.Connection) -> None:
        connection.execute("CREATE TABLE whole (done)")

    migrations = [
        *schema.MIGRATIONS,
        schema.Migration(FORMAT + 1, "make whole", succeed),
        schema.Migration(FORMAT + 2, "fail", fail),
    ]
    monkeypatch.setattr(upgrade, "MIGRATIONS", tuple(migrations))
    for module in (connections, upgrade):
        monkeypatch.setattr(module, "FORMAT", FORMAT + 2)
    monkeypatch.setattr(guarded, "MIGRATIONS", tuple(migrations))
    with pytest.raises(RuntimeError, match="no more"), opened(path):
        pass
    with pytest.raises(StoreError, match=rf"format {FORMAT}.*open it once for writing"), opened(path, read_only=True):
        pass
    monkeypatch.setattr(upgrade, "MIGRATIONS", tuple(migrations[:-1]))
    for module in (connections, upgrade):
        monkeypatch.setattr(module, "FORMAT", FORMAT + 1)
    monkeypatch.setattr(guarded, "MIGRATIONS", tuple(migrations[:-1]))
    with opened(path) as store:
        assert store.status().documents == len(sample())
    with sqlite3.connect(path) as plain:
        names = [name for (name,) in plain.execute("SELECT name FROM migrations ORDER BY number")]
        assert names == [*(migration.name for migration in schema.MIGRATIONS), "make whole"]
        assert plain.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").fetchone() == (0,)
    plain.close()


@contextmanager
def as_a_reader_of(folder: Path) -> Iterator[None]:
    """The folder cannot be written: for root, to whom nothing is forbidden, as another user."""
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    root = os.geteuid() == 0
    try:
        if root:
            os.setresuid(NOBODY, NOBODY, 0)
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)
        folder.chmod(stat.S_IRWXU)


NOBODY = 65534


@pytest.fixture
def readable() -> Iterator[Path]:
    """A folder below none that other users cannot enter."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_store_in_a_folder_that_cannot_be_written_is_read(readable: Path) -> None:
    path = readable / "test.ecphory"
    fill(path)
    assert_sample(path, read_only=True)
    files = {file.name: file.read_bytes() for file in readable.iterdir()}
    with as_a_reader_of(readable):
        assert_sample(path, read_only=True)
        with pytest.raises(StoreError, match=r"test\.ecphory"), opened(path) as store:
            store.commit(sample()[0])
    assert {file.name: file.read_bytes() for file in readable.iterdir()} == files


def test_a_store_that_expects_a_log_is_read_where_none_can_be_made(readable: Path) -> None:
    path = readable / "test.ecphory"
    fill(path)
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    with as_a_reader_of(readable):
        assert_sample(path, read_only=True)


def test_a_killed_writers_store_in_a_folder_that_cannot_be_written_is_refused_or_whole(readable: Path) -> None:
    """Its last documents are in the log alone: never may they be missing without a word."""
    path = readable / "test.ecphory"
    with process("for document in sample():\n    store.commit(document)\nos.kill(os.getpid(), 9)\n", path) as writer:
        writer.wait()
    (readable / "test.ecphory-shm").unlink()
    with as_a_reader_of(readable):
        try:
            assert_sample(path, read_only=True)
        except StoreError as error:
            assert "test.ecphory" in str(error)  # noqa: PT017 - either outcome is right
    assert_sample(path)


def test_reading_only_makes_no_file_and_changes_none(path: Path) -> None:
    fill(path)
    cache = path.parent / (path.name + "-cache")
    cache.unlink(missing_ok=True)
    before = path.read_bytes()
    with opened(path, read_only=True) as store, store.reading() as view:
        assert contents(view.snapshot) == contents(reference_snapshot(sample()))
        view.entity_vectors(ENCODER)
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


def test_a_reader_sees_what_a_later_writer_adds(path: Path) -> None:
    """Also one that was opened while the file was at rest, without a log."""
    fill(path)
    for read_only in (True, False):
        with opened(path, read_only=read_only) as reader:
            with reader.reading() as view:
                count = len(view.snapshot.document_ids)
            with opened(path) as writer:
                writer.commit(indexed_document(f"new {read_only}", "Brand New"))
                with reader.reading() as view:
                    assert len(view.snapshot.document_ids) == count + 1
            with reader.reading() as view:
                assert len(view.snapshot.document_ids) == count + 1
    assert sorted(file.name for file in path.parent.iterdir() if "cache" not in file.name) == [path.name]


def test_a_writer_waits_and_then_says_who_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    fill(path)
    with opened(path) as store:
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match=r"test\.ecphory is being written by another connection.*waited 0\.05 s"):
            store.commit(sample()[0])
        with pytest.raises(StoreBusy):
            store.delete(["a"])
        with store.reading() as view:
            assert len(view.snapshot.document_ids) == len(sample())
        other.execute("ROLLBACK")
        other.close()
        assert store.commit(sample()[0]) == "updated"
    assert_sample(path)


def test_after_closing_nothing_can_be_done(path: Path) -> None:
    with opened(path) as store:
        pass
    with pytest.raises(StoreError, match="closed"):
        store.commit(sample()[0])
    with pytest.raises(StoreError, match="closed"), store.reading():
        pass


def traces(path: Path, word: bytes) -> list[str]:
    return [file.name for file in path.parent.iterdir() if word in file.read_bytes().lower()]


def test_what_was_erased_is_gone_from_every_byte(path: Path) -> None:
    """Other documents are added around it, so that the index has merged it by then."""
    with opened(path) as store:
        for number in range(60):
            store.commit(indexed_document(f"{number}", f"Quagmire Number{number} came to Old Town."))
            if number == 20:
                store.commit(
                    indexed_document(
                        "secret", "Zyxxyvex told Wvutsrq.", "Zyxxyvex", {"k": "zyxxyvex"}, source="zyxxyvex"
                    )
                )
        with store.reading() as view:
            view.entity_vectors(ENCODER)
        store.flush()
        assert traces(path, b"zyxxyvex")
        assert store.erase(["secret"]).complete
        assert traces(path, b"zyxxyvex") == []
        assert traces(path, b"wvutsrq") == []
        store.commit(indexed_document("20", "Zyxxyvex once more"))
        store.commit(indexed_document("20", "and no more"))
        assert store.erase([]).complete
    assert traces(path, b"zyxxyvex") == []


def test_erasing_drops_the_vectors_of_what_is_no_more(path: Path) -> None:
    fill(path)
    vectors = path.parent / (path.name + "-vectors")
    with opened(path) as store:
        with store.reading() as view:
            before = len(view.entity_vectors(ENCODER))
        size = vectors.stat().st_size
        store.erase(["a", "東"])
        with store.reading() as view:
            gone = before - len(view.snapshot.entity_keys)
        assert gone > 0
        assert vectors.stat().st_size <= size - gone * (16 + 2 * 8)


def cache_of(path: Path) -> Path:
    return path.parent / (path.name + "-cache")


def test_the_cache_gives_the_same_snapshot(path: Path) -> None:
    fill(path)
    assert not cache_of(path).exists()
    assert_sample(path)
    with opened(path) as store, store.reading() as view:
        assert cache_of(path).exists()
        assert view.snapshot.chunk_rows.tolist() == _rows(path)
        assert contents(view.snapshot) == contents(reference_snapshot(sample()))


def _rows(path: Path) -> list[int]:
    with sqlite3.connect(path) as plain:
        found = plain.execute("SELECT c.row FROM chunks c JOIN documents d ON d.row = document ORDER BY id, ordinal")
        rows = [row for (row,) in found]
    plain.close()
    return rows


def test_the_cache_is_used_while_it_fits(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(path)
    assert_sample(path)

    def never(*_: object) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr(current, "build_snapshot", never)
    with monkeypatch.context() as patch:
        patch.setattr(current, "update_snapshot", never)
        assert_sample(path)
    new = indexed_document("new", "Brand New")
    with opened(path) as store:
        store.commit(new)
        with store.reading() as view:  # of the older cache, and what has changed since
            assert contents(view.snapshot) == contents(reference_snapshot([*sample(), new]))
        cache_of(path).unlink()
        store.delete(["new"])
        with store.reading() as view:  # of what is in memory
            assert contents(view.snapshot) == contents(reference_snapshot(sample()))
    cache_of(path).unlink(missing_ok=True)
    with opened(path) as store, pytest.raises(AssertionError, match="built again"), store.reading():
        pass


def test_a_damaged_cache_is_noticed(path: Path) -> None:
    fill(path)
    assert_sample(path)
    good = cache_of(path).read_bytes()
    spoilt = [good[:size] for size in (0, 4, 8, 100, len(good) // 2, len(good) - 1)]
    for at in (*range(64), *range(64, len(good), 97)):
        flipped = bytearray(good)
        flipped[at] ^= 1 << (at % 8)
        spoilt.append(bytes(flipped))
    with opened(path, read_only=True) as warm, warm.reading() as view:
        expected = contents(view.snapshot)
    for data in spoilt:
        cache_of(path).write_bytes(data)
        with opened(path, read_only=True) as store, store.reading() as view:
            assert contents(view.snapshot) == expected
    assert_sample(path)
    assert len(cache_of(path).read_bytes()) == len(good), "it was not written anew"


def test_an_older_cache_and_one_of_another_store_are_noticed(path: Path) -> None:
    fill(path)
    assert_sample(path)
    old = cache_of(path).read_bytes()
    copy = path.parent / "copy.ecphory"
    shutil.copy(path, copy)
    with opened(path) as store:
        store.commit(indexed_document("new", "Brand New"))
    with opened(copy) as store:
        store.commit(indexed_document("other", "Quite Other"))
        with store.reading():
            pass
    for swapped in (old, cache_of(copy).read_bytes()):
        cache_of(path).write_bytes(swapped)
        with opened(path) as store, store.reading() as view:
            expected = reference_snapshot([*sample(), indexed_document("new", "Brand New")])
            assert contents(view.snapshot) == contents(expected)


def test_a_cache_that_cannot_be_written_costs_only_time(path: Path) -> None:
    fill(path)
    cache_of(path).mkdir()
    assert_sample(path)
    assert {file.name for file in path.parent.iterdir()} == {path.name, path.name + "-cache"}


def process(code: str, path: Path) -> subprocess.Popen[str]:
    head = (
        "from tests.support.indexed_documents import *\nfrom ecphoryrag.store import open_store\nimport sys, os, time\n"
    )
    head += f"from pathlib import Path\nstore = open_store(Path({str(path)!r}), ENCODER.identity, EXTRACTOR)\n"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    return subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(code)], env=environment, stdout=subprocess.PIPE, text=True
    )


def test_another_process_writes_while_this_one_reads(path: Path) -> None:
    fill(path)
    code = """
    for number in range(40):
        store.commit(indexed_document(f"extra {number:02}", f"Number {number} came to Old Town."))
    store.close()
    """
    with opened(path) as store, process(code, path) as writer:
        seen = 0
        while writer.poll() is None or seen < 40:
            with store.reading() as view:
                extra = [name for name in view.snapshot.document_ids if name.startswith("extra")]
                ids = {one.chunk.document_id for one in view.chunks(range(view.snapshot.chunk_count))}
            assert extra == [f"extra {number:02}" for number in range(len(extra))]
            assert ids >= set(extra)
            assert len(extra) >= seen
            seen = len(extra)
            if writer.poll() not in (None, 0):
                pytest.fail("the writer failed")
        assert seen == 40


def test_two_processes_write_at_once(path: Path) -> None:
    code = """
    for number in range(20):
        store.commit(indexed_document(f"{os.getpid()} {number:02}", f"Number {number} came to Old Town."))
    store.close()
    """
    with process(code, path) as one, process(code, path) as other:
        assert (one.wait(60), other.wait(60)) == (0, 0)
    with opened(path) as store:
        assert store.status().documents == 40
        assert store.status().generation == 40


def test_killed_while_adding_it_holds_whole_documents_only(path: Path) -> None:
    code = r"""
    number = 0
    while True:
        store.commit(indexed_document(f"{number:05}", f"Number {number} came.\n" * 20, f"Title {number}"))
        print(number, flush=True)
        number += 1
    """
    for least in (3, 20):
        with process(code, path) as writer:
            assert writer.stdout is not None
            acknowledged = -1
            while acknowledged < least:
                acknowledged = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        with opened(path) as store:
            count = store.status().documents
            assert count > acknowledged
            expected = [
                indexed_document(f"{number:05}", f"Number {number} came.\n" * 20, f"Title {number}")
                for number in range(count)
            ]
            with store.reading() as view:
                assert contents(view.snapshot) == contents(reference_snapshot(expected))


def test_a_store_left_by_a_killed_writer_is_read_only_readable(path: Path) -> None:
    code = """
    for document in sample():
        store.commit(document)
    os.kill(os.getpid(), 9)
    """
    with process(code, path) as writer:
        writer.wait()
    assert_sample(path, read_only=True)


class SyncCounter(apsw.VFS):
    """The system's own files, with a count of how often each is made safe."""

    def __init__(self) -> None:
        self.synced: dict[str, int] = {}
        super().__init__("counting", "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        counter = self
        label = "" if name is None else Path(str(name if isinstance(name, str) else name.filename())).name

        class File(apsw.VFSFile):
            def __init__(self) -> None:
                super().__init__("", name, flags)

            def xSync(self, how: int) -> None:  # noqa: N802
                counter.synced[label] = counter.synced.get(label, 0) + 1
                super().xSync(how)

        return File()


def test_flush_makes_the_log_safe_even_while_a_reader_holds_an_old_state(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(path)
    counter = SyncCounter()
    real = apsw.Connection

    def connection(name: str, flags: int) -> apsw.Connection:
        return real(name, flags=flags, vfs="counting")

    monkeypatch.setattr(apsw, "Connection", connection)
    log = path.name + "-wal"
    with opened(path) as store, store.reading() as view:
        for number in range(3):
            store.commit(indexed_document(f"new {number}", "Brand New"))
        before = counter.synced.get(log, 0)
        store.flush()
        assert counter.synced[log] > before
        after = dict(counter.synced)
        store.flush()
        assert counter.synced == after, "there was nothing to make safe"
        assert "new 0" not in view.snapshot.document_ids
        with store.reading() as newer:
            assert "new 2" in newer.snapshot.document_ids
    counter.unregister()


def test_a_full_disk_keeps_what_was_committed(path: Path) -> None:
    fill(path)
    with opened(path) as store:
        assert isinstance(store, sqlite.SqliteStore)
        assert store._writer is not None
        pages = store._writer.execute("PRAGMA page_count").get
        store._writer.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="disk is full"):
            store.commit(indexed_document("big", "Many Words " * 5000))
        with store.reading() as view:
            assert contents(view.snapshot) == contents(reference_snapshot(sample()))
    assert_sample(path)


def test_a_file_that_cannot_be_written_is_reported(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everything")
    fill(path)
    path.chmod(stat.S_IRUSR)
    with pytest.raises(StoreReadOnly), opened(path) as store:
        store.commit(sample()[0])
