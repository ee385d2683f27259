"""A mirrored folder: what is taken in, followed and forgotten, and above all what is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ecphoryrag import Memory, Settings
from ecphoryrag.errors import InputError
from ecphoryrag.settings import load_settings
from ecphoryrag.store.ledger import open_ledger
from ecphoryrag.types import Document, Generation, SyncReport, Usage
from tests.support.store_tables import tables

ROOT = Path(__file__).parents[2]
FILES = {
    "a.txt": "Anna Marsh wrote Silent Harbour.",
    "sub/b.md": "# Bela Toth\n\nBela Toth was born in Old Town.",
    "sub/deep/c.txt": "Old Town lies by the Silent Harbour.",
    "records.jsonl": '{"id": "r1", "text": "Record One."}\n{"id": "r2", "text": "Record Two."}\n',
    "one.json": '{"id": "single", "text": "A Single Record."}',
}
IDS = ["a.txt", "r1", "r2", "single", "sub/b.md", "sub/deep/c.txt"]


def settings() -> Settings:
    return load_settings({"encoder": "none", "generator": "none"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of notes in the working folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        write(tmp_path / "notes" / name, text)
    return tmp_path / "notes"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "store", settings=settings()) as made:
        yield made


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def ids(memory: Memory) -> list[str]:
    return [one.id for one in memory.documents()]


def counts(report: SyncReport) -> tuple[int, ...]:
    """Added, updated, moved, forgotten, kept, failed."""
    groups = (report.added, report.updated, report.moved, report.forgotten, report.kept, report.failed)
    return tuple(len(group) for group in groups)


def assert_mirrors(memory: Memory, folder: Path) -> None:
    """The same as a new store of the folder, and nothing more to do."""
    assert counts(memory.sync(folder)) == (0,) * 6
    path = folder.parent / "fresh"
    with Memory.open(path, settings=settings()) as fresh:
        fresh.sync(folder)
    expected, found = tables(path), tables(Path(memory.status().path))
    for table in found:
        assert found[table] == expected[table], table
    for file in folder.parent.glob("fresh*"):
        file.unlink()


def test_the_first_time_all_is_new_and_the_second_nothing_is(memory: Memory, folder: Path) -> None:
    tried = memory.sync(folder, dry_run=True)
    assert (tried.dry_run, sorted(tried.added), ids(memory)) == (True, IDS, [])
    assert sorted(memory.sync(folder).added) == IDS
    generation = memory.status().generation
    report = memory.sync(folder)
    assert (counts(report), report.unchanged, report.indexed) == ((0,) * 6, len(IDS), None)
    assert memory.status().generation == generation


def test_new_changed_moved_and_deleted_at_once(memory: Memory, folder: Path) -> None:
    memory.sync(folder)
    write(folder / "new.txt", "Brand New.")
    write(folder / "a.txt", "Anna Marsh wrote nothing.")
    (folder / "sub/b.md").rename(folder / "B.md")
    (folder / "sub/deep/c.txt").unlink()
    write(folder / "records.jsonl", '{"id": "r2", "text": "Record Two."}\n')
    before = ids(memory)
    tried = memory.sync(folder, dry_run=True)
    assert ids(memory) == before
    report = memory.sync(folder)
    for one in (tried, report):
        assert one.added == ("new.txt",)
        assert one.updated == ("a.txt",)
        assert one.moved == (("sub/b.md", "B.md"),)
        assert one.forgotten == ("r1", "sub/deep/c.txt")
        assert (one.unchanged, one.kept, one.failed) == (2, (), ())
    assert memory.get("B.md").source == str(folder / "B.md")
    assert memory.recall("Who was born in Old Town?").chunks[0].chunk.document_id == "B.md"
    assert_mirrors(memory, folder)


@pytest.mark.parametrize("name", ["notes", "notes/", "./notes", "notes/../notes", "absolute", "link", "inside"])
def test_however_the_folder_is_named_it_is_the_same(
    memory: Memory, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.sync(folder)
    (folder.parent / "link").symlink_to(folder)
    if name == "inside":
        monkeypatch.chdir(folder)
    given = {"absolute": str(folder) + "/", "inside": "."}.get(name, name)
    assert counts(memory.sync(given)) == (0,) * 6


def test_documents_from_elsewhere_are_never_touched(memory: Memory, folder: Path) -> None:
    other = folder.parent / "other"
    write(other / "x.txt", "Other folder.")
    write(folder / "alone.txt", "Alone.")
    memory.add(
        [{"id": "api", "text": "From Python."}, Document("sourced", "Of a page.", source="https://example.org/a")]
    )
    memory.add(Document("posing", "Says that it came from here.", source="notes/posing.txt"))
    memory.add_paths([folder / "alone.txt"])
    memory.sync(other)
    memory.sync(folder)
    shutil.rmtree(folder)
    folder.mkdir()
    report = memory.sync(folder, allow_empty=True)
    assert sorted(report.forgotten) == sorted([*IDS, "alone.txt"])
    assert ids(memory) == ["api", "notes/alone.txt", "posing", "sourced", "x.txt"]


def test_two_folders_with_a_file_of_the_same_path(memory: Memory, folder: Path) -> None:
    other = folder.parent / "other"
    write(other / "a.txt", "Another text.")
    write(other / "x.txt", "Other folder.")
    memory.sync(folder)
    report = memory.sync(other)
    assert report.added == ("x.txt",)
    assert [failure.source for failure in report.failed] == [str(other / "a.txt")]
    assert f"from {folder / 'a.txt'}, which is kept" in report.failed[0].reason
    assert memory.get("a.txt").text == FILES["a.txt"]
    (other / "a.txt").unlink()
    assert counts(memory.sync(other)) == (0,) * 6
    memory.add({"id": "y.txt", "text": "From Python."})
    write(other / "y.txt", "From a file.")
    assert "came from no file" in memory.sync(other).failed[0].reason


def test_a_folder_that_moved_as_a_whole_is_recognised(memory: Memory, folder: Path) -> None:
    memory.sync(folder)
    moved = folder.rename(folder.parent / "moved")
    report = memory.sync(moved)
    assert (counts(report), report.unchanged) == ((0,) * 6, len(IDS))
    assert memory.get("a.txt").source == str(moved / "a.txt")
    (moved / "a.txt").unlink()
    assert memory.sync(moved).forgotten == ("a.txt",)


def test_what_add_took_in_is_adopted(memory: Memory, folder: Path) -> None:
    memory.add_paths(["notes"])
    report = memory.sync("notes")
    assert (counts(report), report.unchanged) == ((0,) * 6, len(IDS))
    (folder / "a.txt").unlink()
    assert memory.sync("notes").forgotten == ("a.txt",)


def test_what_add_took_in_and_is_gone_is_named_and_kept(
    memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its path begins at a working folder, which may have been another than the present one."""
    memory.add_paths(["notes"])
    for name in ("a.txt", "records.jsonl"):
        (folder / name).unlink()
    for dry_run in (True, False, False):
        report = memory.sync("notes", dry_run=dry_run)
        assert {one.source for one in report.kept} == {"a.txt", "r1", "r2"}
        assert all("run `ecphory forget`" in one.reason for one in report.kept)
        assert not report.forgotten
    assert ids(memory) == IDS
    monkeypatch.chdir(folder)
    assert "a.txt" not in {one.source for one in memory.sync(".").kept}, "seen from there it would be another id"
    assert ids(memory) == IDS


def test_a_missing_or_empty_folder_is_refused(memory: Memory, folder: Path) -> None:
    memory.sync(folder)
    aside = folder.rename(folder.parent / "aside")
    with pytest.raises(InputError, match=r"not there.*Nothing was changed.*mounted"):
        memory.sync(folder)
    with pytest.raises(InputError, match="only a folder"):
        memory.sync(aside / "a.txt")
    with pytest.raises(InputError, match="empty path"):
        memory.sync("")
    folder.mkdir()
    for dry_run in (True, False):
        with pytest.raises(InputError, match=r"holds no document, and the store has 6 of it.*--allow-empty"):
            memory.sync(folder, dry_run=dry_run)
    assert ids(memory) == IDS
    assert len(memory.sync(folder, allow_empty=True).forgotten) == len(IDS)
    assert counts(memory.sync(folder)) == (0,) * 6


@pytest.mark.parametrize("how", ["too large", "binary", "pipe", "link", "ignored", "folder ignored", "hidden above"])
def test_a_file_that_is_there_and_not_read_is_not_gone(memory: Memory, folder: Path, how: str) -> None:
    memory.sync(folder)
    file = folder / "sub/deep/c.txt"
    match how:
        case "too large":
            file.write_bytes(b"x" * (settings().indexing.max_file_bytes + 1))
        case "binary":
            file.write_bytes(b"\0\1\2")
        case "pipe":
            file.unlink()
            os.mkfifo(file)
        case "link":
            file.rename(folder.parent / "elsewhere.txt")
            file.symlink_to(folder.parent / "elsewhere.txt")
        case "ignored":
            write(folder / ".gitignore", "c.txt\n")
        case "folder ignored":
            write(folder / ".gitignore", "deep/\n")
        case _:
            write(folder / "sub/.gitignore", "/deep\n")
    report = memory.sync(folder)
    assert [kept.source for kept in report.kept] == ["sub/deep/c.txt"]
    assert str(folder / "sub/deep") in report.kept[0].reason
    assert report.forgotten == ()
    assert ids(memory) == IDS


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_cannot_be_read_is_not_empty(memory: Memory, folder: Path) -> None:
    memory.sync(folder)
    (folder / "sub").chmod(0)
    try:
        report = memory.sync(folder)
    finally:
        (folder / "sub").chmod(0o700)
    assert [kept.source for kept in report.kept] == ["sub/b.md", "sub/deep/c.txt"]


def test_a_bad_line_keeps_the_records_of_its_file(memory: Memory, folder: Path) -> None:
    memory.sync(folder)
    write(folder / "records.jsonl", '{"id": "r2", "text": "Record Two."}\n{"id": "r1", "te\n')
    report = memory.sync(folder)
    assert (report.forgotten, [kept.source for kept in report.kept]) == ((), ["r1"])
    assert len(report.failed) == 1


def test_a_move_is_not_worked_on_again_and_its_replies_are_forgotten_with_it(memory: Memory, folder: Path) -> None:
    memory.sync(folder)
    ledger = open_ledger(Path(memory.status().path))
    ledger.keep("1", Generation("x", "stop", Usage(calls=1)), "index", "m", ("a.txt",))
    (folder / "a.txt").rename(folder / "A.txt")
    report = memory.sync(folder)
    assert (report.moved, report.indexed) == ((("a.txt", "A.txt"),), None)
    assert ledger.find("1") is not None
    memory.forget("A.txt")
    assert ledger.find("1") is None
    ledger.close()


def test_copies_of_one_content_move_one_by_one(memory: Memory, folder: Path) -> None:
    for name in ("x", "y"):
        write(folder / f"{name}.txt", "Twice the Same.")
    memory.sync(folder)
    (folder / "x.txt").rename(folder / "z.txt")
    assert memory.sync(folder).moved == (("x.txt", "z.txt"),)
    (folder / "y.txt").rename(folder / "y2.txt")
    (folder / "z.txt").rename(folder / "z2.txt")
    write(folder / "w.txt", "Twice the Same.")
    report = memory.sync(folder)
    assert (len(report.moved), len(report.added), report.forgotten) == (2, 1, ())
    assert_mirrors(memory, folder)


SYNC = """
import json, os, signal, sys
from ecphoryrag import Memory
from ecphoryrag.settings import load_settings
from ecphoryrag.store.sqlite import SqliteStore
left = int(sys.argv[3])
write = SqliteStore._write
def counted(self, **how):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(self, **how)
SqliteStore._write = counted
with Memory.open(sys.argv[1], settings=load_settings({"encoder": "none", "generator": "none"})) as memory:
    memory.sync(sys.argv[2])
print("done")
"""


@pytest.mark.parametrize("writes", [0, 1, 2, 3, 4])
def test_killed_before_any_writing_it_is_completed_by_the_next(folder: Path, writes: int) -> None:
    store = folder.parent / "killed"
    with Memory.open(store, settings=settings()) as memory:
        memory.sync(folder)
    write(folder / "new.txt", "Brand New.")
    write(folder / "sub/b.md", "Bela Toth was not.")
    (folder / "a.txt").rename(folder / "moved.txt")
    (folder / "one.json").unlink()
    words = [sys.executable, "-c", SYNC, str(store), str(folder), str(writes)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    ran = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
    assert ran.returncode == (-9 if writes < 4 else 0), ran.stderr
    with Memory.open(store, settings=settings()) as memory:
        assert {"moved.txt", "a.txt"} & set(ids(memory))
        memory.sync(folder)
        assert ids(memory) == ["moved.txt", "new.txt", "r1", "r2", "sub/b.md", "sub/deep/c.txt"]
        assert_mirrors(memory, folder)


def test_forgetting_by_source_and_filter(memory: Memory, folder: Path) -> None:
    memory.sync(folder)
    memory.add([{"id": "en", "text": "One.", "lang": "en"}, {"id": "de", "text": "Zwei.", "lang": "de"}])

    def chosen(where: dict[str, str] | None = None, source: str | tuple[str, ...] = ()) -> list[str]:
        report = memory.forget_where(where, source=source, dry_run=True)
        assert not report.forgotten
        return list(report.documents)

    assert chosen({"lang": "en"}) == ["en"]
    assert chosen(source="notes/sub") == chosen(source=f"{folder}/sub/") == ["sub/b.md", "sub/deep/c.txt"]
    assert chosen(source="notes/a.txt") == ["a.txt"]
    assert chosen(source="notes/records.jsonl") == ["r1", "r2"]
    assert chosen(source="notes/records.jsonl:2") == ["r2"]
    assert chosen(source="notes/*.txt") == ["a.txt"]
    assert chosen(source=("notes/**/*.txt", "notes/one.json")) == ["a.txt", "single", "sub/deep/c.txt"]
    assert chosen(source="note") == chosen(source="notes/su") == chosen({"lang": "en"}, "notes") == []
    for bad in ((), ("",), (" ",)):
        with pytest.raises(InputError):
            chosen(source=bad)
    with pytest.raises(InputError):
        memory.forget_where({})
    assert memory.forget_where(source="notes").forgotten
    assert ids(memory) == ["de", "en"]
    assert memory.forget_where({"lang": ["en", "de"]}, erase=True).receipt is not None
    assert json.dumps(ids(memory)) == "[]"


def test_a_disk_that_is_missing_below_the_folder_is_not_taken_for_deletion(memory: Memory, folder: Path) -> None:
    for number in range(12):
        write(folder / f"disk/part/{number}.txt", f"Document Number{number}.")
    memory.sync(folder)
    before = ids(memory)
    shutil.rmtree(folder / "disk/part")
    with pytest.raises(InputError, match=rf"12 of the {len(before)} documents .* 12 of .*disk, which is empty"):
        memory.sync(folder)
    (folder / "disk").rmdir()
    write(folder / "new.txt", "Brand New.")
    with pytest.raises(InputError, match=r"disk, which is not there.*Nothing was changed.*--allow-mass-forget"):
        memory.sync(folder)
    assert ids(memory) == before
    tried = memory.sync(folder, dry_run=True)
    assert (len(tried.forgotten), "--allow-mass-forget" in (tried.refused or "")) == (12, True)
    assert memory.sync(folder, dry_run=True, allow_mass_forget=True).refused is None
    report = memory.sync(folder, allow_mass_forget=True)
    assert (len(report.forgotten), report.added, report.refused) == (12, ("new.txt",), None)
    assert_mirrors(memory, folder)


def test_much_that_moved_or_less_than_half_is_no_question(memory: Memory, folder: Path) -> None:
    for number in range(24):
        write(folder / f"disk/{number}.txt", f"Document Number{number}.")
    memory.sync(folder)
    (folder / "disk").rename(folder / "other")
    assert counts(memory.sync(folder))[2:4] == (24, 0)
    for number in range(12):
        (folder / f"other/{number}.txt").unlink()
    assert len(memory.sync(folder).forgotten) == 12
