"""Whatever is added, forgotten, merged, split and undone: what is shown is that of the slow oracle."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ecphoryrag.decisions import Selection
from ecphoryrag.errors import DocumentNotFound, EntityNotFound, InputError
from ecphoryrag.ports import IndexedDocument, Store
from ecphoryrag.store import export_store, open_store, verify_store
from tests.support.indexed_documents import ENCODER, EXTRACTOR, contents, indexed_document
from tests.support.reference_decisions import Reference

IDS = ["a", "b", "c", "é"]
WORDS = ["Old", "Town", "Old Town", "Mercury", "mercury", "IM", "Ida Moen", "met", "of", "near", "東京", "is", "\n"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=10).map(" ".join)
NUMBERS = st.integers(0, 30)
MERGES = st.tuples(st.just("merge"), st.lists(NUMBERS, min_size=1, max_size=3), st.none() | NUMBERS)
SPLITS = st.tuples(st.just("split"), NUMBERS, st.sampled_from(["x", "y z"]), st.sampled_from(range(5)), NUMBERS)
OPERATIONS = st.one_of(
    MERGES,
    SPLITS,
    MERGES,
    SPLITS,
    st.tuples(st.just("add"), st.sampled_from(IDS), TEXTS, st.sampled_from(["", "Mercury", "Old Town"]), NUMBERS),
    st.tuples(st.just("delete"), st.sampled_from(IDS)),
    st.tuples(st.just("undo"), NUMBERS),
)
FIRST = (
    ("add", "a", "Mercury met Ida Moen \n near Old Town is IM", "Old Town", 0),
    ("add", "b", "near old town mercury is \n Ida Moen of Mercury Mercury", "", 1),
    ("add", "c", "IM is near Mercury \n met of old town \n Town met Old", "Mercury", 2),
)
"""What is there to begin with, so that there is something to decide."""
QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def written(path: Path) -> list[str]:
    """The export without history."""
    output = io.StringIO()
    export_store(path, output, vectors=True)
    lines = output.getvalue().split("\n")
    header = {key: value for key, value in json.loads(lines[0]).items() if key not in ("decisions", "ecphory_export")}
    return [json.dumps(header), *(line for line in lines[1:] if not line.startswith('{"decision"'))]


def shown_names(store: Store) -> list[str]:
    """A name for each entity, as a user would write it."""
    with store.reading() as view:
        return [one.name for one in view.entities(range(len(view.snapshot.entity_keys)))]


def pick(names: list[str], at: int) -> str:
    return names[at % len(names)] if names else "nobody"


def selection(store: Store, name: str, how: int, number: int) -> Selection:
    if how == 0:
        return Selection(documents=(IDS[number % len(IDS)],))
    if how == 1:
        return Selection(where={"n": number % 3})
    if how == 2:
        return Selection(chunks=((IDS[number % len(IDS)], number % 2),))
    if how == 3:
        return Selection(mentions=(1 + number % 4,))
    return Selection(documents=(IDS[number % len(IDS)],), where={"n": number % 3}, mentions=(1,))


def follow(store: Store, held: dict[str, IndexedDocument], operation: tuple[Any, ...]) -> None:
    names = store.decisions()
    kind, *rest = operation
    if kind == "add":
        id_, text, title, number = rest
        held[id_] = indexed_document(id_, text, title, {"n": number % 3})
        store.commit(held[id_])
    elif kind == "delete":
        if held.pop(rest[0], None) is not None:
            store.delete([rest[0]])
    elif kind == "merge":
        known = shown_names(store)
        names.merge([pick(known, at) for at in rest[0]], None if rest[1] is None else pick(known, rest[1]))
    elif kind == "split":
        name = pick(shown_names(store), rest[0])
        names.split(name, rest[1], selection(store, name, rest[2], rest[3]))
    else:
        names.undo(1 + rest[0] % 6)


def assert_as_told(store: Store, held: dict[str, IndexedDocument]) -> None:
    decided = [one.decision for one in store.decisions().all()]
    reference = Reference(held.values(), decided)
    with store.reading() as view:
        shot = view.snapshot
        keys = list(shot.entity_keys)

        def cells(matrix: Any) -> dict[tuple[int, str], int]:
            found = matrix.tocoo()
            rows, columns, values = found.row.tolist(), found.col.tolist(), found.data.tolist()
            return {(row, keys[at]): int(value) for row, at, value in zip(rows, columns, values, strict=True)}

        got = {
            "keys": keys,
            "mentions": cells(shot.mentions),
            "about": cells(shot.about),
            "linked": set(cells(shot.linked)),
            "aliases": {frozenset((keys[one], keys[other])) for one, other in shot.aliases.tolist()},
        }
        assert got == reference.contents()
        entities = view.entities(range(len(keys)))
        assert {one.key: (set(one.aliases), one.mention_count) for one in entities} == reference.spellings()
        for stem, key in reference.key.items():
            assert keys[shot.entity_positions[stem]] == key
        for row, mentions in enumerate(view.mentions(range(shot.chunk_count))):
            met = sorted(reference.key[stem] for at, _, _, _, stem in reference.met if at == row)
            assert sorted(one.key for one in mentions) == met
    again = open_store(store.path, ENCODER.identity, EXTRACTOR, read_only=True)
    with again.reading() as cached, store.reading() as view:
        assert contents(cached.snapshot) == contents(view.snapshot)
        assert dict(cached.snapshot.names) == dict(view.snapshot.names)
    again.close()


@QUICK
@given(st.lists(OPERATIONS, min_size=6, max_size=16), st.randoms(use_true_random=False))
def test_what_is_shown_is_that_of_the_oracle(operations: list[tuple[Any, ...]], random: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        store = open_store(path, ENCODER.identity, EXTRACTOR)
        held: dict[str, IndexedDocument] = {}
        for operation in [*FIRST, *operations]:
            try:
                follow(store, held, operation)
            except (EntityNotFound, DocumentNotFound, InputError):
                continue
        assert_as_told(store, held)
        assert verify_store(path, deep=True).flaws == ()
        in_force = [one.decision.number for one in store.decisions().all() if not one.decision.undone]
        random.shuffle(in_force)
        for number in in_force:
            store.decisions().undo(number)
        plain = open_store(Path(folder) / "plain", ENCODER.identity, EXTRACTOR)
        for indexed in held.values():
            plain.commit(indexed)
        with store.reading() as view, plain.reading() as other:
            assert contents(view.snapshot) == contents(other.snapshot)
            assert not view.snapshot.names
        assert written(path) == written(plain.path)
        store.delete(list(held))
        assert all(one.decision.kind == "merge" or one.decision.where is not None for one in store.decisions().all())
        store.close()
        plain.close()
