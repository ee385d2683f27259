"""A snapshot that is brought up to date after each change equals, value by value, one that is built."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from unittest import mock

import apsw
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ecphoryrag.ports import IndexedDocument
from ecphoryrag.snapshot import Snapshot
from ecphoryrag.store import current, open_store
from ecphoryrag.store.snapshots import build_snapshot
from tests.property.test_snapshot import IDS, QUICK, indexed_documents
from tests.support.indexed_documents import ENCODER, EXTRACTOR, contents, indexed_document
from tests.support.reference_snapshot import reference_snapshot

NAMES = st.sampled_from(
    ["Sir Old Town", "Old Town", "Anna Maria Marsh", "Anna Marsh", "Maria Marsh", "Bela", "The Old Town of Marsh"]
)
SENTENCES = st.lists(st.one_of(NAMES, NAMES.map(str.lower)), min_size=1, max_size=4).map(" met ".join)
NAMED = st.builds(indexed_document, IDS, st.lists(SENTENCES, max_size=3).map("\n".join), st.one_of(st.just(""), NAMES))
STEPS = st.lists(st.tuples(st.one_of(indexed_documents(), NAMED, NAMED), st.booleans()), min_size=2, max_size=9)


def all_of(snapshot: Snapshot) -> dict[str, object]:
    """Also the rows, and every bit of the vectors and types of the arrays."""
    arrays = {
        f"{name}.{part}": getattr(getattr(snapshot, name), part).dtype.str
        for name in ("mentions", "about", "linked", "short_forms", "term_counts", "title_term_counts")
        for part in ("data", "indices", "indptr")
    }
    exact = {"rows": snapshot.chunk_rows.tolist(), "vectors": snapshot.vectors.tobytes(), "names": dict(snapshot.names)}
    kinds = {name: getattr(snapshot, name).dtype.str for name in ("chunk_rows", "chunk_documents", "aliases")}
    return (
        contents(snapshot) | arrays | exact | kinds | {"generation": snapshot.generation, "order": list(snapshot.terms)}
    )


def built(path: Path) -> Snapshot:
    """By an opening that has nothing to start from."""
    path.with_name(f"{path.name}-cache").unlink(missing_ok=True)
    store = open_store(path, ENCODER.identity, EXTRACTOR, create=False, read_only=True)
    with store.reading() as view:
        made = view.snapshot
    store.close()
    return made


@QUICK
@given(STEPS)
def test_an_update_is_what_building_gives(steps: Sequence[tuple[IndexedDocument, bool]]) -> None:
    """A step adds or replaces its document, or forgets the one of its id if that is there."""
    held: dict[str, IndexedDocument] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test.ecphory"
        store = open_store(path, ENCODER.identity, EXTRACTOR)
        with store.reading():
            pass
        with mock.patch.object(current, "build_snapshot", side_effect=AssertionError("built again")):
            found = []
            for document, forget in steps:
                if forget and document.document.id in held:
                    store.delete([document.document.id])
                    del held[document.document.id]
                else:
                    store.commit(document)
                    held[document.document.id] = document
                with store.reading() as view:
                    found.append(contents(view.snapshot))
                    assert found[-1] == contents(reference_snapshot(held.values(), dimension=8))
                    last = view.snapshot
        for matrix in (last.mentions, last.linked, last.short_forms, last.term_counts):
            matrix.check_format(full_check=True)
        assert all_of(last) == all_of(built(path))
        assert last.vectors.dtype == np.float32
        store.close()


def test_names_that_begin_or_cease_to_be_known_are_found_in_documents_that_stay(tmp_path: Path) -> None:
    """A link and a short form that each change of another document brings, takes, or leaves."""
    said = indexed_document("said", "they came by the silent harbour\nhere the old silent harbour lay")
    full = indexed_document("full", "Anna Maria Marsh wrote.", "Anna Maria Marsh")
    titled = indexed_document("titled", "It was quiet.", "Silent Harbour")
    second = indexed_document("second", "Also quiet.", "Silent Harbour")
    # Here the name is met after another, and not as what the text is about: it stays known, and links no more.
    met = indexed_document("met", "Bela saw Silent Harbour and Anna Marsh.")
    short = indexed_document("short", "She wrote.", "Anna Marsh")
    steps: list[IndexedDocument | str] = [
        said,
        full,
        titled,
        second,
        "titled",
        met,
        "second",
        titled,
        short,
        "short",
        "met",
    ]
    held: dict[str, IndexedDocument] = {}
    links, forms = [], []
    store = open_store(tmp_path / "test.ecphory", ENCODER.identity, EXTRACTOR)
    with store.reading():
        pass
    with mock.patch.object(current, "build_snapshot", side_effect=AssertionError("built again")):
        for step in steps:
            if isinstance(step, str):
                store.delete([step])
                del held[step]
            else:
                store.commit(step)
                held[step.document.id] = step
            with store.reading() as view:
                assert contents(view.snapshot) == contents(reference_snapshot(held.values(), dimension=8))
                links.append(view.snapshot.linked.nnz)
                forms.append(view.snapshot.short_forms.nnz)
    store.close()
    assert links == [0, 0, 2, 2, 2, 2, 0, 2, 2, 2, 2]
    assert forms == [0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0]


def test_what_a_commit_does_not_tell_is_read_again(tmp_path: Path) -> None:
    """Another program's commit, a store's copy that went its own way, and entries that were tampered with."""
    path = tmp_path / "test.ecphory"
    for spoil in (
        "UPDATE properties SET value = '00' WHERE name = 'state'",
        "DELETE FROM properties WHERE name = 'change 2'",
        "UPDATE properties SET value = '[1, 2, 3]' WHERE name = 'change 2'",
        "UPDATE properties SET value = replace(value, '[2]', '{}') WHERE name = 'change 2'",
        "UPDATE properties SET value = x'ff' WHERE name = 'change 2'",
    ):
        for file in tmp_path.iterdir():
            file.unlink()
        one, other = indexed_document("one", "Anna met Bela."), indexed_document("other", "Cara met Bela.")
        store = open_store(path, ENCODER.identity, EXTRACTOR)
        store.commit(one)
        with store.reading():
            pass
        store.commit(other)
        store.close()
        with closing(apsw.Connection(str(path))) as plain:
            plain.execute(spoil)
        store = open_store(path, ENCODER.identity, EXTRACTOR)
        with (
            mock.patch.object(current, "build_snapshot", wraps=build_snapshot) as build,
            store.reading() as view,
        ):
            assert contents(view.snapshot) == contents(reference_snapshot([one, other], dimension=8)), spoil
        store.close()
        assert build.call_count == 1, spoil
