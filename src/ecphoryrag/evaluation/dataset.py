"""Evaluation data: a corpus of documents and questions whose needed documents (gold) are known.

Both files are JSON Lines in UTF-8. A corpus line has ``id``, ``text`` and, if it has one, ``title``; further fields
become metadata. A question line has ``id``, ``question``, ``gold`` (ids of all documents needed) and, where known,
``answers`` (the main one first, then aliases) and ``type``. Blank lines are passed over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ecphoryrag.errors import InputError
from ecphoryrag.types import Document, JsonValue

Record = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the documents that answer it."""

    id: str
    text: str
    gold: tuple[str, ...]
    """Ids of all documents needed, each once."""
    answers: tuple[str, ...] = ()
    """The main answer, then its aliases; empty if the file gives none."""
    type: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A corpus and its questions, checked against each other."""

    documents: tuple[Document, ...]
    questions: tuple[Question, ...]
    digests: dict[str, str]
    """``corpus`` and ``questions``: hexadecimal SHA-256 of the file."""
    notes: tuple[str, ...] = ()
    """What was found when reading that whoever reads the figures should know."""

    @property
    def text_bytes(self) -> int:
        """Size of the documents' texts in UTF-8, titles not counted."""
        return sum(len(document.text.encode("utf-8", "surrogatepass")) for document in self.documents)


def load_dataset(corpus: Path, questions: Path, *, titles: bool = True, limit: int | None = None) -> Dataset:
    """Read and check both files. ``titles=False`` blanks every title; gold stays as it is. ``limit`` keeps the first
    questions, never fewer documents.

    Raises InputError, naming file and line, for a line that is not such a record, an id that occurs twice, or a gold
    id that no document has.
    """
    if limit is not None and limit < 1:
        raise InputError(f"the limit on questions is {limit}: give 1 or more, or leave it out for all")
    documents = _documents(corpus, titles=titles)
    asked = _questions(questions, {document.id for document in documents}, corpus)
    digests = {"corpus": _digest(corpus), "questions": _digest(questions)}
    return Dataset(documents, asked[:limit], digests)


def _documents(path: Path, *, titles: bool) -> tuple[Document, ...]:
    documents: list[Document] = []
    seen: dict[str, int] = {}
    for number, record in _records(path):
        where = f"{path}, line {number}"
        identity = _text(record, "id", where)
        _once(identity, seen, number, where)
        title = _text(record, "title", where) if record.get("title") else ""
        metadata = {name: value for name, value in record.items() if name not in ("id", "title", "text")}
        documents.append(Document(identity, _text(record, "text", where), title if titles else "", metadata))
    if not documents:
        raise InputError(f"{path} holds no document: the corpus needs one JSON record a line")
    return tuple(documents)


def _questions(path: Path, known: set[str], corpus: Path) -> tuple[Question, ...]:
    questions: list[Question] = []
    seen: dict[str, int] = {}
    for number, record in _records(path):
        where = f"{path}, line {number}"
        identity = _text(record, "id", where)
        _once(identity, seen, number, where)
        gold = tuple(dict.fromkeys(_texts(record, "gold", where)))
        if not gold:
            raise InputError(f"{where}: `gold` is empty; recall needs at least one document to be found")
        missing = [document for document in gold if document not in known]
        if missing:
            raise InputError(
                f"{where}: gold document {missing[0]!r} is not in {corpus}; do the two files belong together?"
            )
        answers = _texts(record, "answers", where) if "answers" in record else ()
        kind = _text(record, "type", where) if record.get("type") else ""
        questions.append(Question(identity, _text(record, "question", where), gold, answers, kind))
    if not questions:
        raise InputError(f"{path} holds no question: it needs one JSON record a line")
    return tuple(questions)


def _records(path: Path) -> Iterator[tuple[int, Record]]:
    """Line number, counted from 1, and record."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                text = _decode(line, path, number)
                if text.strip():
                    yield number, _record(text, path, number)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a JSON Lines file") from error


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, line {number}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error


def _record(text: str, path: Path, number: int) -> Record:
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {number}: not valid JSON ({error.msg}, column {error.colno})") from error
    if not isinstance(record, dict):
        raise InputError(f"{path}, line {number}: expected a JSON record in braces, found {type(record).__name__}")
    return record


def _text(record: Record, name: str, where: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: `{name}` must be text that is not blank; found {_shown(value)}")
    return value


def _texts(record: Record, name: str, where: str) -> tuple[str, ...]:
    value = record.get(name)
    if not isinstance(value, list):
        raise InputError(f"{where}: `{name}` must be a list of texts; found {_shown(value)}")
    texts = tuple(item for item in value if isinstance(item, str) and item.strip())
    if len(texts) < len(value):
        raise InputError(f"{where}: `{name}` must hold only texts that are not blank; found {_shown(value)}")
    return texts


def _once(identity: str, seen: dict[str, int], number: int, where: str) -> None:
    if identity in seen:
        raise InputError(f"{where}: the id {identity!r} stands already on line {seen[identity]}; ids must differ")
    seen[identity] = number


def _shown(value: JsonValue) -> str:
    shown = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
