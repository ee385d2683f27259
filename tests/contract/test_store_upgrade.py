"""A store of an earlier format is copied before it is brought up to date, and the copy is told of and erased."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ecphoryrag import Memory
from ecphoryrag.errors import EncoderMismatch, StoreError
from ecphoryrag.indexing.walk import find_files
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.store import former, open_store, repair_store, verify_store
from ecphoryrag.store.schema import FORMAT
from tests.golden.make_store import described
from tests.support.durable.upgrading import NAME, OLDER, dump
from tests.support.indexed_documents import ENCODER, EXTRACTOR

OLDEST = OLDER[0]
COPY = f"{NAME}.format-1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of the first format."""
    path = tmp_path / NAME
    shutil.copy(OLDEST, path)
    return path


def names(path: Path) -> set[str]:
    return {file.name for file in path.parent.iterdir()}


@pytest.mark.parametrize("golden", OLDER, ids=lambda file: file.stem)
def test_the_copy_is_the_store_as_it_was(golden: Path, tmp_path: Path) -> None:
    path, original = tmp_path / NAME, tmp_path / "original"
    shutil.copy(golden, path)
    shutil.copy(golden, original)
    path.chmod(0o640)
    store = open_store(path, ENCODER.identity, EXTRACTOR)
    number = golden.stem.rpartition("-")[2]
    copy = tmp_path / f"{NAME}.format-{number}"
    assert str(copy) in store.notices[0]
    assert f"was of format {number} and is of format {FORMAT}" in store.notices[0]
    assert store.status().notices
    store.close()
    assert names(path) == {NAME, "original", copy.name} | ({f"{NAME}-cache"} & names(path))
    assert dump(copy) == dump(original)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o640
    again = open_store(path, ENCODER.identity, EXTRACTOR)
    assert again.notices == ()
    again.close()
    restored = open_store(copy, ENCODER.identity, EXTRACTOR)
    assert described(restored) == json.loads(golden.with_suffix(".json").read_text(encoding="utf-8"))
    restored.close()


def test_a_new_store_and_one_of_the_present_format_are_not_copied(tmp_path: Path) -> None:
    for _ in range(2):
        store = open_store(tmp_path / "new", ENCODER.identity, EXTRACTOR)
        assert store.notices == ()
        assert store.status().notices == ()
        store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["new"]


def test_reading_only_neither_copies_nor_changes(path: Path) -> None:
    data = path.read_bytes()
    with pytest.raises(StoreError, match=r"of format 1.*ecphory repair"):
        open_store(path, ENCODER.identity, EXTRACTOR, read_only=True)
    assert verify_store(path).sound
    assert (path.read_bytes(), names(path)) == (data, {NAME})


def test_the_same_store_twice_gives_one_copy_and_another_content_a_second(path: Path) -> None:
    open_store(path, ENCODER.identity, EXTRACTOR).close()
    kept = (path.parent / COPY).read_bytes()
    shutil.copy(OLDEST, path)
    open_store(path, ENCODER.identity, EXTRACTOR).close()
    assert names(path) == {NAME, COPY}
    (path.parent / COPY).write_bytes(b"mine")
    (path.parent / f"{COPY}.2").mkdir()
    shutil.copy(OLDEST, path)
    store = open_store(path, ENCODER.identity, EXTRACTOR)
    assert f"{COPY}.3" in store.notices[0]
    store.close()
    assert (path.parent / COPY).read_bytes() == b"mine"
    assert (path.parent / f"{COPY}.3").read_bytes() == kept


def test_what_a_killed_process_left_unfinished_is_no_copy_and_goes(path: Path) -> None:
    (path.parent / f"{COPY}.0123abcd.tmp").write_bytes(path.read_bytes()[:5000])
    (path.parent / f"{COPY}.mine").write_bytes(b"mine")
    open_store(path, ENCODER.identity, EXTRACTOR).close()
    assert names(path) == {NAME, COPY, f"{COPY}.mine"}


def test_without_room_nothing_is_changed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=len(data)))
        with pytest.raises(StoreError, match=rf"it needs {len(data) + former.MARGIN} bytes, and {len(data)} are free"):
            open_store(path, ENCODER.identity, EXTRACTOR)
    assert (path.read_bytes(), names(path)) == (data, {NAME})
    open_store(path, ENCODER.identity, EXTRACTOR).close()
    assert names(path) == {NAME, COPY}


def test_in_a_folder_that_cannot_be_written_nothing_is_changed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(former, "make_as_private", refuse)
        with pytest.raises(StoreError, match=r"format 1 .*Permission denied\. Nothing was changed: free space"):
            open_store(path, ENCODER.identity, EXTRACTOR)
    assert (path.read_bytes(), names(path)) == (data, {NAME})


def test_repair_and_a_wrong_encoder_tell_of_the_copy_too(path: Path) -> None:
    with pytest.raises(EncoderMismatch) as caught:
        open_store(path, HashEncoder(5).identity, EXTRACTOR)
    assert COPY in caught.value.__notes__[0]
    shutil.copy(OLDEST, path)
    report = repair_store(path)
    assert COPY in (report.upgraded or "")
    assert verify_store(path, deep=True).sound
    assert repair_store(path).upgraded is None


def test_several_processes_at_once_make_one_copy(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from ecphoryrag.store import open_store; "
        "from tests.support.indexed_documents import ENCODER, EXTRACTOR; "
        "store = open_store(Path(sys.argv[1]), ENCODER.identity, EXTRACTOR); print(len(store.notices)); store.close()"
    )
    words = [sys.executable, "-c", script, str(path)]
    root = Path(__file__).parents[2]
    opening = [subprocess.Popen(words, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert sorted(process.communicate()[0].strip() for process in opening) == ["0", "0", "0", "1"]
    assert {name for name in names(path) if "format" in name} == {COPY}


def test_erasing_removes_the_copy_which_holds_what_is_erased(path: Path) -> None:
    with Memory.open(path, encoder=ENCODER) as memory:
        assert memory.notices
        assert COPY in memory.status().notices[0]
        memory.forget("ida")
        assert COPY in names(path)
        (path.parent / f"{COPY}.0123abcd.tmp").write_bytes(path.read_bytes())
        receipt = memory.forget("lighthouse", erase=True)
        assert receipt is not None
        assert receipt.complete
        assert ("removed", COPY) in [(file.what, file.name) for file in receipt.files]
        assert memory.status().notices == ()
    assert not [file.name for file in path.parent.iterdir() if b"she left for Troms" in file.read_bytes()]


def test_a_copy_that_cannot_be_removed_leaves_the_erasure_unfinished(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(path, encoder=ENCODER) as memory:
        with monkeypatch.context() as patched:

            def refuse(self: Path, *, missing_ok: bool = False) -> None:
                del missing_ok
                if COPY in self.name:
                    raise PermissionError(13, "Permission denied")
                unlink(self, missing_ok=True)

            unlink = Path.unlink
            patched.setattr(Path, "unlink", refuse)
            receipt = memory.forget("lighthouse", erase=True)
        assert receipt is not None
        assert not receipt.complete
        assert [failure.source for failure in receipt.remaining] == [str(path.parent / COPY)]
        assert "remove it yourself" in receipt.remaining[0].reason
        assert memory.status().erasure
        again = memory.forget(erase=True)
        assert again is not None
        assert again.complete
    assert COPY not in names(path)


def test_a_copy_is_no_document(path: Path) -> None:
    open_store(path, ENCODER.identity, EXTRACTOR).close()
    met = list(find_files([path.parent]))
    assert {getattr(one, "reason", "") for one in met} == {"a store of this program"}
