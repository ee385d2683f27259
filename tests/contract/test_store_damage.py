"""A store whose file, path or caches are not as they should be: an error that says so, never a bare one of SQLite's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import numpy as np
import pytest
from numpy.typing import NDArray

from ecphoryrag.errors import EcphoryError, InputError, NotAStore, StoreDamaged, StoreError
from ecphoryrag.ports import Store
from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store import current, open_store, snapshot_cache
from tests.support.indexed_documents import ENCODER, EXTRACTOR, contents, indexed_document, sample
from tests.support.reference_snapshot import reference_snapshot


@contextmanager
def opened(path: Path, *, read_only: bool = False) -> Iterator[Store]:
    store = open_store(path, ENCODER.identity, EXTRACTOR, create=True, read_only=read_only)
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with the sample in it, at rest and without caches."""
    place = tmp_path / "test.ecphory"
    with opened(place) as store:
        for document in sample():
            store.commit(document)
        store.flush()
    return place


def read_all(path: Path, *, read_only: bool) -> None:
    """All that can be read, and a commit and a deletion if allowed."""
    with opened(path, read_only=read_only) as store:
        store.status()
        for summary in store.documents({"any.key": 1}) + store.documents():
            store.indexed(summary.id)
        with store.reading() as view:
            count, entities = view.snapshot.chunk_count, len(view.snapshot.entity_keys)
            view.chunks(range(count))
            view.mentions(range(count))
            view.entities(range(entities))
            view.entity_vectors(ENCODER)
            view.matching({"any.key": 1})
        if not read_only:
            store.commit(indexed_document("new", "Brand New met Old Town."))
            store.delete([sample()[0].document.id])


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM properties WHERE name = 'store'",
        "UPDATE properties SET value = '{' WHERE name = 'encoder'",
        "UPDATE properties SET value = '{\"name\": 1}' WHERE name = 'encoder'",
        "UPDATE documents SET metadata = '{'",
        "UPDATE documents SET headings = '[[1]'",
        "UPDATE documents SET text = CAST(x'ff41' AS TEXT)",
        "UPDATE chunks SET headings = ']'",
        "UPDATE chunks SET vector = x'00'",
        "UPDATE mentions SET about = 9",
        "UPDATE mentions SET field = 9",
        "UPDATE entities SET key = CAST(x'ff' || row AS TEXT)",
        "DELETE FROM documents WHERE row = 1",
        "DELETE FROM chunks WHERE row = 1",
        "DELETE FROM entities WHERE row = 1",
        "DELETE FROM search_data WHERE id > 10",
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_contents_that_contradict_themselves_are_called_damage(path: Path, damage: str, read_only: bool) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(damage)
    assert connection.total_changes() > 0
    connection.close()
    with pytest.raises(StoreDamaged, match=r"test\.ecphory.*damaged"):
        read_all(path, read_only=read_only)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happened_to_its_bytes_it_is_read_or_refused(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(path.read_bytes())
    if seed % 4 == 0:
        data = data[: chance.randrange(len(data))]
    elif seed % 4 == 1:
        at = chance.randrange(len(data))
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    else:
        for _ in range(seed // 4):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    try:
        read_all(path, read_only=seed % 3 == 0)
    except EcphoryError as error:
        assert str(error)  # noqa: PT017 - either outcome is right


def test_a_callers_own_mistake_is_not_called_damage(path: Path) -> None:
    with opened(path) as store, pytest.raises(KeyError, match="mine"), store.reading():
        raise KeyError("mine")


@pytest.mark.parametrize("name", ["x" * 250, "x" * 256, "x" * 5000, "nul\0", "half\ud800"])
@pytest.mark.parametrize("read_only", [False, True])
def test_an_impossible_path_is_refused_and_makes_no_file(tmp_path: Path, name: str, read_only: bool) -> None:
    with pytest.raises(StoreError, match="name another path"), opened(tmp_path / name, read_only=read_only):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_path_without_a_name_is_a_folder(name: str) -> None:
    with pytest.raises(NotAStore, match="folder"), opened(Path(name)):
        pass


def test_a_link_to_a_store_is_that_store(path: Path, tmp_path: Path) -> None:
    """With one set of caches, so that forgetting under one name leaves nothing under another."""
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link"
    link.symlink_to(path)
    with opened(link) as store, store.reading() as view:
        assert contents(view.snapshot) == contents(reference_snapshot(sample()))
    assert [file.name for file in link.parent.iterdir()] == ["link"]


@pytest.mark.parametrize("full", [False, True])
def test_a_folder_in_place_of_a_cache_costs_only_time(path: Path, full: bool) -> None:
    for suffix in ("-cache", "-vectors"):
        folder = path.with_name(path.name + suffix)
        folder.unlink(missing_ok=True)
        folder.mkdir()
        if full:
            (folder / "file").touch()
    with opened(path) as store:
        store.commit(indexed_document("new", "Brand New"))
        store.delete(["new"])
        with store.reading() as view:
            view.entity_vectors(ENCODER)
            assert contents(view.snapshot) == contents(reference_snapshot(sample()))


def test_forgetting_removes_what_a_killed_process_left_of_a_cache(path: Path) -> None:
    left, other = (path.with_name(f"{name}-cache.ab12.tmp") for name in (path.name, "other"))
    left.write_bytes(b"secret")
    other.write_bytes(b"not ours")
    with opened(path) as store:
        store.delete([sample()[0].document.id])
    assert not left.exists()
    assert other.exists()


def test_a_cache_written_while_its_documents_are_forgotten_does_not_stay(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = snapshot_cache.write_snapshot

    def forget_first(cache: Path, stamp: str, snapshot: Snapshot, half: NDArray[np.float16]) -> bool:
        with opened(path) as other:
            other.delete(["secret"])
        return write(cache, stamp, snapshot, half)

    with opened(path) as store:
        store.commit(indexed_document("secret", "Zyxxyvex told Wvutsrq."))
        monkeypatch.setattr(current, "write_snapshot", forget_first)
        with store.reading() as view:
            assert "zyxxyvex" in view.snapshot.entity_positions
    for file in path.parent.iterdir():
        if file != path:  # which is for erasing to clear
            assert b"zyxxyvex" not in file.read_bytes().lower(), file.name


@pytest.mark.parametrize("value", [10**400, -(2**64), 10**5000], ids=["large", "negative", "unprintable"])
def test_a_filter_by_an_integer_that_no_document_can_hold_is_refused(path: Path, value: int) -> None:
    with opened(path, read_only=True) as store:
        with pytest.raises(InputError, match="64 bits"):
            store.documents({"year": value})
        with store.reading() as view, pytest.raises(InputError, match="64 bits"):
            view.matching({"year": [1, value]})
