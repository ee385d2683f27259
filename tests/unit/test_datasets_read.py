"""Each official format, in tiny files of our own words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.dataset import Dataset
from ecphoryrag.evaluation.datasets import Selection, Source, read

Json = Any
Values = dict[str, Any]

VALE = ["The Silent Vale", ["The Silent Vale is a film.", " Orla Menken directed it."]]
ORLA = ["Orla Menken", ["Orla Menken is a daughter of Brida Sollas."]]
ROPE = ["Haskett", ["Haskett makes ropes."]]
OTHER_ROPE = ["Haskett", ["Haskett is a village."]]


def hotpot(identity: str, context: Sequence[Json], facts: Sequence[str], **more: Json) -> Values:
    return {
        "_id": identity,
        "question": "Who is the mother of the director of The Silent Vale?",
        "answer": "Brida Sollas",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [[title, 0] for title in facts],
        "context": list(context),
        **more,
    }


def paragraphs(*items: tuple[str, str, bool], text: str = "paragraph_text") -> Json:
    return [
        {"idx": number, "title": title, text: body, "is_supporting": needed}
        for number, (title, body, needed) in enumerate(items)
    ]


def musique(identity: str, *items: tuple[str, str, bool], **more: Json) -> Values:
    return {
        "id": identity,
        "paragraphs": paragraphs(*items),
        "question": "On which river lies Dunlisk?",
        "question_decomposition": [],
        "answer": "Iskel",
        "answer_aliases": ["River Iskel", "Iskel"],
        "answerable": True,
        **more,
    }


def written(path: Path, content: Json, *, lines: bool = False) -> Path:
    text = "\n".join(map(json.dumps, content)) if lines and isinstance(content, list) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def titles(data: Dataset, ids: Sequence[str]) -> list[str]:
    by_id = {document.id: document.title for document in data.documents}
    return [by_id.get(identity, identity) for identity in ids]


def test_hotpotqa_pools_the_passages_of_all_questions_and_merges_equal_ones(tmp_path: Path) -> None:
    path = written(
        tmp_path / "dev.json",
        [
            hotpot("a", [VALE, ORLA, ROPE], ["The Silent Vale", "Orla Menken", "The Silent Vale"]),
            hotpot("b", [OTHER_ROPE, ORLA], ["Haskett"]),
        ],
    )
    data = read(Source("hotpotqa", "hotpotqa", path))
    assert sorted((document.title, document.text) for document in data.documents) == [
        ("Haskett", "Haskett is a village."),
        ("Haskett", "Haskett makes ropes."),
        ("Orla Menken", "Orla Menken is a daughter of Brida Sollas."),
        ("The Silent Vale", "The Silent Vale is a film. Orla Menken directed it."),
    ]
    first, second = data.questions
    assert titles(data, first.gold) == ["The Silent Vale", "Orla Menken"]
    texts = {document.id: document.text for document in data.documents}
    assert [texts[identity] for identity in second.gold] == ["Haskett is a village."]  # its own, not its namesake
    assert (first.id, first.answers, first.type) == ("a", ("Brida Sollas",), "bridge")
    assert data.notes == ("1 passages of 2 questions were equal to others and merged",)
    assert all(document.id.startswith("hotpotqa-") for document in data.documents)


def test_a_gold_passage_missing_from_fullwiki_stays_needed(tmp_path: Path) -> None:
    path = written(tmp_path / "fullwiki.json", [hotpot("a", [VALE, ROPE], ["The Silent Vale", "Orla Menken"])])
    data = read(Source("hotpotqa", "hotpotqa", path))
    assert titles(data, data.questions[0].gold) == ["The Silent Vale", "not-in-corpus:Orla Menken"]
    assert data.notes == ("1 of 1 questions need a passage that the file does not hold",)


def test_2wiki_joins_sentences_and_takes_the_aliases_of_the_answer(tmp_path: Path) -> None:
    context: list[Any] = [["Orla Menken", ["Orla was born.", "She directed."]], ["Rope", ["Hemp."]]]
    path = written(
        tmp_path / "dev.json", [hotpot("a", context, ["Orla Menken"], answer_id="Q7", evidences=[], evidences_id=[])]
    )
    aliases = written(
        tmp_path / "id_aliases.json",
        [
            {"Q_id": "Q7", "aliases": ["B. Sollas", "Brida Sollas"], "demonyms": ["Sollasian"]},
            {"Q_id": "Q8", "aliases": [], "demonyms": []},
        ],
        lines=True,
    )
    data = read(Source("2wiki", "2wikimultihopqa", path, aliases=aliases))
    assert "Orla was born. She directed." in [document.text for document in data.documents]
    assert data.questions[0].answers == ("Brida Sollas", "B. Sollas", "Sollasian")
    plain = read(Source("2wiki", "2wikimultihopqa", path))
    assert plain.questions[0].answers == ("Brida Sollas",)
    assert plain.digests["corpus"] == data.digests["corpus"]
    assert plain.digests["questions"] != data.digests["questions"]


def test_musique_maps_gold_aliases_and_type(tmp_path: Path) -> None:
    path = written(
        tmp_path / "musique.jsonl",
        [
            musique("3hop1__1_2", ("Dunlisk", "A town on the Iskel.", True), ("Rope", "Hemp.", False)),
            musique("2hop__3_4", ("Rope", "Hemp.", False), ("Iskel", "A river.", True)),
        ],
        lines=True,
    )
    data = read(Source("musique", "musique", path))
    assert len(data.documents) == 3
    assert titles(data, data.questions[0].gold) == ["Dunlisk"]
    assert data.questions[0].answers == ("Iskel", "River Iskel")
    assert [question.type for question in data.questions] == ["3hop1", "2hop"]


def test_hipporag_matches_gold_by_title_and_text(tmp_path: Path) -> None:
    corpus = written(
        tmp_path / "set_corpus.json",
        [
            {"title": "Haskett", "text": "Haskett makes ropes.", "idx": 0},
            {"title": "Haskett", "text": "Haskett is a village.", "idx": 1},
            {"title": "The Silent Vale", "text": "The Silent Vale is a film.  Orla Menken directed it.", "idx": 2},
            {"title": "Iskel", "text": "The Iskel, as the corpus has it.", "idx": 3},
        ],
    )
    generic: Values = {
        "id": "c",
        "question": "Which river?",
        "answer": ["Iskel", "River Iskel"],
        "paragraphs": paragraphs(("Iskel", "The Iskel, otherwise.", True), text="text"),
    }
    questions = written(
        tmp_path / "set.json",
        [
            hotpot("a", [VALE, ROPE], ["The Silent Vale"]),
            musique("2hop__1", ("Haskett", "Haskett is a village.", True), ("Rope", "Not in the corpus.", False)),
            generic,
        ],
    )
    data = read(Source("set", "hipporag", questions, corpus))
    assert len(data.documents) == 4  # the corpus alone, not what else stands with the questions
    texts = {document.id: document.text for document in data.documents}
    assert [[texts[identity] for identity in question.gold] for question in data.questions] == [
        ["The Silent Vale is a film.  Orla Menken directed it."],
        ["Haskett is a village."],
        ["The Iskel, as the corpus has it."],
    ]
    assert data.questions[2].answers == ("Iskel", "River Iskel")
    written(questions, [musique("2hop__1", ("Haskett", "Haskett is a hill.", True))])
    with pytest.raises(InputError, match=r"set\.json, id 2hop__1: the gold passage 'Haskett' is not in"):
        read(Source("set", "hipporag", questions, corpus))


def test_our_own_format(tmp_path: Path) -> None:
    corpus = written(tmp_path / "corpus.jsonl", [{"id": "v", "title": "Vale", "text": "A film."}], lines=True)
    questions = written(
        tmp_path / "q.jsonl", [{"id": "1", "question": "Film?", "answers": ["Vale"], "gold": ["v"]}], lines=True
    )
    data = read(Source("own", "ecphory", questions, corpus, titles=False))
    assert (data.documents[0].id, data.documents[0].title, data.questions[0].gold) == ("v", "", ("v",))


@pytest.fixture
def many(tmp_path: Path) -> Source:
    records: list[Any] = [
        musique(f"2hop__{n}", (f"Town {n}", f"Town number {n}.", True), ("Rope", "Hemp.", False)) for n in range(40)
    ]
    return Source("musique", "musique", written(tmp_path / "musique.jsonl", records, lines=True))


def test_a_sample_is_drawn_by_its_seed_grows_at_its_end_and_keeps_the_corpus(many: Source) -> None:
    ten = read(many, Selection(count=10, seed=1))
    twenty = read(many, Selection(count=20, seed=1))
    other = read(many, Selection(count=10, seed=2))
    assert ten.questions == twenty.questions[:10]
    assert set(ten.questions) != set(other.questions)
    assert [question.id for question in ten.questions] != [f"2hop__{n}" for n in range(10)]
    assert ten.documents == other.documents
    assert len(ten.documents) == 41
    alone = read(many, Selection(count=10, seed=1, pool="sample"))
    assert len(alone.documents) == 11
    assert alone.questions == ten.questions
    assert alone.digests["corpus"] != ten.digests["corpus"]


def test_development_and_test_questions_never_meet(many: Source) -> None:
    development = read(many, Selection("development", 15))
    test = read(many, Selection("test", 15))
    assert (len(development.questions), len(test.questions)) == (15, 25)
    assert not set(development.questions) & set(test.questions)
    assert development.documents == test.documents
    with pytest.raises(InputError, match="has no test questions: 40 of 40 are for development"):
        read(many, Selection("test", 40))
    with pytest.raises(InputError, match="15 such questions, fewer than the 16 asked for"):
        read(many, Selection("development", 15, count=16))


def test_order_and_ids_of_passages_tell_nothing(many: Source) -> None:
    data = read(many)
    assert [document.id for document in data.documents] == sorted(document.id for document in data.documents)
    assert [document.title for document in data.documents[:5]] != [f"Town {n}" for n in range(5)]


@pytest.mark.parametrize(
    ("kind", "address", "licence"),
    [
        ("hotpotqa", "https://hotpotqa.github.io/", "CC BY-SA 4.0"),
        ("2wikimultihopqa", "https://github.com/Alab-NII/2wikimultihop", "Apache-2.0"),
        ("musique", "https://github.com/StonyBrookNLP/musique", "CC BY 4.0"),
        ("hipporag", "https://github.com/OSU-NLP-Group/HippoRAG", "MIT"),
    ],
)
def test_a_missing_file_is_said_with_its_makers_and_licence(
    tmp_path: Path, kind: str, address: str, licence: str
) -> None:
    source = Source("x", kind, tmp_path / "nothing.json")  # type: ignore[arg-type]  # a parametrised literal
    with pytest.raises(InputError) as raised:
        read(source)
    for part in ("nothing.json is not there", address, licence, "Nothing is downloaded"):
        assert part in str(raised.value)


def without(record: Values, name: str) -> Values:
    return {key: value for key, value in record.items() if key != name}


GOOD = hotpot("a", [VALE], ["The Silent Vale"])
LINE = musique("2hop__1", ("Rope", "Hemp.", True))


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("hotpotqa", {"data": []}, r"file: expected one JSON list of records, found dict"),
        ("hotpotqa", [], r"file holds no question"),
        ("hotpotqa", [GOOD, 7], r"file, record 2: expected a JSON object, found 7"),
        ("hotpotqa", [GOOD, GOOD], r"file: the id a occurs twice"),
        ("hotpotqa", [without(GOOD, "_id")], r"file, record 1: there is none of `_id`, `id`"),
        ("hotpotqa", [without(GOOD, "answer")], r"file, record 1 \(id a\): it has no `answer`.*test file"),
        ("hotpotqa", [{**GOOD, "answer": " "}], r"\(id a\): `answer` must be text that is not blank; found \" \""),
        ("hotpotqa", [{**GOOD, "question": 3}], r"\(id a\): `question` must be text"),
        ("hotpotqa", [{**GOOD, "supporting_facts": []}], r"\(id a\): `supporting_facts` is empty"),
        ("hotpotqa", [{**GOOD, "supporting_facts": [["x", "y"]]}], r"item 1 of `supporting_facts` must be \[title"),
        ("hotpotqa", [{**GOOD, "context": [["x", "y"]]}], r"item 1 of `context` must be \[title, list of sentences\]"),
        ("hotpotqa", [{**GOOD, "context": [["x", [1]]]}], r"item 1 of `context`"),
        ("hotpotqa", [{**GOOD, "context": None}], r"`context` must be a list; found nothing"),
        ("musique", [{**LINE, "answerable": False}], r"file, line 1 \(id 2hop__1\): `answerable` is false"),
        ("musique", [without(LINE, "answer")], r"\(id 2hop__1\): it has no `answer`"),
        ("musique", [{**LINE, "answer_aliases": "x"}], r"`answer_aliases` must be a list; found \"x\""),
        ("musique", [{**LINE, "answer_aliases": [1]}], r"`answer_aliases` must be a list of texts"),
        ("musique", [{**LINE, "paragraphs": ["x"]}], r"item 1 of `paragraphs` must be an object"),
        ("musique", [{**LINE, "paragraphs": [{"title": "x"}]}], r"item 1 of `paragraphs`: `is_supporting` must be"),
        (
            "musique",
            [{**LINE, "paragraphs": [{"title": "x", "is_supporting": True}]}],
            r"none of `paragraph_text`, `text`",
        ),
        ("musique", [{**LINE, "paragraphs": paragraphs(("x", "y", False))}], r"no paragraph `is_supporting`"),
    ],
)
def test_a_malformed_record_is_named(tmp_path: Path, kind: str, content: Json, said: str) -> None:
    path = written(tmp_path / "file", content, lines=kind == "musique")
    with pytest.raises(InputError, match=said):
        read(Source("x", kind, path))  # type: ignore[arg-type]  # a parametrised literal


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("hotpotqa", b'[{"_id": "a"', "file: not valid JSON .*download complete"),
        ("hotpotqa", b'{"id": 1}\n{"id": 2}', "looks like JSON Lines"),
        ("hotpotqa", b"[\xff]", "file: not UTF-8 at byte 1"),
        ("musique", b'\n{"id": "a"', "file, line 2: not valid JSON"),
        ("hotpotqa", b"[" * 100_000, "file: not valid JSON"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, kind: str, content: bytes, said: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        read(Source("x", kind, path))  # type: ignore[arg-type]  # a parametrised literal


@pytest.mark.parametrize(
    ("source", "selection", "said"),
    [
        ({"format": "ecphory"}, {}, "needs a corpus file"),
        ({"format": "musique", "corpus": True}, {}, "leave `corpus` out"),
        ({"format": "musique", "aliases": True}, {}, "leave `aliases` out"),
        ({"format": "ecphory", "corpus": True}, {"pool": "sample"}, "leave `pool` out"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, source: Mapping[str, object], selection: Mapping[str, object], said: str
) -> None:
    path = written(tmp_path / "file", [LINE], lines=True)
    values = {name: path if value is True else value for name, value in source.items()}
    with pytest.raises(InputError, match=said):
        read(
            Source("x", questions=path, **values),  # type: ignore[arg-type]  # parametrised
            Selection(**selection),  # type: ignore[arg-type]  # parametrised
        )
