"""A backup is one whole state of the store, whatever others do meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from ecphoryrag.errors import StoreDamaged, StoreError, StoreNotFound
from ecphoryrag.store import backup_store, verify_store
from tests.contract.test_store_verify import damage, files, opened, path
from tests.support.store_tables import tables

__all__ = ["path"]

WRITER = """
import sys, time
from pathlib import Path
from ecphoryrag.store import open_store
from tests.support.indexed_documents import ENCODER, EXTRACTOR, indexed_document
store = open_store(Path(sys.argv[1]), ENCODER.identity, EXTRACTOR)
print("ready", flush=True)
for number in range(10_000):
    store.commit(indexed_document(f"doc {number}", f"Town {number} met Old Town."))
    time.sleep(0.001)
"""


def test_the_copy_holds_the_same_and_the_store_is_not_touched(path: Path, tmp_path: Path) -> None:
    before = files(path)
    report = backup_store(path, tmp_path / "copy")
    copy = tmp_path / "copy"
    assert tables(copy) == tables(path)
    assert verify_store(copy, deep=True).flaws == ()
    assert (report.documents, report.bytes) == (verify_store(path).documents, copy.stat().st_size)
    assert files(path) == before | {"copy": copy.read_bytes()}


def test_it_is_made_while_another_process_writes(path: Path, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=root, stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        counts = [backup_store(path, tmp_path / f"copy {at}").documents for at in range(3)]
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()
    assert counts == sorted(counts)
    for at in range(3):
        assert verify_store(tmp_path / f"copy {at}", deep=True).flaws == ()
        with opened(tmp_path / f"copy {at}") as store:
            assert len(store.documents()) == counts[at]


def test_nothing_is_written_over(path: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    for target in (tmp_path / "there", path):
        with pytest.raises(StoreError, match="there already"):
            backup_store(path, target)
    assert (tmp_path / "there").read_text() == "mine"
    with pytest.raises(StoreNotFound):
        backup_store(tmp_path / "none", tmp_path / "copy")
    with pytest.raises(StoreError, match="does not exist"):
        backup_store(path, tmp_path / "no folder" / "copy")


def test_a_copy_that_is_not_sound_is_not_kept(path: Path, tmp_path: Path) -> None:
    damage(path, "INSERT INTO entities (key) VALUES ('nobody')")
    before = files(path)
    with pytest.raises(StoreDamaged, match="not sound"):
        backup_store(path, tmp_path / "copy")
    assert files(path) == before


def test_the_copy_is_at_rest(path: Path, tmp_path: Path) -> None:
    with opened(path):
        backup_store(path, tmp_path / "copy")
    connection = apsw.Connection(str(tmp_path / "copy"))
    assert connection.execute("PRAGMA journal_mode").get == "delete"
    connection.close()
    assert not [file for file in tmp_path.iterdir() if file.name.startswith("copy") and file.name != "copy"]
