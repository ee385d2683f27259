"""HippoRAG 2 on a corpus small enough to be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ecphoryrag.errors import InputError, ModelNotAvailable, SettingsError
from ecphoryrag.evaluation.baselines import hipporag2
from ecphoryrag.evaluation.baselines.hipporag2_graph import edge_weights, read_facts, synonymy
from ecphoryrag.evaluation.baselines.port import Kit
from ecphoryrag.evaluation.baselines.triples import Triple, clean_triples, given_triples, normal_phrase
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.ports import Encoded, Encoder, Generator, Ledger
from ecphoryrag.settings import Settings
from ecphoryrag.types import Document, EncoderIdentity, JsonValue
from tests.support.memory_ledger import MemoryLedger

DOCUMENTS = (
    Document("film", "Polish-Russian War is a film by Xawery Żuławski.", "Polish-Russian War"),
    Document("director", "Xawery Żuławski is the son of Małgorzata Braunek.", "Xawery Żuławski"),
    Document("other", "The river is long.", "River"),
)
TRIPLES = {
    "film": [["Polish-Russian War", "directed by", "Xawery Żuławski"]],
    "director": [["Xawery Żuławski", "son of", "Małgorzata Braunek"]],
    "other": [],
}
QUESTION = "Who is the mother of the director of Polish-Russian War?"


class HandEncoder:
    """Vectors of two dimensions, each the direction of an angle whose cosine with the question's is given."""

    title_share = 0.0
    identity = EncoderIdentity("hand", "1", 2, "hand")

    def __init__(self, cosines: Mapping[str, float]) -> None:
        self._cosines = cosines
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Encoded:
        self.encoded += texts
        cosines = np.array([1.0 if kind == "query" else self._cosines[text] for text in texts])
        vectors = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1).astype(np.float32).reshape(-1, 2)
        return Encoded(vectors, len(texts))

    def close(self) -> None:
        pass


FACTS = {
    "('polish russian war', 'directed by', 'xawery żuławski')": 0.9,
    "('xawery żuławski', 'son of', 'małgorzata braunek')": 0.5,
}
COSINES = {
    **FACTS,
    "Polish-Russian War\nPolish-Russian War is a film by Xawery Żuławski.": 0.8,
    "Xawery Żuławski\nXawery Żuławski is the son of Małgorzata Braunek.": 0.2,
    "River\nThe river is long.": 0.4,
    # Far enough from one another that none are synonyms: cos of the angles between 0, 60 and 120 degrees is 0.5.
    "polish russian war": 1.0,
    "xawery żuławski": 0.5,
    "małgorzata braunek": -0.5,
}


@pytest.fixture
def openie(tmp_path: Path) -> str:
    path = tmp_path / "openie.jsonl"
    lines = (json.dumps({"id": identity, "triples": some}) for identity, some in TRIPLES.items())
    path.write_text("\n".join(lines), "utf-8")
    return str(path)


def kit(
    folder: Path,
    encoder: Encoder,
    generator: Generator | None = None,
    ledger: Ledger | None = None,
    **parameters: JsonValue,
) -> Kit:
    return Kit(folder, Settings(), encoder, generator, ledger, parameters)


def test_the_graph_has_fact_and_passage_edges() -> None:
    graph = read_facts([clean_triples(TRIPLES[one.id]) for one in DOCUMENTS])
    assert graph.phrases == ("małgorzata braunek", "polish russian war", "xawery żuławski")
    assert graph.passages_of.tolist() == [1, 1, 2]
    none = synonymy(graph.phrases, np.eye(3, dtype=np.float32), 0.8, 100)
    # Phrases mother, film, director, then passages film, director, other.
    once = [
        [0, 0, 1, 0, 1, 0],
        [0, 0, 1, 1, 0, 0],
        [1, 1, 0, 1, 1, 0],
        [0, 1, 1, 0, 0, 0],
        [1, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
    ]
    assert edge_weights(graph, none, parallel=False).toarray().tolist() == once
    twice = np.array(once)
    twice[:3, :3] *= 2
    assert edge_weights(graph, none, parallel=True).toarray().tolist() == twice.tolist()


def test_a_fact_counts_once_for_each_passage_and_none_joins_a_phrase_to_itself() -> None:
    graph = read_facts(
        [
            clean_triples([["A", "is", "B"], ["a", "is", "b"], ["B", "of", "A"]]),
            clean_triples([["A", "is", "B"], ["c", "is", "C"]]),
        ]
    )
    assert graph.phrases == ("a", "b", "c")
    assert graph.fact_edges.toarray().tolist() == [[0, 3, 0], [3, 0, 0], [0, 0, 0]]
    assert graph.facts == (Triple("a", "is", "b"), Triple("b", "of", "a"), Triple("c", "is", "c"))


def test_synonyms_are_near_long_enough_and_not_too_many() -> None:
    near = np.array([[1, 0], [0.8, 0.6], [0.9, np.sqrt(0.19)], [1, 0]], np.float32)
    found = synonymy(["alpha", "beta", "gamma", "xy"], near, 0.85, 100).toarray()
    # alpha and beta, .8, are too far; beta and gamma are near; xy is too short to ask and is found by alpha.
    assert found[0].tolist() == pytest.approx([0, 0, 0.9, 1.0])
    assert found[1, 2] == pytest.approx(0.72 + 0.6 * np.sqrt(0.19))
    assert (found == found.T).all()
    one = synonymy(["alpha", "beta", "gamma", "xy"], near, 0.85, 1).toarray()
    assert one[0].tolist() == pytest.approx([0, 0, 0, 1.0])
    assert one[2, 1] > 0
    assert one[0, 2] == 0


def test_a_synonym_takes_the_place_of_the_facts_between_two_phrases() -> None:
    graph = read_facts([clean_triples([["alpha", "is", "beta"], ["alpha", "has", "gamma"]])])
    synonyms = synonymy(graph.phrases, np.array([[1, 0], [1, 0], [0, 1]], np.float32), 0.8, 100)
    weights = edge_weights(graph, synonyms, parallel=False).toarray()
    assert weights[:3, :3].tolist() == [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    assert edge_weights(graph, synonyms * 0.9, parallel=False).toarray()[0, 1] == pytest.approx(0.9)


def test_the_ranking_is_that_worked_out_by_hand(tmp_path: Path, openie: str) -> None:
    method = hipporag2.make(kit(tmp_path / "index", HandEncoder(COSINES), openie=openie, filter="none", parallel=False))
    indexed = method.index(DOCUMENTS)
    assert indexed.figures == {"phrases": 3, "facts": 2, "synonyms": 0, "edges": 6}
    assert indexed.usage.embedding_tokens == 8
    found = method.retrieve(QUESTION, 3)
    # Scaled, the fact of the film scores 1 and the other 0. Phrases: film 1 / 1 passage, director (1 + 0) / 2 / 2
    # passages, mother 0. Passages .05 times 1, 0 and 1/3.
    restart = np.array([0, 1, 0.25, 0.05, 0, 0.05 / 3])
    restart /= restart.sum()
    # The matrix of the test above, each column divided by the number of its edges.
    walk = np.array(
        [
            [0, 0, 1 / 4, 0, 1 / 2, 0],
            [0, 0, 1 / 4, 1 / 2, 0, 0],
            [1 / 2, 1 / 2, 0, 1 / 2, 1 / 2, 0],
            [0, 1 / 2, 1 / 4, 0, 0, 0],
            [1 / 2, 0, 1 / 4, 0, 0, 0],
            [0, 0, 0, 0, 0, 0],
        ]
    )
    walk[:, 5] = restart  # nowhere to go from the passage without triples
    by_hand = np.linalg.solve(np.eye(6) - 0.5 * walk, 0.5 * restart)
    assert found.documents == ("film", "director", "other")
    assert [piece.score for piece in found.recall.chunks] == pytest.approx(by_hand[3:].tolist(), abs=1e-9)
    assert found.recall.chunks[1].chunk.text == DOCUMENTS[1].text
    assert found.usage.embedding_tokens == 1
    assert method.retrieve(QUESTION, 1).documents == ("film",)
    assert method.answer(QUESTION) is None


def test_only_the_best_phrases_start_the_walk() -> None:
    graph = read_facts([clean_triples([["a", "r", "b"], ["c", "r", "d"]]), clean_triples([["a", "r", "b"]])])
    likeness = np.array([1.0, 0.8])
    # a and b are in two passages: 1 / 2; c and d in one: 0.8.
    assert hipporag2.restarts(graph, likeness, np.array([0, 1]), 4).tolist() == [0.5, 0.5, 0.8, 0.8]
    assert hipporag2.restarts(graph, likeness, np.array([0, 1]), 3).tolist() == [0.5, 0, 0.8, 0.8]


def test_the_filter_keeps_the_facts_it_names(tmp_path: Path, openie: str) -> None:
    generator = ScriptedGenerator(['{"facts": [2]}'])
    method = hipporag2.make(kit(tmp_path / "index", HandEncoder(COSINES), generator, openie=openie))
    method.index(DOCUMENTS)
    found = method.retrieve(QUESTION, 3)
    prompt = generator.asked[0][-1].content
    assert "1. polish russian war | directed by | xawery żuławski" in prompt
    assert "2. xawery żuławski | son of | małgorzata braunek" in prompt
    # Its score, the least, is 0 when scaled: the passages alone start the walk, and that of the film leads.
    assert found.documents[0] == "film"
    assert found.usage.calls == 1
    assert found.usage.input_tokens > 20


def test_without_a_fact_left_the_dense_ranking_stands(tmp_path: Path, openie: str) -> None:
    generator = ScriptedGenerator(['{"facts": []}', "nothing", "like JSON"])
    method = hipporag2.make(kit(tmp_path / "index", HandEncoder(COSINES), generator, openie=openie))
    method.index(DOCUMENTS)
    found = method.retrieve(QUESTION, 3)
    assert found.documents == ("film", "other", "director")
    assert found.notes == ()
    failed = method.retrieve(QUESTION, 3)
    assert failed.documents == ("film", "other", "director")
    assert failed.notes[0].startswith("no fact was kept")
    assert failed.usage.calls == 2


def test_triples_are_read_in_two_calls_a_passage_and_paid_once(tmp_path: Path) -> None:
    replies = {
        "film": ['{"entities": ["Polish-Russian War", "Xawery Żuławski"]}', json.dumps({"triples": TRIPLES["film"]})],
        "director": ["no JSON", "none again", json.dumps({"triples": TRIPLES["director"]})],
        "other": ['{"entities": []}', "no JSON", '{"triples": "none"}'],
    }
    generator = ScriptedGenerator([reply for some in replies.values() for reply in some])
    ledger = MemoryLedger()
    first = hipporag2.make(kit(tmp_path / "index", HandEncoder(COSINES), generator, ledger, filter="none"))
    indexed = first.index(DOCUMENTS)
    assert indexed.usage.calls == len(generator.asked) == 8
    assert len(indexed.notes) == 1
    assert "1 of 3 passages have no triples" in indexed.notes[0]
    assert "Polish-Russian War; Xawery Żuławski" in generator.asked[1][-1].content
    ranking = first.retrieve(QUESTION, 3).documents
    assert ranking == ("film", "director", "other")

    silent, encoder = ScriptedGenerator([]), HandEncoder(COSINES)
    again = hipporag2.make(kit(tmp_path / "index", encoder, silent, ledger, filter="none"))
    assert again.index(DOCUMENTS) == indexed
    assert silent.asked == []
    assert encoder.encoded == []
    assert again.retrieve(QUESTION, 3).documents == ranking

    # In another folder the ledger pays the accepted replies, and what they cost is told all the same.
    paid = ScriptedGenerator(["no JSON", "none again", "no JSON", '{"triples": "none"}'])
    other = hipporag2.make(kit(tmp_path / "other", HandEncoder(COSINES), paid, ledger, filter="none")).index(DOCUMENTS)
    assert len(paid.asked) == 4
    assert other.usage.cached == 4
    assert other.usage.calls == 8
    assert other.usage.input_tokens == indexed.usage.input_tokens


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, openie: str) -> None:
    folder = tmp_path / "index"
    replies = ['{"entities": []}', json.dumps({"triples": TRIPLES["film"]})]
    with pytest.raises(Exception, match="no reply left"):
        hipporag2.make(kit(folder, HandEncoder(COSINES), ScriptedGenerator(replies))).index(DOCUMENTS)
    journal = folder / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"key": "cut o')
    rest = ['{"entities": []}', json.dumps({"triples": TRIPLES["director"]}), '{"entities": []}', '{"triples": []}']
    generator = ScriptedGenerator(rest)
    indexed = hipporag2.make(kit(folder, HandEncoder(COSINES), generator)).index(DOCUMENTS)
    assert len(generator.asked) == 4
    assert indexed.usage.calls == 6
    assert len(journal.read_text("utf-8").splitlines()) == 3


@pytest.mark.parametrize("change", ["documents", "parameter", "damaged"])
def test_an_index_of_something_else_is_built_anew(tmp_path: Path, openie: str, change: str) -> None:
    folder = tmp_path / "index"
    hipporag2.make(kit(folder, HashEncoder(), openie=openie, filter="none")).index(DOCUMENTS)
    documents = DOCUMENTS[:2] if change == "documents" else DOCUMENTS
    if change == "damaged":
        (folder / "index.npz").write_bytes((folder / "index.npz").read_bytes()[:100])
    threshold = 0.7 if change == "parameter" else 0.8
    changed = hipporag2.make(kit(folder, HashEncoder(), openie=openie, filter="none", synonymy=threshold))
    changed.index(documents)
    assert set(changed.retrieve(QUESTION, 10).documents) == {one.id for one in documents}
    fresh = hipporag2.make(kit(tmp_path / "fresh", HashEncoder(), openie=openie, filter="none", synonymy=threshold))
    fresh.index(documents)
    assert changed.retrieve(QUESTION, 10).recall == fresh.retrieve(QUESTION, 10).recall


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Polish-Russian  War!", "polish russian war"),
        ("Xawery Żuławski", "xawery żuławski"),
        ("Ko\u0301pavogur", "kópavogur"),
        ("東京タワー", "東京タワー"),
        ("हिन्दी भाषा", "हिन्दी भाषा"),
        ("U.S.", "u s"),
        ("—", ""),
    ],
)
def test_names_in_every_script_survive(text: str, normal: str) -> None:
    assert normal_phrase(text) == normal


def test_a_file_of_triples_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "triples.jsonl"
    path.write_text('{"id": "film", "triples": [["a", "b"]]}\n', "utf-8")
    with pytest.raises(InputError, match="line 1: a triple must be a list of three"):
        given_triples(path, DOCUMENTS)
    path.write_text('{"id": "nobody", "triples": []}\n', "utf-8")
    with pytest.raises(InputError, match="none of the 3 documents"):
        given_triples(path, DOCUMENTS)
    path.write_text('{"id": "film", "triples": []}\n', "utf-8")
    assert given_triples(path, DOCUMENTS).notes == ("2 of 3 documents have no triples in triples.jsonl",)
    with pytest.raises(InputError, match="cannot read"):
        given_triples(tmp_path / "absent", DOCUMENTS)


def test_parameters_and_models_are_checked(tmp_path: Path, openie: str) -> None:
    with pytest.raises(SettingsError, match="no parameter 'depth'"):
        hipporag2.make(kit(tmp_path, HashEncoder(), depth=2))
    with pytest.raises(SettingsError, match="'damping' of hipporag2 must be a number from 0 to"):
        hipporag2.make(kit(tmp_path, HashEncoder(), damping=1))
    with pytest.raises(ModelNotAvailable, match="needs a language model"):
        hipporag2.make(kit(tmp_path, HashEncoder())).index(DOCUMENTS)
    with pytest.raises(InputError, match="index the documents first"):
        hipporag2.make(kit(tmp_path, HashEncoder(), openie=openie)).retrieve(QUESTION, 3)
