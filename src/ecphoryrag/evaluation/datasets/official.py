"""The files of HotpotQA, 2WikiMultihopQA and MuSiQue-Ans as their makers publish them, and of HippoRAG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.datasets.pool import Passage, RawQuestion
from ecphoryrag.evaluation.datasets.records import Record, json_lines, json_list, sentences, whole_number

NO_ANSWERS = (
    "it has no `answer`: this seems to be the makers' test file, whose answers are not published; use the dev file"
)
Aliases = Mapping[str, tuple[str, ...]]


def hotpotqa(path: Path) -> Iterator[RawQuestion]:
    """HotpotQA, distractor or fullwiki (Yang et al. 2018): one JSON list; the sentences bring their own spaces.

    In the fullwiki file the passages were retrieved by the makers, and gold ones may be missing among them.
    """
    for record in json_list(path):
        yield _with_facts(record, "", {})


def two_wiki(path: Path, aliases: Aliases) -> Iterator[RawQuestion]:
    """2WikiMultihopQA (Ho et al. 2020): HotpotQA's format, the sentences without spaces between them.

    ``aliases`` by Wikidata id, of :func:`two_wiki_aliases`, as the makers' evaluation (v1.1) accepts them.
    """
    for record in json_list(path):
        yield _with_facts(record, " ", aliases)


def two_wiki_aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """``id_aliases.json``: JSON Lines of Wikidata id, aliases and demonyms."""
    return {
        record.text("Q_id"): tuple(dict.fromkeys([*record.texts("aliases"), *record.texts("demonyms")]))
        for record in json_lines(path)
    }


def musique(path: Path) -> Iterator[RawQuestion]:
    """MuSiQue-Ans (Trivedi et al. 2022): JSON Lines; the type is the first part of the id (``2hop``, ``3hop1``)."""
    for record in json_lines(path):
        if record.values.get("answerable") is False:
            raise record.wrong("`answerable` is false: this is MuSiQue-Full; use the file of MuSiQue-Ans")
        yield _with_paragraphs(record)


def hipporag(path: Path) -> Iterator[RawQuestion]:
    """HippoRAG's question files (Gutiérrez et al. 2024, 2025): records of any of the three formats above."""
    two_wiki_like = "hotpot" not in path.name.lower()
    for record in json_list(path):
        if "supporting_facts" in record.values:
            yield _with_facts(record, " " if two_wiki_like else "", {})
        else:
            yield _with_paragraphs(record)


def hipporag_corpus(path: Path) -> Iterator[Passage]:
    """HippoRAG's corpus file: one JSON list of title and text."""
    for record in json_list(path):
        yield Passage(record.optional_text("title"), record.text("text"))


def _with_facts(record: Record, between: str, aliases: Aliases) -> RawQuestion:
    """``context`` is a list of [title, sentences], ``supporting_facts`` of [title, number of the sentence]."""
    identity = record.first_text("_id", "id")
    answers = _answers(record)
    facts = record.pairs("supporting_facts", whole_number, "[title, number of a sentence]")
    needed = dict.fromkeys(title for title, _ in facts)
    if not needed:
        raise record.wrong("`supporting_facts` is empty; recall needs at least one passage to be found")
    context = record.pairs("context", sentences, "[title, list of sentences]")
    present = {title for title, _ in context}
    answer_id = record.optional_text("answer_id")
    return RawQuestion(
        identity,
        record.text("question"),
        tuple(dict.fromkeys([*answers, *aliases.get(answer_id, ())])),
        tuple(Passage(title, between.join(parts), title in needed) for title, parts in context),
        tuple(title for title in needed if title not in present),
        record.optional_text("type"),
    )


def _with_paragraphs(record: Record) -> RawQuestion:
    """``paragraphs`` is a list of title, text and whether it is needed."""
    identity = record.first_text("id", "_id")
    passages = []
    for paragraph in record.records("paragraphs"):
        needed = paragraph.values.get("is_supporting")
        if not isinstance(needed, bool):
            raise paragraph.wrong("`is_supporting` must be true or false: recall needs to know the gold passages")
        text = paragraph.first_text("paragraph_text", "text")
        passages.append(Passage(paragraph.optional_text("title"), text, needed))
    if not any(passage.gold for passage in passages):
        raise record.wrong("no paragraph `is_supporting`; recall needs at least one passage to be found")
    kind = identity.split("__")[0] if "__" in identity else record.optional_text("type")
    return RawQuestion(identity, record.text("question"), _answers(record), tuple(passages), type=kind)


def _answers(record: Record) -> tuple[str, ...]:
    """``answer``, a text or a list of them, then ``answer_aliases``."""
    if record.values.get("answer") is None:
        raise record.wrong(NO_ANSWERS)
    main = record.texts("answer") if isinstance(record.values["answer"], list) else [record.text("answer")]
    if not main:
        raise record.wrong("`answer` holds no text")
    more = record.texts("answer_aliases") if "answer_aliases" in record.values else []
    return tuple(dict.fromkeys([*main, *more]))


def unique(questions: Iterator[RawQuestion], path: Path) -> list[RawQuestion]:
    """All of them. Raises InputError if there is none, or an id occurs twice."""
    found: dict[str, RawQuestion] = {}
    for question in questions:
        if question.id in found:
            raise InputError(f"{path}: the id {question.id} occurs twice; ids must differ")
        found[question.id] = question
    if not found:
        raise InputError(f"{path} holds no question")
    return list(found.values())
