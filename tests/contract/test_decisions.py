"""Names are merged and split as decided, and undoing leaves no trace but the history."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from ecphoryrag.decisions import Decision, Selection
from ecphoryrag.errors import DocumentNotFound, EntityNotFound, InputError
from ecphoryrag.models.fakes import HashEncoder
from ecphoryrag.ports import IndexedDocument, Store
from ecphoryrag.store import backup_store, export_store, open_store, repair_store, verify_store
from ecphoryrag.types import Entity
from tests.contract.test_store_export import exported, imported
from tests.support.indexed_documents import ENCODER, EXTRACTOR, contents, indexed_document

DOCUMENTS = (
    indexed_document("sky", "Mercury is near.\nMercury shines by Venus.", "Mercury", {"topic": "stars"}),
    indexed_document("metal", "they say Mercury flows. Quicksilver is Mercury.", metadata={"topic": "metals"}),
    indexed_document("god", "Hermes is Mercury in Rome."),
    indexed_document("rome", "all of Rome knew of mercury and Hermes"),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    made = open_store(path, ENCODER.identity, EXTRACTOR)
    for document in DOCUMENTS:
        made.commit(document)
    yield made
    made.close()


def entities(store: Store) -> dict[str, Entity]:
    with store.reading() as view:
        return {one.key: one for one in view.entities(range(len(view.snapshot.entity_keys)))}


def met(store: Store) -> dict[str, list[str]]:
    """For each entity the documents that mention it."""
    with store.reading() as view:
        shot = view.snapshot
        found: dict[str, set[str]] = {key: set() for key in shot.entity_keys}
        rows, columns = shot.mentions.nonzero()
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            found[shot.entity_keys[column]].add(shot.document_ids[shot.chunk_documents[row]])
    return {key: sorted(ids) for key, ids in found.items()}


def state(store: Store) -> tuple[object, object]:
    with store.reading() as view:
        return contents(view.snapshot), entities(store)


def lines(path: Path) -> list[str]:
    """Of the export, without the history and what counts it."""
    found = exported(path).split("\n")
    header = {key: value for key, value in json.loads(found[0]).items() if key not in ("decisions", "ecphory_export")}
    return [json.dumps(header), *(line for line in found[1:] if not line.startswith('{"decision"'))]


def test_a_merge_makes_one_of_two(store: Store) -> None:
    made = store.decisions().merge(["Hermes", "Mercury"])
    assert made.mentions == 2
    found = entities(store)
    assert "hermes" not in found
    assert found["mercury"].aliases == ("Mercury", "Hermes")
    assert met(store)["mercury"] == ["god", "metal", "rome", "sky"]
    with store.reading() as view:
        assert view.snapshot.entity_positions["hermes"] == view.snapshot.entity_positions["mercury"]
        assert view.snapshot.names_of(view.snapshot.entity_positions["mercury"]) == ("hermes", "mercury")


def test_the_name_to_show_can_be_chosen(store: Store) -> None:
    store.decisions().merge(["Mercury"], into="Hermes")
    found = entities(store)
    assert (found["hermes"].name, found["hermes"].aliases) == ("Hermes", ("Mercury", "Hermes"))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_merges_are_a_union_in_any_order(store: Store, order: tuple[int, ...]) -> None:
    pairs = [("Mercury", "Hermes"), ("Quicksilver", "Hermes"), ("Quicksilver", "Mercury")]
    for at in order:
        store.decisions().merge(pairs[at])
    assert met(store) == {"mercury": ["god", "metal", "rome", "sky"], "rome": ["god", "rome"], "venus": ["sky"]}


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (Selection(documents=("metal",)), ["metal"]),
        (Selection(where={"topic": "metals"}), ["metal"]),
        (Selection(chunks=(("metal", 0),)), ["metal"]),
        (Selection(mentions=(1,)), ["god"]),
        (Selection(documents=("metal",), where={"topic": ["stars"]}), ["metal", "sky"]),
    ],
)
def test_a_split_takes_what_it_selects(store: Store, selection: Selection, taken: list[str]) -> None:
    store.decisions().split("Mercury", "the other", selection)
    found = met(store)
    assert found["mercury (other)" if "mercury (other)" in found else "mercury (the other)"] == taken
    assert entities(store)["mercury (the other)"].name == "Mercury (the other)"


def test_a_title_is_its_documents_and_no_chunks(store: Store) -> None:
    store.decisions().split("Mercury", "planet", Selection(chunks=(("sky", 0),)))
    found = entities(store)
    assert (found["mercury (planet)"].mention_count, found["mercury"].mention_count) == (1, 5)


def test_what_a_split_made_is_a_name_of_its_own(store: Store) -> None:
    names = store.decisions()
    names.split("Mercury", "planet", Selection(documents=("sky",)))
    names.merge(["Mercury (planet)", "Venus"])
    names.split("Mercury (Planet)", "at night", Selection(chunks=(("sky", 1),)))
    assert met(store)["mercury (planet)"] == ["sky"]
    assert entities(store)["mercury (planet) (at night)"].name == "Mercury (planet) (at night)"
    assert [one.name for one in names.places("Mercury")] == ["Mercury"] * 3


def test_later_mentions_stay_with_the_name_unless_a_rule_takes_them(store: Store) -> None:
    store.decisions().split("Mercury", "element", Selection(documents=("metal",), where={"topic": "metals"}))
    store.commit(indexed_document("new", "then Mercury came", metadata={"topic": "metals"}))
    store.commit(indexed_document("else", "then Mercury came"))
    store.commit(indexed_document("metal", "new text on Mercury"))
    found = met(store)
    assert (found["mercury (element)"], found["mercury"]) == (["metal", "new"], ["else", "god", "sky"])


def test_a_mention_is_told_again_after_its_text_has_moved(store: Store) -> None:
    store.commit(indexed_document("m", "first Mercury is a planet\nthen Mercury is a metal\nnow Mercury is a god"))
    store.decisions().split("Mercury", "metal", Selection(chunks=(("m", 1),)))
    moved = "now Mercury is a god\nand much besides it\nthen Mercury is a metal\nfirst Mercury is a planet"
    store.commit(indexed_document("m", moved))
    place = store.decisions().places("Mercury (metal)")[0]
    assert moved[place.start - 5 : place.end + 11] == "then Mercury is a metal"
    store.commit(indexed_document("m", moved.replace("then Mercury is a metal", "once Quicksilver was it")))
    (decided,) = store.decisions().all()
    assert (decided.mentions, len(decided.idle)) == (0, 1)
    store.commit(indexed_document("m", moved))
    assert store.decisions().all()[0].mentions == 1


def test_the_name_that_is_left_leads_to_what_was_split_off(store: Store) -> None:
    names = store.decisions()
    names.split("Quicksilver", "liquid", Selection(documents=("metal",)))
    with store.reading() as view:
        shot = view.snapshot
        assert shot.entity_keys[shot.entity_positions["quicksilver"]] == "quicksilver (liquid)"
        assert shot.entity_keys[shot.entity_positions["quicksilver liquid"]] == "quicksilver (liquid)"


def test_undoing_brings_back_what_was(store: Store, path: Path) -> None:
    before, written = state(store), lines(path)
    names = store.decisions()
    numbers = [
        names.merge(["Hermes", "Mercury"]).decision.number,
        names.split("Mercury", "planet", Selection(documents=("sky",))).decision.number,
        names.merge(["Mercury (planet)", "Venus"]).decision.number,
    ]
    assert state(store) != before
    for number in (numbers[1], numbers[0], numbers[2]):
        names.undo(number)
    assert state(store) == before
    assert lines(path) == written
    assert [one.decision.undone for one in names.all()] == [True] * 3


def test_a_forgotten_document_takes_the_rules_that_name_it(store: Store, path: Path) -> None:
    names = store.decisions()
    names.split("Mercury", "element", Selection(documents=("metal", "sky"), chunks=(("god", 0),)))
    names.undo(names.split("Hermes", "god", Selection(documents=("god",))).decision.number)
    written = exported(path)
    store.commit(indexed_document("aaa", "Mercury again"))
    names.split("Mercury", "third", Selection(mentions=(1,)))
    names.split("Mercury", "other", Selection(documents=("aaa",)))
    store.delete(["aaa"])
    assert exported(path) == written
    store.delete(["god", "metal"])
    assert [one.decision.documents for one in names.all()] == [("sky",)]
    store.delete(["sky"])
    assert names.all() == []


def test_merges_outlive_the_documents(store: Store) -> None:
    names = store.decisions()
    names.merge(["Hermes", "Mercury"])
    store.delete(["god", "rome"])
    assert names.all()[0].idle == ("name hermes",)
    store.commit(DOCUMENTS[2])
    assert met(store)["mercury"] == ["god", "metal", "sky"]


def test_it_is_written_out_and_read_in(store: Store, path: Path, tmp_path: Path) -> None:
    names = store.decisions()
    names.merge(["Hermes", "Mercury"], reason="same \u2028 god")
    names.split("Mercury", "planet", Selection(documents=("sky",), where={"topic": ["stars"]}, mentions=(1, 2)))
    names.undo(names.merge(["Rome", "Venus"]).decision.number)
    text = exported(path)
    report = imported(tmp_path / "two", text)
    assert report.failed == ()
    assert exported(tmp_path / "two") == text
    assert imported(tmp_path / "two", text).failed == ()
    assert exported(tmp_path / "two") == text
    again = open_store(tmp_path / "two", ENCODER.identity, EXTRACTOR)
    assert state(again) == state(store)
    again.close()


@pytest.mark.parametrize(
    ("old", "new"), [('"kind":"merge"', '"kind":"x"'), ('["hermes","mercury"]', '["hermes"]'), ('"into":null', '"x":1')]
)
def test_a_decision_that_cannot_be_taken_is_told(store: Store, path: Path, tmp_path: Path, old: str, new: str) -> None:
    store.decisions().merge(["Hermes", "Mercury"])
    report = imported(tmp_path / "two", exported(path).replace(old, new))
    assert (len(report.added), len(report.failed)) == (len(DOCUMENTS), 1)


def test_without_decisions_an_export_is_as_it_ever_was(store: Store, path: Path) -> None:
    header = json.loads(exported(path).split("\n", 1)[0])
    assert (header["ecphory_export"], "decisions" in header) == (1, False)


def test_backup_reembed_and_repair_keep_them(store: Store, path: Path, tmp_path: Path) -> None:
    store.decisions().merge(["Hermes", "Mercury"])
    store.decisions().split("Mercury", "planet", Selection(chunks=(("sky", 0),)))
    expected = state(store)[1]
    store.flush()
    backup_store(path, tmp_path / "copy")
    connection = apsw.Connection(str(tmp_path / "copy"))
    connection.execute("DELETE FROM search WHERE rowid = 1")
    connection.close()
    assert repair_store(tmp_path / "copy").remaining == ()
    other = HashEncoder(16)
    copy = open_store(tmp_path / "copy", ENCODER.identity, EXTRACTOR)
    assert state(copy)[1] == expected
    move = copy.reembed(other.identity)
    pending = move.pending(100)
    move.put(pending, other.encode([one.chunk.text for one in pending], "passage").vectors)
    assert move.finish()
    copy.close()
    copy = open_store(tmp_path / "copy", other.identity, EXTRACTOR)
    assert state(copy)[1] == expected
    copy.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE decisions SET filter = '[' WHERE number = 2",
        "UPDATE decisions SET kind = 'join' WHERE number = 2",
        "DELETE FROM decided_places",
        "UPDATE decisions SET target = 'mercury planet' WHERE number = 2",
        "UPDATE decided_places SET field = 9",
        "INSERT INTO decided_keys VALUES (9, 'x')",
    ],
)
def test_a_damaged_decision_is_named_and_removed(store: Store, path: Path, damage: str) -> None:
    store.decisions().merge(["Hermes", "Mercury"])
    store.decisions().split("Mercury", "planet", Selection(chunks=(("sky", 0),)))
    store.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(damage)
    connection.close()
    assert not verify_store(path, deep=True).sound
    repair_store(path)
    assert verify_store(path, deep=True).flaws == ()
    again = open_store(path, ENCODER.identity, EXTRACTOR)
    assert next(one.decision.kind for one in again.decisions().all()) == "merge"
    again.close()


def test_the_same_decision_is_recorded_once(store: Store) -> None:
    first = store.decisions().merge(["Hermes", "Mercury"])
    assert store.decisions().merge(["Mercury", "Hermes"]) == first
    store.decisions().undo(first.decision.number)
    assert store.decisions().merge(["Mercury", "Hermes"]).decision.number != first.decision.number


def test_what_cannot_be_decided_changes_nothing(store: Store, path: Path) -> None:
    names, written = store.decisions(), exported(path)
    every = Selection(documents=("sky",))
    for error, what in (
        (EntityNotFound, lambda: names.merge(["Hermes", "Nobody"])),
        (InputError, lambda: names.merge(["Hermes", "the hermes"])),
        (EntityNotFound, lambda: names.merge(["Hermes"], into="Nobody")),
        (EntityNotFound, lambda: names.split("Nobody", "x", every)),
        (InputError, lambda: names.split("Hermes", "?!", every)),
        (InputError, lambda: names.split("Hermes", "x", Selection())),
        (InputError, lambda: names.split("Hermes", "x", Selection(where={}))),
        (InputError, lambda: names.split("Hermes", "x", Selection(where={"a": {"b": 1}}))),
        (DocumentNotFound, lambda: names.split("Hermes", "x", Selection(documents=("none",)))),
        (EntityNotFound, lambda: names.split("Hermes", "x", Selection(chunks=(("sky", 0),)))),
        (EntityNotFound, lambda: names.split("Hermes", "x", Selection(mentions=(9,)))),
        (EntityNotFound, lambda: names.undo(1)),
        (InputError, lambda: names.record([Decision("merge", ("b", "a"))])),
        (InputError, lambda: names.merge(["Hermes", "Mercury"], reason="\ud800")),
    ):
        with pytest.raises(error):
            what()
    assert exported(path) == written


def test_text_of_a_document_is_not_kept_in_a_rule(store: Store, path: Path) -> None:
    store.commit(indexed_document("m", "the secretive word by Mercury is whispered"))
    store.decisions().split("Mercury", "x", Selection(chunks=(("m", 0),)))
    store.commit(indexed_document("m", "the word by Mercury is said"))
    store.flush()
    store.close()
    output = io.StringIO()
    export_store(path, output)
    kept = path.read_bytes() + output.getvalue().encode()
    assert b"secretive" not in kept
    assert b"whispered" not in kept


def test_a_document_is_shown_with_what_its_mentions_are_of(store: Store) -> None:
    def shown() -> list[str]:
        found: IndexedDocument = store.decisions().resolved(store.indexed("god"))
        return [mention.key for one in found.extractions for mention in one.mentions]

    assert shown() == ["hermes", "mercury", "rome"]
    store.decisions().merge(["Hermes", "Mercury"], into="Hermes")
    store.decisions().split("Rome", "city", Selection(documents=("god",)))
    assert shown() == ["hermes", "hermes", "rome (city)"]


def test_what_a_text_says_is_one_follows_its_mentions(store: Store) -> None:
    store.commit(indexed_document("m", "Ida Moen is IM.\nIda Moen met IM."))
    store.decisions().split("Ida Moen", "the elder", Selection(chunks=(("m", 0),)))
    store.decisions().split("IM", "the elder", Selection(chunks=(("m", 0),)))
    with store.reading() as view:
        keys = view.snapshot.entity_keys
        pairs = {(keys[one], keys[other]) for one, other in view.snapshot.aliases.tolist()}
    assert pairs >= {("ida moen", "im"), ("ida moen (the elder)", "im (the elder)")}
    assert ("ida moen", "im (the elder)") not in pairs
