"""A corpus cut to a few passages, for what is too dear to measure on all of them, such as indexing by a model."""

from __future__ import annotations

from dataclasses import replace

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.dataset import Dataset, Question
from ecphoryrag.evaluation.datasets.pool import content_digest, shuffled


def few_passages(dataset: Dataset, count: int, seed: int, name: str) -> Dataset:
    """``count`` of the passages, in the corpus's order, and the questions whose gold is all among them.

    Questions are drawn by ``seed``, and their gold is taken as long as it fills no more than half of the passages; the
    rest is drawn from all other passages, so that what is indexed is not gold alone. Raises InputError if the corpus
    has fewer passages than that.
    """
    if count > len(dataset.documents):
        raise InputError(f"{name} has {len(dataset.documents)} passages, fewer than the {count} asked for")
    known = {document.id for document in dataset.documents}
    by_id = {question.id: question for question in dataset.questions}
    kept: set[str] = set()
    for identity in shuffled(by_id, f"few {seed}"):
        gold = kept.union(by_id[identity].gold)
        if len(gold) <= count // 2 and gold <= known:
            kept = gold
    others = shuffled(known - kept, f"few {seed}")
    kept.update(others[: count - len(kept)])
    documents = tuple(document for document in dataset.documents if document.id in kept)
    note = f"cut to {count} of {len(known)} passages, drawn by the seed {seed}, the gold of some questions among them"
    return replace(
        dataset,
        documents=documents,
        questions=tuple(question for question in dataset.questions if _within(question, kept)),
        digests={**dataset.digests, "corpus": content_digest(documents)},
        notes=(*dataset.notes, note),
    )


def _within(question: Question, kept: set[str]) -> bool:
    return kept.issuperset(question.gold)
