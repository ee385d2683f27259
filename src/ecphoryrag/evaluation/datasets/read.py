"""From files to a data set: read, divide, sample, pool."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.dataset import Dataset, Question, load_dataset
from ecphoryrag.evaluation.datasets import official
from ecphoryrag.evaluation.datasets.few import few_passages
from ecphoryrag.evaluation.datasets.makers import require
from ecphoryrag.evaluation.datasets.pool import Pool, RawQuestion, content_digest, gold_of, shuffled

Format = Literal["ecphory", "hotpotqa", "2wikimultihopqa", "musique", "hipporag"]
FORMATS: tuple[Format, ...] = get_args(Format)


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a set."""

    name: str
    """As in the tables; begins the ids of pooled passages."""
    format: Format
    """``ecphory`` is a corpus and a question file in JSON Lines, as ``docs/evaluation.md`` describes them."""
    questions: Path
    corpus: Path | None = None
    """For ``ecphory`` and ``hipporag``; the other formats hold the passages with their questions."""
    aliases: Path | None = None
    """``id_aliases.json`` of 2WikiMultihopQA."""
    titles: bool = True
    """False blanks every title."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which questions of a file, and which passages."""

    split: Literal["development", "test"] | None = None
    """Only used where ``development`` is given."""
    development: int | None = None
    """The file holds both: so many of its questions, drawn from their ids alone, are for development, and all others
    for testing. None: all of its questions are of one split."""
    count: int | None = None
    """Questions drawn by ``seed``; a smaller count is the beginning of a larger. None: all, in the file's order."""
    seed: int = 0
    pool: Literal["all", "sample"] = "all"
    """The corpus holds the passages of all questions of the file, or only of those drawn, which is easier."""
    passages: int | None = None
    """The corpus is cut to so many passages (:func:`.few.few_passages`), and the questions
    to those whose gold is among them: for what is too dear to measure on all."""


def read(source: Source, selection: Selection = Selection()) -> Dataset:
    """The set, with what is worth knowing in its notes.

    Raises InputError for a file that is not there (saying where its makers publish it, under which licence), a record
    that is malformed, or a selection that the set cannot give.
    """
    for path in (source.questions, source.corpus, source.aliases):
        if path is not None:
            require(path, source.format)
    _check(source, selection)
    if selection.passages is not None:
        whole = read(source, replace(selection, passages=None, count=None))
        few = few_passages(whole, selection.passages, selection.seed, source.name)
        ids = [question.id for question in few.questions]
        return _asked(few, _sample(ids, selection, source) if selection.count is not None else ids)
    if source.format == "ecphory":
        return _with_given_corpus(source, selection)
    raws = official.unique(_reader(source)(), source.questions)
    by_id = {raw.id: raw for raw in raws}
    chosen = [by_id[identity] for identity in _chosen(list(by_id), selection, source)]
    if source.format == "hipporag":
        return _hipporag(source, chosen)
    return _pooled(source, raws if selection.pool == "all" else chosen, chosen)


def _check(source: Source, selection: Selection) -> None:
    given = source.corpus is not None
    needed = source.format in ("ecphory", "hipporag")
    if given != needed:
        raise InputError(
            f"{source.name}: the format {source.format} needs a corpus file; name it as `corpus`"
            if needed
            else f"{source.name}: the format {source.format} holds its passages with the questions; leave `corpus` out"
        )
    if source.aliases is not None and source.format != "2wikimultihopqa":
        raise InputError(f"{source.name}: only 2wikimultihopqa has a file of aliases; leave `aliases` out")
    if needed and selection.pool == "sample":
        raise InputError(f"{source.name}: a corpus that is given is not pooled again; leave `pool` out")
    if selection.pool == "sample" and (selection.passages is not None or selection.count == 0):
        raise InputError(f"{source.name}: `passages` and `questions = 0` are for the pool of all; leave `pool` out")


def _reader(source: Source) -> Callable[[], Iterator[RawQuestion]]:
    path = source.questions
    readers: Mapping[str, Callable[[], Iterator[RawQuestion]]] = {
        "hotpotqa": lambda: official.hotpotqa(path),
        "2wikimultihopqa": lambda: official.two_wiki(
            path, official.two_wiki_aliases(source.aliases) if source.aliases else {}
        ),
        "musique": lambda: official.musique(path),
        "hipporag": lambda: official.hipporag(path),
    }
    return readers[source.format]


def _chosen(ids: Sequence[str], selection: Selection, source: Source) -> list[str]:
    """The ids of the split, and of these the sample."""
    chosen = list(ids)
    if selection.development is not None and selection.split is not None:
        drawn = set(shuffled(chosen, "split")[: selection.development])
        chosen = [identity for identity in chosen if (identity in drawn) == (selection.split == "development")]
    if not chosen:
        raise InputError(
            f"{source.questions} has no {selection.split} questions: {selection.development} of {len(ids)} are for "
            "development; change `development`"
        )
    return chosen if selection.count is None else _sample(chosen, selection, source)


def _sample(ids: Sequence[str], selection: Selection, source: Source) -> list[str]:
    """The first ``count`` in the order that the seed draws."""
    count = selection.count or 0
    if count > len(ids):
        raise InputError(
            f"{source.questions} has {len(ids)} such questions, fewer than the {count} asked for; ask for "
            "fewer, or leave `questions` out for all"
        )
    return shuffled(ids, f"sample {selection.seed}")[:count]


def _asked(dataset: Dataset, ids: Sequence[str]) -> Dataset:
    by_id = {question.id: question for question in dataset.questions}
    return replace(dataset, questions=tuple(by_id[identity] for identity in ids))


def _pooled(source: Source, pooled: Sequence[RawQuestion], asked: Sequence[RawQuestion]) -> Dataset:
    pool = Pool(source.name, titles=source.titles)
    for raw in pooled:
        for passage in raw.passages:
            pool.add(passage.title, passage.text)
    notes = []
    if pool.merged:
        notes.append(f"{pool.merged} passages of {len(pooled)} questions were equal to others and merged")
    if pool.blank:
        notes.append(f"{pool.blank} passages have no text and were left out")
    questions = tuple(Question(raw.id, raw.text, gold_of(raw, pool), raw.answers, raw.type) for raw in asked)
    return _dataset(source, pool, questions, notes)


def _hipporag(source: Source, asked: Sequence[RawQuestion]) -> Dataset:
    """Gold passages are matched to the corpus by title and text, spaces aside, or by a title that one passage has."""
    corpus = source.corpus or source.questions
    pool = Pool(source.name, titles=source.titles)
    by_content: dict[tuple[str, str], str] = {}
    by_title: dict[str, set[str]] = {}
    for passage in official.hipporag_corpus(corpus):
        identity = pool.add(passage.title, passage.text)
        by_content[passage.title, _spaceless(passage.text)] = identity
        by_title.setdefault(passage.title, set()).add(identity)
    notes = [f"{pool.merged} passages were equal to others and merged"] if pool.merged else []
    questions = []
    for raw in asked:
        gold = []
        for passage in (each for each in raw.passages if each.gold):
            same_title = by_title.get(passage.title, set())
            identity = by_content.get((passage.title, _spaceless(passage.text))) or (
                next(iter(same_title)) if len(same_title) == 1 else ""
            )
            if not identity:
                raise InputError(
                    f"{source.questions}, id {raw.id}: the gold passage {passage.title!r} is not in {corpus}; do the "
                    "two files belong together?"
                )
            gold.append(identity)
        if raw.missing:
            raise InputError(f"{source.questions}, id {raw.id}: {raw.missing[0]!r} is needed and not in its context")
        questions.append(Question(raw.id, raw.text, tuple(dict.fromkeys(gold)), raw.answers, raw.type))
    return _dataset(source, pool, tuple(questions), notes)


def _spaceless(text: str) -> str:
    return "".join(text.split())


def _dataset(source: Source, pool: Pool, questions: tuple[Question, ...], notes: Sequence[str]) -> Dataset:
    documents = pool.documents()
    missing = sum(any(gold not in pool for gold in question.gold) for question in questions)
    found = [*notes]
    if missing:
        found.append(f"{missing} of {len(questions)} questions need a passage that the file does not hold")
    return Dataset(documents, questions, _digests(source, content_digest(documents)), tuple(found))


def _with_given_corpus(source: Source, selection: Selection) -> Dataset:
    whole = load_dataset(source.corpus or source.questions, source.questions, titles=source.titles)
    chosen = _chosen([question.id for question in whole.questions], selection, source)
    return replace(_asked(whole, chosen), digests=_digests(source, content_digest(whole.documents)))


def _digests(source: Source, corpus: str) -> dict[str, str]:
    """``corpus`` of the documents as they are used; ``questions`` of the file, with its aliases."""
    state = hashlib.sha256(source.questions.read_bytes())
    if source.aliases is not None:
        state.update(source.aliases.read_bytes())
    return {"corpus": corpus, "questions": state.hexdigest()}
