"""What happens to a store's file behind the store's back: moved, replaced, removed, linked, forked, put back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ecphoryrag.errors import StoreError
from ecphoryrag.memory import Memory
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.settings import Settings
from ecphoryrag.store import backup_store, verify_store
from ecphoryrag.types import Generation, Usage

KILLED_IN_ADDING = """
import os, sys
from ecphoryrag.memory import Memory
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.settings import Settings

def documents():
    for number in range(70):
        yield {"id": f"new {number}", "text": "Carol Danvers flew over Ohio. " * 4 + str(number)}
    os.kill(os.getpid(), 9)

Memory.open(sys.argv[1], encoder=HashEncoder(), settings=Settings()).add(documents())
"""


def opened(path: Path, *, read_only: bool = False) -> Memory:
    return Memory.open(path, encoder=HashEncoder(), settings=Settings(), read_only=read_only)


def document(name: str) -> dict[str, object]:
    return {"id": name, "text": f"Alice Walker met Bob Marley of {name} in Paris."}


def made(path: Path, *names: str) -> Path:
    with opened(path) as memory:
        memory.add([document(name) for name in names])
    return path


def ids(path: Path) -> list[str]:
    with opened(path, read_only=True) as memory:
        return [one.id for one in memory.documents()]


def moved(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replaced(path: Path) -> None:
    shutil.copy(made(path.with_name("other"), "x"), path.with_name("copy"))
    path.with_name("copy").replace(path)


@pytest.mark.parametrize("happens", [moved, replaced, Path.unlink])
def test_a_file_that_is_another_by_now_is_neither_read_nor_written(
    tmp_path: Path, happens: Callable[[Path], None]
) -> None:
    path = made(tmp_path / "m.ecphory", "a", "b")
    with opened(path) as memory, opened(path, read_only=True) as reader:
        assert len(reader.documents()) == len(memory.documents()) == 2
        happens(path)
        for act in (
            lambda: memory.add(document("c")),
            lambda: memory.forget("a"),
            memory.documents,
            reader.documents,
        ):
            with pytest.raises(StoreError, match="moved, replaced or removed"):
                act()
    if happens is replaced:
        assert ids(path) == ["x"]


def test_closing_a_store_that_was_replaced_leaves_the_log_of_its_successor(tmp_path: Path) -> None:
    path = made(tmp_path / "m.ecphory", "a")
    old = opened(path)
    old.add(document("b"))
    for file in tmp_path.glob("m.ecphory*"):
        file.unlink()
    with opened(path) as new:
        new.add(document("c"))
        old.close()
        assert (tmp_path / "m.ecphory-wal").exists()
        new.add(document("d"))
    assert ids(path) == ["c", "d"]


def test_a_backup_is_not_mixed_with_the_log_of_the_store_whose_place_it_takes(tmp_path: Path) -> None:
    path = made(tmp_path / "m.ecphory", "a", "b", "c")
    backup_store(path, tmp_path / "backup")
    subprocess.run([sys.executable, "-c", KILLED_IN_ADDING, str(path)], check=False, timeout=60)
    log = tmp_path / "m.ecphory-wal"
    assert log.stat().st_size > 100_000
    shutil.copy(tmp_path / "backup", path)
    for read_only in (True, False):
        with pytest.raises(StoreError, match=r"m\.ecphory-wal does not belong to the store"):
            opened(path, read_only=read_only)
    with pytest.raises(StoreError, match="does not belong"):
        verify_store(path)
    assert path.read_bytes() == (tmp_path / "backup").read_bytes()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).rename(tmp_path / f"old{suffix}")
    assert ids(made(path, "d")) == ["a", "b", "c", "d"]
    assert verify_store(path, deep=True).sound


def test_the_log_of_a_killed_writer_is_still_used(tmp_path: Path) -> None:
    path = made(tmp_path / "m.ecphory", "a")
    subprocess.run([sys.executable, "-c", KILLED_IN_ADDING, str(path)], check=False, timeout=60)
    assert (tmp_path / "m.ecphory-wal").stat().st_size > 100_000
    assert len(ids(path)) > 50


def test_a_file_of_two_names_is_not_written(tmp_path: Path) -> None:
    path = made(tmp_path / "m.ecphory", "a")
    os.link(path, tmp_path / "m2.ecphory")
    for name in (path, tmp_path / "m2.ecphory"):
        with pytest.raises(StoreError, match="2 names"):
            opened(name)
        assert ids(name) == ["a"]
    (tmp_path / "m2.ecphory").unlink()
    assert ids(made(path, "b")) == ["a", "b"]


def test_the_second_name_that_a_killed_backup_leaves_is_taken_away(tmp_path: Path) -> None:
    path = made(tmp_path / "m.ecphory", "a")
    os.link(path, tmp_path / "m.ecphory.01234567.tmp")
    assert ids(made(path, "b")) == ["a", "b"]
    assert not (tmp_path / "m.ecphory.01234567.tmp").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_uses_no_store_that_it_has_not_opened(tmp_path: Path) -> None:
    """Where it could, what another process adds after the parent has closed the store would be lost."""
    path = made(tmp_path / "m.ecphory", "a")
    memory = opened(path)
    memory.add(document("b"))
    read, write = os.pipe()
    child = os.fork()
    if not child:  # no assertion can be told from here
        said = "said: "
        for act in (lambda: memory.add(document("c")), memory.documents):
            try:
                act()
            except StoreError as error:
                said += f"{'is a fork' in str(error)} "
        os.write(write, said.encode())
        memory.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"said: True True "
    os.close(read)
    os.close(write)
    memory.add(document("d"))
    memory.close()
    assert ids(path) == ["a", "b", "d"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_what_is_made_of_a_private_store_is_private_too(tmp_path: Path) -> None:
    from ecphoryrag.store.ledger import open_ledger  # noqa: PLC0415 - of this test alone

    path = made(tmp_path / "m.ecphory", "a")
    path.chmod(0o600)
    backup_store(path, tmp_path / "backup")
    ledger = open_ledger(path)
    ledger.keep("key", Generation("told", "stop", Usage()), "answer", "model")
    with opened(path) as memory:
        memory.add(document("b"))
        memory.recall("Who met Bob Marley?")
        found = {file.name: file.stat().st_mode & 0o077 for file in tmp_path.iterdir()}
    ledger.close()
    assert {"backup", "m.ecphory-ledger", "m.ecphory-wal"} <= found.keys()
    assert not any(found.values()), found
