"""Reading evaluation data: what is taken, and what is refused with file and line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.dataset import Dataset, Question, load_dataset
from ecphoryrag.types import Document

Records = list[dict[str, object]]

CORPUS: Records = [
    {"id": "a", "title": "Ada", "text": "Ada was born in Dunlisk.", "year": 1901},
    {"id": "b", "text": "Dunlisk lies on the Iskel."},
]
QUESTIONS: Records = [
    {
        "id": "q1",
        "question": "Which river?",
        "answers": ["Iskel", "the Iskel"],
        "gold": ["a", "b", "a"],
        "type": "2hop",
    },
    {"id": "q2", "question": "Who was born in Dunlisk?", "gold": ["a"]},
]


def write(path: Path, records: Records) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def load(
    folder: Path,
    corpus: Records = CORPUS,
    questions: Records = QUESTIONS,
    *,
    titles: bool = True,
    limit: int | None = None,
) -> Dataset:
    return load_dataset(
        write(folder / "corpus.jsonl", corpus), write(folder / "questions.jsonl", questions), titles=titles, limit=limit
    )


def test_records_become_documents_and_questions(tmp_path: Path) -> None:
    dataset = load(tmp_path)
    assert dataset.documents == (
        Document("a", "Ada was born in Dunlisk.", "Ada", {"year": 1901}),
        Document("b", "Dunlisk lies on the Iskel."),
    )
    assert dataset.questions == (
        Question("q1", "Which river?", ("a", "b"), ("Iskel", "the Iskel"), "2hop"),
        Question("q2", "Who was born in Dunlisk?", ("a",)),
    )
    assert dataset.digests["corpus"] == hashlib.sha256((tmp_path / "corpus.jsonl").read_bytes()).hexdigest()
    assert dataset.text_bytes == len("Ada was born in Dunlisk.Dunlisk lies on the Iskel.")


def test_titles_are_blanked_and_gold_stays(tmp_path: Path) -> None:
    dataset = load(tmp_path, titles=False)
    assert [document.title for document in dataset.documents] == ["", ""]
    assert "Ada" not in str(dataset.documents[0].metadata)
    assert dataset.questions == load(tmp_path).questions


def test_limit_cuts_questions_and_not_the_corpus(tmp_path: Path) -> None:
    dataset = load(tmp_path, limit=1)
    assert (len(dataset.questions), len(dataset.documents)) == (1, 2)
    with pytest.raises(InputError, match="limit on questions is 0"):
        load(tmp_path, limit=0)


def test_byte_order_mark_blank_lines_and_carriage_returns_are_taken(tmp_path: Path) -> None:
    corpus, questions = tmp_path / "c.jsonl", tmp_path / "q.jsonl"
    corpus.write_bytes(b"\xef\xbb\xbf" + json.dumps(CORPUS[0]).encode() + b"\r\n\r\n" + json.dumps(CORPUS[1]).encode())
    write(questions, QUESTIONS)
    assert len(load_dataset(corpus, questions).documents) == 2


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ([], "holds no document"),
        ([CORPUS[0], {"id": "b"}], "line 2: `text` must be text"),
        ([CORPUS[0], {"id": "b", "text": "  "}], "line 2: `text` must be text"),
        ([CORPUS[0], {"id": 7, "text": "x"}], "line 2: `id` must be text that is not blank; found 7"),
        ([CORPUS[0], CORPUS[1], {"id": "a", "text": "x"}], "line 3: the id 'a' stands already on line 1"),
        ([CORPUS[0], {"id": "b", "title": ["x"], "text": "x"}], "line 2: `title` must be text"),
        ([CORPUS[0]], r"questions.jsonl, line 1: gold document 'b' is not in .*corpus.jsonl"),
    ],
)
def test_a_bad_corpus_is_refused_by_line(tmp_path: Path, corpus: Records, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(tmp_path, corpus=corpus)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"id": "q1", "question": "x", "gold": ["a"]}, "line 2: the id 'q1' stands already on line 1"),
        ({"id": "q9", "question": "", "gold": ["a"]}, "line 2: `question` must be text"),
        ({"id": "q9", "question": "x", "gold": []}, "line 2: `gold` is empty"),
        ({"id": "q9", "question": "x"}, "line 2: `gold` must be a list of texts; found nothing"),
        ({"id": "q9", "question": "x", "gold": ["a", 3]}, "line 2: `gold` must hold only texts"),
        ({"id": "q9", "question": "x", "gold": ["a"], "answers": "Iskel"}, "line 2: `answers` must be a list"),
        ({"id": "q9", "question": "x", "gold": ["nowhere"]}, "line 2: gold document 'nowhere' is not in"),
    ],
)
def test_a_bad_question_is_refused_by_line(tmp_path: Path, question: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        load(tmp_path, questions=[QUESTIONS[0], question])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"id": ', "line 2: not valid JSON"),
        (b"[1, 2]", "line 2: expected a JSON record in braces, found list"),
        (b'{"id": "\xff"}', "line 2: not UTF-8 at byte 8"),
    ],
)
def test_what_is_no_record_is_refused_by_line(tmp_path: Path, line: bytes, said: str) -> None:
    corpus = tmp_path / "c.jsonl"
    corpus.write_bytes(json.dumps(CORPUS[0]).encode() + b"\n" + line + b"\n")
    with pytest.raises(InputError, match=said):
        load_dataset(corpus, write(tmp_path / "q.jsonl", QUESTIONS))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*nowhere\.jsonl"):
        load_dataset(tmp_path / "nowhere.jsonl", write(tmp_path / "q.jsonl", QUESTIONS))


def test_a_file_without_questions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no question"):
        load(tmp_path, questions=[])
