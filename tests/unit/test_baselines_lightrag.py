"""LightRAG on a corpus small enough to be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ecphoryrag.errors import InputError, ModelNotAvailable, SettingsError
from ecphoryrag.evaluation.baselines import lightrag, lightrag_profiles
from ecphoryrag.evaluation.baselines.lightrag_extract import Extracted, Link, NamedThing, entity_name
from ecphoryrag.evaluation.baselines.lightrag_profiles import profiles
from ecphoryrag.evaluation.baselines.lightrag_search import Context, Graph, Limits, in_turns, local, nearest, overall
from ecphoryrag.evaluation.baselines.port import Kit
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.ports import Generator
from ecphoryrag.settings import Settings
from ecphoryrag.types import Document, JsonValue

DOCUMENTS = (
    Document("film", "Nord is a film by Ines Duarte.", "Nord"),
    Document("director", "Ines Duarte, a director, was born in Porto.", "Ines Duarte"),
    Document("city", "Porto is a city on the Douro.", "Porto"),
)
QUESTION = "Where was the director of Nord born?"


def entity(name: str, kind: str, description: str) -> JsonValue:
    return {"name": name, "type": kind, "description": description}


def relation(source: str, target: str, description: str, keywords: Sequence[str], strength: float) -> JsonValue:
    return {
        "source": source,
        "target": target,
        "description": description,
        "keywords": list(keywords),
        "strength": strength,
    }


def reply(entities: Sequence[JsonValue] = (), relations: Sequence[JsonValue] = ()) -> str:
    return json.dumps({"entities": list(entities), "relations": list(relations)})


READ = [
    # film: the first round, then what gleaning adds; the second description of a name does not replace the first.
    reply([entity("Nord", "event", "Nord is a film.")]),
    reply(
        [entity("Ines Duarte", "person", "Ines Duarte made Nord."), entity("nord", "place", "Again.")],
        [relation("Nord", "Ines Duarte", "Ines Duarte directed Nord.", ["direction"], 8)],
    ),
    reply(
        [entity("Ines Duarte", "person", "Ines Duarte is a director."), entity("Porto", "place", "A birthplace.")],
        [relation("Ines Duarte", "Porto", "Ines Duarte was born in Porto.", ["birth"], 9)],
    ),
    reply(),
    reply(
        [entity("Porto", "place", "A city."), entity("PORTO", "place", "Twice.")],
        [relation("Douro", "Porto", "Porto lies on the Douro.", ["geography"], 5)],
    ),
    reply(),
]


def kit(folder: Path, generator: Generator | None, **parameters: JsonValue) -> Kit:
    return Kit(folder, Settings(), HashEncoder(256), generator, None, parameters)


def test_profiles_merge_what_all_chunks_say() -> None:
    extracted = [
        Extracted(
            (NamedThing("A", "person", "Writes."), NamedThing("B", "place", "Lies north.")),
            (Link(("A", "B"), "A lives in B.", ("home", "life"), 3),),
        ),
        Extracted((NamedThing("A", "category", "Reads."),), (Link(("A", "B"), "A left B.", ("life",), 2),)),
        Extracted((NamedThing("A", "person", "Reads."),), (Link(("A", "C"), "A knows C.", (), 1),)),
    ]
    merged = profiles(extracted)
    by_name = {one.name: one for one in merged.entities}
    assert by_name["A"].type == "person"
    assert by_name["A"].description == "Reads.\nWrites."
    assert by_name["A"].chunks == (0, 1, 2)
    assert (by_name["C"].type, by_name["C"].description, by_name["C"].chunks) == ("unknown", "A knows C.", (2,))
    assert merged.relations[0].names == ("A", "B")
    assert merged.relations[0].ends == (0, 1)
    assert merged.relations[0].weight == 5
    assert merged.relations[0].keywords == "home, life"
    assert merged.relations[0].description == "A left B.\nA lives in B."
    assert merged.relations[0].chunks == (0, 1)


def test_long_descriptions_are_summed_up_once(tmp_path: Path) -> None:
    long = " ".join(f"word{number}" for number in range(lightrag_profiles.SUMMARY_TOKENS))
    merged = profiles([Extracted((NamedThing("A", "person", long), NamedThing("B", "person", long + " more")))])
    generator = ScriptedGenerator(['{"description": "Short."}', "no", "no"])
    short, usage, notes = lightrag_profiles.summarise(merged, kit(tmp_path, generator))
    assert short.entities[0].description == "Short."
    assert long.startswith(short.entities[1].description)
    assert len(short.entities[1].description) > 1000
    assert usage.calls == 3
    assert notes == ("1 long descriptions were cut, not summed up; the first: B",)
    again, paid, _ = lightrag_profiles.summarise(merged, kit(tmp_path, ScriptedGenerator([])))
    assert (again, paid) == (short, usage)


def worked_graph() -> Graph:
    """Four entities in a row, A - B - C - D, and chunks 0 {A, B}, 1 {B, C}, 2 {C, D}."""
    merged = profiles(
        [
            Extracted(
                tuple(NamedThing(name, "person", f"{name} is here.") for name in pair),
                (Link(pair, f"{pair[0]} met {pair[1]}.", ("meeting",), weight),),
            )
            for pair, weight in [(("A", "B"), 1.0), (("B", "C"), 2.0), (("C", "D"), 3.0)]
        ]
    )
    angles = np.eye(4, dtype=np.float32)
    return Graph(merged, ("text zero", "text one", "text two"), angles, angles[:3], angles[:3])


def test_local_goes_from_entities_to_relations_and_chunks() -> None:
    graph = worked_graph()
    # Nearest to the keywords: B, then D; A and C are below the threshold.
    vector = np.array([0.1, 0.9, 0.1, 0.4], np.float32)
    found = local(graph, vector, Limits())
    assert found.entities == (1, 3)
    # Degrees: A 1, B 2, C 2, D 1. Relations of B and D: B-C has 4, A-B and C-D have 3, and C-D weighs more.
    assert found.relations == (1, 2, 0)
    # Chunks of B: 0 with its neighbour A and 1 with C, alike, then 2 of D.
    assert found.chunks == (0, 1, 2)
    # Each description has the cost of the first: two fit in a budget of twice that, one in less.
    assert local(graph, vector, Limits(entity_tokens=5)).entities == (1,)
    assert local(graph, vector, Limits(relation_tokens=5)).relations == (1,)
    assert local(graph, vector, Limits(text_tokens=4)).chunks == (0, 1)
    assert local(graph, vector, Limits(top=1)).chunks == (0, 1)


def test_of_an_entitys_chunks_those_come_first_that_have_its_neighbours() -> None:
    alone = Extracted((NamedThing("A", "person", "A."),))
    together = Extracted(
        (NamedThing("A", "person", "A."), NamedThing("B", "person", "B.")), (Link(("A", "B"), "", (), 1),)
    )
    axes = np.eye(2, dtype=np.float32)
    graph = Graph(profiles([alone, together]), ("zero", "one"), axes, axes[:1], axes)
    assert local(graph, axes[0], Limits()).chunks == (1, 0)


def test_global_goes_from_relations_to_entities_and_chunks() -> None:
    graph = worked_graph()
    found = overall(graph, np.array([0.9, 0.0, 0.4, 0.0], np.float32), Limits())
    # A-B is nearer, and C-D stands first: equal degrees, and it weighs more.
    assert found.relations == (2, 0)
    assert found.entities == (2, 3, 0, 1)
    assert found.chunks == (2, 0)


def test_lists_take_turns() -> None:
    one, other = Context((1, 2), (5,), (7, 8, 9)), Context((2, 3), (), (8, 6))
    assert in_turns([one, other]) == Context((1, 2, 3), (5,), (7, 8, 6, 9))
    assert in_turns([]) == Context()


def test_nothing_below_the_threshold_is_found() -> None:
    assert nearest(np.eye(3, dtype=np.float32), np.array([0.3, 0.1, 0.2], np.float32), 2, 0.2) == (0, 2)
    assert nearest(np.zeros((0, 3), np.float32), np.ones(3, np.float32), 2, 0.2) == ()


def test_two_rounds_a_chunk_make_the_graph_and_are_paid_once(tmp_path: Path) -> None:
    generator = ScriptedGenerator([*READ, '{"high": ["birth"], "low": ["Nord"]}'])
    method = lightrag.make(kit(tmp_path / "index", generator))
    indexed = method.index(DOCUMENTS)
    assert len(generator.asked) == 6
    assert indexed.figures == {"chunks": 3, "entities": 4, "relations": 3}
    assert indexed.usage.calls == 6
    assert indexed.usage.output_tokens == sum(len(text.split()) for text in READ)
    assert indexed.notes == ()
    gleaning = generator.asked[1]
    assert [message.role for message in gleaning][-3:] == ["user", "assistant", "user"]
    assert json.loads(gleaning[-2].content) == json.loads(READ[0])

    found = method.retrieve(QUESTION, 3)
    names = [one.entity.name for one in found.recall.entities]
    assert names[0] == "NORD"
    assert found.recall.entities[0].entity.type == "event"
    labels = {one.label: (one.subject, one.object) for one in found.recall.relations}
    assert labels["birth"] == ("INES DUARTE", "PORTO")
    # Local: the chunk of NORD. Global: the chunk of the birth.
    assert found.documents[:2] == ("film", "director")
    assert found.recall.chunks[0].chunk.text == DOCUMENTS[0].text
    assert found.usage.calls == 1
    assert found.usage.embedding_tokens > 0
    # The reader is shown the passages, then entities and relations in turns.
    pieces = [(piece.number, piece.chunk.document_id, piece.title) for piece in found.recall.chunks]
    passages = len(found.documents)
    assert pieces[passages] == (passages + 1, "entity:NORD", "NORD")
    assert pieces[passages + 1][2] in {f"{one.subject} - {one.object}" for one in found.recall.relations}
    assert len(pieces) == passages + len(found.recall.entities) + len(found.recall.relations)

    silent = ScriptedGenerator(['{"high": ["birth"], "low": ["Nord"]}'])
    again = lightrag.make(kit(tmp_path / "index", silent))
    assert again.index(DOCUMENTS) == indexed
    assert silent.asked == []
    assert again.retrieve(QUESTION, 3).recall == found.recall


@pytest.mark.parametrize(
    ("mode", "documents"),
    [
        ("local", ("film",)),
        ("global", ("director",)),
        ("hybrid", ("film", "director")),
        ("mix", ("city", "film", "director")),
    ],
)
def test_the_modes_differ_in_what_they_search(tmp_path: Path, mode: str, documents: tuple[str, ...]) -> None:
    words = ScriptedGenerator([*READ, '{"high": ["birth Ines Duarte Porto was born in"], "low": ["Nord film"]}'])
    method = lightrag.make(kit(tmp_path, words, mode=mode, top=1, chunks=1))
    method.index(DOCUMENTS)
    assert method.retrieve("city on the Douro", 3).documents == documents


def test_the_reader_can_be_shown_chunks_alone(tmp_path: Path) -> None:
    generator = ScriptedGenerator([*READ, '{"high": ["birth"], "low": ["Nord"]}'])
    method = lightrag.make(kit(tmp_path, generator, context="chunks"))
    method.index(DOCUMENTS)
    found = method.retrieve(QUESTION, 1)
    assert [piece.chunk.document_id for piece in found.recall.chunks] == ["film"]
    assert found.recall.entities


def test_a_question_without_keywords_is_its_own(tmp_path: Path) -> None:
    generator = ScriptedGenerator([*READ, '{"high": [], "low": []}', "no", "no"])
    method = lightrag.make(kit(tmp_path, generator))
    method.index(DOCUMENTS)
    for _ in range(2):
        found = method.retrieve("Nord film", 1)
        assert found.documents == ("film",)
        assert found.notes[0].startswith("the question is its own keyword")


def test_a_chunk_that_cannot_be_read_is_counted_and_the_rest_stands(tmp_path: Path) -> None:
    generator = ScriptedGenerator([READ[0], "no", "no", "no", "no", *READ[4:]])
    method = lightrag.make(kit(tmp_path, generator))
    indexed = method.index(DOCUMENTS)
    assert indexed.notes[0].startswith("2 of 3 chunks were not read whole; the first: film:")
    assert indexed.usage.calls == 7
    assert indexed.figures["entities"] == 3


@pytest.mark.parametrize(
    ("text", "name"), [(' "Nord" ', "NORD"), ("the\nDouro", "THE DOURO"), ("“Żuławski”", "ŻUŁAWSKI")]
)
def test_names_meet_in_upper_case(text: str, name: str) -> None:
    assert entity_name(text) == name


def test_parameters_and_models_are_checked(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'mode' of lightrag must be 'hybrid' or 'local'"):
        lightrag.make(kit(tmp_path, None, mode="naive"))
    with pytest.raises(ModelNotAvailable):
        lightrag.make(kit(tmp_path, None)).index(DOCUMENTS)
    with pytest.raises(InputError, match="index the documents first"):
        lightrag.make(kit(tmp_path, None)).retrieve(QUESTION, 1)
