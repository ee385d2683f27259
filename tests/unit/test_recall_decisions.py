"""Recall sees what was decided: cues, paths and activation run over the merged or split entity."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ecphoryrag import Memory
from ecphoryrag.decisions import Selection
from ecphoryrag.models.fakes import HashEncoder

TEXTS = (
    {"id": "ship", "title": "Grey Pellin", "text": "The Grey Pellin was built by Ilka Varnholt in Dunlisk."},
    {"id": "birth", "title": "Countess of Orm", "text": "The Countess of Orm came into the world at Sallow Bay."},
    {"id": "sky", "title": "Notes on Tarvos", "text": "Tarvos turns around Saturn.", "topic": "sky"},
    {"id": "myth", "title": "Tales of Tarvos", "text": "Tarvos carried three cranes.", "topic": "myth"},
    *({"id": f"n{at}", "text": f"Page {at} tells of wheat and of the mill."} for at in range(9)),
)
QUESTION = "Where did the builder of the Grey Pellin come into being?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "store", encoder=HashEncoder(64)) as made:
        assert len(made.add(TEXTS).added) == len(TEXTS)
        yield made


def test_activation_walks_over_a_merge(memory: Memory) -> None:
    before = memory.recall(QUESTION, k=20)
    activation = {one.chunk.document_id: one.signals["activation"] for one in before.chunks}
    number = memory.merge("Ilka Varnholt", "Countess of Orm").decision.number
    after = memory.recall(QUESTION, k=20)
    merged = {one.chunk.document_id: one.signals["activation"] for one in after.chunks}
    assert merged["birth"] > activation["birth"]
    assert len({one.entity.key for one in after.entities} & {"ilka varnholt", "countess of orm"}) <= 1
    memory.undo(number)
    again = memory.recall(QUESTION, k=20)
    assert again.chunks == before.chunks
    assert again.entities == before.entities


@pytest.mark.parametrize("method", ["ecphory", "paper"])
def test_both_methods_see_one_entity(memory: Memory, method: str) -> None:
    memory.merge("Ilka Varnholt", "Countess of Orm", into="Countess of Orm")
    found = memory.recall("Ilka Varnholt", method=method)
    keys = [one.entity.key for one in found.entities]
    assert "countess of orm" in keys
    assert "ilka varnholt" not in keys
    if method == "ecphory":
        assert [(cue.text, cue.entity_key) for cue in found.cues] == [("Ilka Varnholt", "countess of orm")]


def test_a_qualifier_in_the_question_tells_namesakes_apart(memory: Memory) -> None:
    memory.split("Tarvos", "moon", Selection(where={"topic": "sky"}))
    told = memory.recall("What of Tarvos (moon)?").cues
    assert [cue.entity_key for cue in told] == ["tarvos (moon)"]
    bare = memory.recall("What of Tarvos?")
    assert [cue.entity_key for cue in bare.cues] == ["tarvos"]
    active = {one.entity.key for one in bare.entities}
    assert {"tarvos", "tarvos (moon)"} <= active
    found = memory.entity("Tarvos (moon)")
    assert found is not None
    assert (found.name, found.chunk_count) == ("Tarvos (moon)", 1)


def test_where_nothing_was_decided_nothing_is_added(memory: Memory) -> None:
    with memory._store.reading() as view:
        assert view.snapshot.names == {}
        assert list(view.snapshot.entity_positions) == list(view.snapshot.entity_keys)
