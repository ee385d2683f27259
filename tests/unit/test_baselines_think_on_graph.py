"""Think-on-Graph on a graph small enough to be walked by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ecphoryrag.errors import InputError, ModelNotAvailable, SettingsError
from ecphoryrag.evaluation.baselines import think_on_graph
from ecphoryrag.evaluation.baselines.port import Kit
from ecphoryrag.evaluation.baselines.think_on_graph_walk import MANY_ENTITIES, RETAINED, Stand, Walker, Way, link
from ecphoryrag.evaluation.baselines.triples import Triple, clean_triples
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.ports import Generator
from ecphoryrag.settings import Settings
from ecphoryrag.types import Document, JsonValue, Message

DOCUMENTS = (
    Document("film", "Nord is a film by Ines Duarte, with Owen Price.", "Nord"),
    Document("director", "Ines Duarte was born in Porto.", "Ines Duarte"),
    Document("actor", "Owen Price was born in Cardiff.", "Owen Price"),
)
TRIPLES = {
    "film": [
        ["Nord", "directed by", "Ines Duarte"],
        ["Nord", "has actor", "Owen Price"],
        ["Nord", "has actor", "Jean Muir"],
    ],
    "director": [["Ines Duarte", "born in", "Porto"]],
    "actor": [["Owen Price", "born in", "Cardiff"]],
}
QUESTION = "Where was the director of Nord born?"
TOPIC = '{"entities": ["Nord"]}'
NOT_YET = '{"reasoning": "", "sufficient": false, "answer": ""}'


@pytest.fixture
def openie(tmp_path: Path) -> str:
    path = tmp_path / "openie.jsonl"
    path.write_text("\n".join(json.dumps({"id": one, "triples": some}) for one, some in TRIPLES.items()), "utf-8")
    return str(path)


def scores(*pairs: tuple[int, float]) -> str:
    return json.dumps({"scores": [{"number": number, "score": score} for number, score in pairs]})


def kit(folder: Path, generator: Generator | None, **parameters: JsonValue) -> Kit:
    return Kit(folder / "index", Settings(), HashEncoder(256), generator, None, parameters)


def start(folder: Path, generator: Generator, openie: str, **parameters: JsonValue) -> think_on_graph.ThinkOnGraph:
    method = think_on_graph.make(kit(folder, generator, openie=openie, **parameters))
    method.index(DOCUMENTS)
    return method


def test_it_walks_to_the_answer_as_by_hand(tmp_path: Path, openie: str) -> None:
    generator = ScriptedGenerator(
        [
            TOPIC,
            scores((1, 0.9), (2, 0.4)),  # of nord: directed by, has actor
            scores((1, 0.25), (2, 0.75)),  # of has actor: jean muir .1, owen price .3; directed by has one end, .9
            NOT_YET,
            scores((1, 0.8)),  # of ines duarte, not back to nord: born in
            scores((1, 0.5)),  # of owen price: born in; jean muir has no other relation
            '{"reasoning": "Ines Duarte was born in Porto.", "sufficient": true, "answer": "Porto"}',
        ]
    )
    method = start(tmp_path, generator, openie)
    answer = method.answer(QUESTION)
    assert answer.text == "Porto"
    assert answer.reasoning == "Ines Duarte was born in Porto."
    walked = [(piece.chunk.text, round(piece.score, 9)) for piece in answer.evidence]
    assert walked == [
        ("nord | directed by | ines duarte", 0.9),
        ("nord | has actor | owen price", 0.3),
        ("nord | has actor | jean muir", 0.1),
        ("ines duarte | born in | porto", 0.8),
        ("owen price | born in | cardiff", 0.5),
    ]
    assert answer.usage.calls == len(generator.asked) == 7
    asked = [messages[-1].content for messages in generator.asked]
    assert "1. nord | directed by | ?" in asked[1]
    assert "2. nord | has actor | owen price" in asked[2]
    assert "1. ines duarte | born in | ?" in asked[4]
    assert "directed by" not in asked[4]
    assert "ines duarte | born in | porto" in asked[6]
    found = method.retrieve(QUESTION, 5)
    assert found.documents == ("film", "director", "actor")
    assert found.usage.calls == 5
    assert len(generator.asked) == 7
    assert found.recall.chunks[0].chunk.text == DOCUMENTS[0].text


def test_it_stands_on_the_best_alone(tmp_path: Path, openie: str) -> None:
    generator = ScriptedGenerator(
        [TOPIC, scores((2, 0.9), (1, 0.2)), scores((1, 0.4), (2, 0.6)), NOT_YET, scores((1, 1.0)), NOT_YET, *["no"] * 9]
    )
    method = start(tmp_path, generator, openie, width=1, depth=2)
    # The better relation alone is followed, and its better end: owen price.
    assert method.retrieve(QUESTION, 5).documents == ("film", "actor")


def test_where_it_cannot_go_on_it_answers_from_what_it_has(tmp_path: Path, openie: str) -> None:
    generator = ScriptedGenerator(
        [TOPIC, scores((1, 0.9)), NOT_YET, scores((1, 0.0)), '{"reasoning": "A guess.", "answer": "Porto"}']
    )
    answer = start(tmp_path, generator, openie).answer(QUESTION)
    assert answer.text == "Porto"
    assert "nord | directed by | ines duarte" in generator.asked[-1][-1].content
    assert answer.notes[-1] == "answered from what triples there were"


def test_at_its_full_depth_it_answers_from_what_it_knows(tmp_path: Path, openie: str) -> None:
    generator = ScriptedGenerator([TOPIC, scores((1, 0.9)), NOT_YET, '{"reasoning": "Known.", "answer": "Porto"}'])
    answer = start(tmp_path, generator, openie, depth=1).answer(QUESTION)
    assert answer.text == "Porto"
    assert "ines duarte" not in generator.asked[-1][-1].content
    assert answer.notes[-1] == "answered without the triples"


def test_replies_that_cannot_be_used_are_told(tmp_path: Path, openie: str) -> None:
    bad = ["no", "no"]
    generator = ScriptedGenerator([*bad, *bad])
    answer = start(tmp_path, generator, openie).answer(QUESTION)
    assert answer.text is None
    assert answer.notes[0].startswith("no entity was read out of the question")
    assert answer.reason is not None
    assert answer.reason.startswith("the language model gave no usable answer")
    assert answer.usage.calls == 4

    generator = ScriptedGenerator([TOPIC, scores((2, 0.8)), *bad, *bad, *bad, *bad, '{"reasoning": "", "answer": "x"}'])
    answer = start(tmp_path, generator, openie, width=1, depth=2).answer(QUESTION)
    # The ends of `has actor` count alike, half of its score each; the first of them has no other relation.
    assert [piece.score for piece in answer.evidence] == [0.4]
    assert any("count alike" in note for note in answer.notes)
    assert any("whether it suffices could not be read" in note for note in answer.notes)


def test_an_entity_that_is_no_name_stands_for_the_nearest(tmp_path: Path, openie: str) -> None:
    generator = ScriptedGenerator(['{"entities": ["Duarte Ines the director"]}', *["no"] * 9])
    method = start(tmp_path, generator, openie)
    method.answer(QUESTION)
    assert "ines duarte | born in | ?" in generator.asked[1][-1].content


def test_many_entities_are_thinned_out_to_the_nearest() -> None:
    many = clean_triples([["hub", "has", f"part {number}"] for number in range(MANY_ENTITIES)])
    prompts: list[str] = []

    def script(messages: Sequence[Message]) -> str:
        prompts.append(messages[-1].content)
        return scores((1, 1.0))

    def near(texts: Sequence[str]) -> Sequence[float]:
        return [float(text.removeprefix("part ")) for text in texts]

    walker = Walker("q", link([many]), near, 3, Kit(Path(), Settings(), HashEncoder(), ScriptedGenerator(script), None))
    went = walker.go([Stand("hub")])
    shown = [line for line in prompts[1].splitlines() if "hub | has" in line]
    assert sorted(line.split()[-1] for line in shown) == ["15", "16", "17", "18", "19"]
    assert len(shown) == RETAINED
    assert len(went.steps) == 1


def test_links_are_seen_from_both_ends() -> None:
    links = link([clean_triples([["A", "is", "B"]]), clean_triples([["A", "is", "B"], ["A", "is", "C"]])])
    assert links.of["a"] == {Way("is", True): ("b", "c")}
    assert links.of["b"] == {Way("is", False): ("a",)}
    assert links.passages[Triple("a", "is", "b")] == (0, 1)


def test_a_second_run_embeds_nothing(tmp_path: Path, openie: str) -> None:
    first = think_on_graph.make(kit(tmp_path, ScriptedGenerator([]), openie=openie)).index(DOCUMENTS)
    assert first.figures == {"phrases": 6, "facts": 5}
    assert first.usage.embedding_tokens == 9
    kept = (tmp_path / "index" / "index.npz").stat().st_mtime_ns
    again = think_on_graph.make(kit(tmp_path, ScriptedGenerator([]), openie=openie)).index(DOCUMENTS)
    assert again == first
    assert (tmp_path / "index" / "index.npz").stat().st_mtime_ns == kept


def test_parameters_and_models_are_checked(tmp_path: Path, openie: str) -> None:
    with pytest.raises(SettingsError, match="no parameter 'beam'"):
        think_on_graph.make(kit(tmp_path, ScriptedGenerator([]), beam=1))
    with pytest.raises(ModelNotAvailable, match="think-on-graph needs a language model"):
        think_on_graph.make(kit(tmp_path, None, openie=openie))
    with pytest.raises(InputError, match="index the documents first"):
        think_on_graph.make(kit(tmp_path, ScriptedGenerator([]), openie=openie)).retrieve(QUESTION, 1)
