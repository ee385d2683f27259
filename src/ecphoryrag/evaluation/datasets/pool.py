"""Pooling: the passages that come with the questions become one corpus, each passage once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ecphoryrag.types import Document

MISSING = "not-in-corpus:"
"""Begins the id that stands for a gold passage which no question's passages hold."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a question."""

    title: str
    text: str
    gold: bool = False


@dataclass(frozen=True, slots=True)
class RawQuestion:
    """A question as its file gives it, before pooling."""

    id: str
    text: str
    answers: tuple[str, ...]
    """The main one first."""
    passages: tuple[Passage, ...]
    missing: tuple[str, ...] = ()
    """Titles of gold passages that are not among the passages."""
    type: str = ""


def passage_id(name: str, title: str, text: str) -> str:
    """The set's name and a hash of title and text: the same in every subset, and telling nothing of the position."""
    content = f"{title}\0{text}".encode("utf-8", "surrogatepass")
    return f"{name}-{hashlib.blake2b(content, digest_size=8).hexdigest()}"


class Pool:
    """Passages, each once."""

    def __init__(self, name: str, *, titles: bool) -> None:
        """``titles=False`` blanks every title in the documents; passages are told apart by them all the same."""
        self._name = name
        self._titles = titles
        self._documents: dict[str, Document] = {}
        self.merged = 0
        """How often an equal passage was met again."""
        self.blank = 0
        """Passages left out as they have no text."""

    def add(self, title: str, text: str) -> str:
        """The passage's id; one without text gets an id too, and is left out of the documents."""
        identity = passage_id(self._name, title, text)
        if not text.strip():
            self.blank += 1
        elif identity in self._documents:
            self.merged += 1
        else:
            self._documents[identity] = Document(identity, text, title if self._titles else "")
        return identity

    def documents(self) -> tuple[Document, ...]:
        """By id, which is a hash: neighbours have nothing to do with each other."""
        return tuple(document for _, document in sorted(self._documents.items()))

    def __contains__(self, identity: object) -> bool:
        return identity in self._documents


def gold_of(question: RawQuestion, pool: Pool) -> tuple[str, ...]:
    """Ids of the gold passages, in the order of the question's passages, each once; all of them in the pool already.

    A gold passage that the file does not hold keeps an id that nothing can find: leaving it out would make the
    question easier than it is.
    """
    found = [pool.add(passage.title, passage.text) for passage in question.passages if passage.gold]
    return tuple(dict.fromkeys([*found, *(MISSING + title for title in question.missing)]))


def shuffled(items: Iterable[str], salt: str) -> list[str]:
    """The items in an order drawn by ``salt`` from them alone: the first n of it are a sample that grows with n."""
    return sorted(items, key=lambda item: hashlib.blake2b(f"{salt}\0{item}".encode("utf-8", "surrogatepass")).digest())


def content_digest(documents: Sequence[Document]) -> str:
    """Hexadecimal SHA-256 of ids, titles and texts."""
    state = hashlib.sha256()
    for document in documents:
        for part in (document.id, document.title, document.text):
            content = part.encode("utf-8", "surrogatepass")
            state.update(len(content).to_bytes(8, "big") + content)
    return state.hexdigest()
