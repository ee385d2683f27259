"""One question in one cell: retrieve, answer, score."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ecphoryrag.answering import answer as read_evidence
from ecphoryrag.errors import JobStopped, ModelNotAvailable, SettingsError
from ecphoryrag.evaluation.answers import Normalisation, exact_match, f1
from ecphoryrag.evaluation.baselines.memory import ENTITY
from ecphoryrag.evaluation.baselines.port import Method, Retrieved
from ecphoryrag.evaluation.bench.models import Meter, PaidGenerator
from ecphoryrag.evaluation.bench.rows import QuestionRow
from ecphoryrag.evaluation.dataset import Question
from ecphoryrag.evaluation.methods import WRONG_ANSWER
from ecphoryrag.evaluation.metrics import FIGURES, RANKED, distinct, score
from ecphoryrag.settings.answering import AnsweringSettings
from ecphoryrag.types import Answer, Evidence, Recall, Usage

NO_ANSWER = (JobStopped, ModelNotAvailable, SettingsError)
"""Says nothing of the question: the run stops, or the method cannot run."""


@dataclass(frozen=True, slots=True)
class Asking:
    """What a cell asks with."""

    cell: str
    method: Method
    retrieves: bool
    generator: PaidGenerator | None
    """None: nothing is answered."""
    meter: Meter
    reading: AnsweringSettings
    k: int
    normalisation: Normalisation
    code: str


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came back, as far as it came."""

    retrieved: Retrieved | None = None
    answer: Answer | None = None
    error: str | None = None


def ask(asking: Asking, question: Question) -> QuestionRow:
    """The row. What the method raises because of this question is an error in it, and a wrong answer.

    The cost is counted here, whatever the method says: all that models took from the question to the answer. Where a
    method has its own way to an answer, its cost is that of this way, and retrieval, which is then asked for apart to
    have a ranking, is not counted twice. Raises what is no property of the question: JobStopped, ModelNotAvailable,
    SettingsError, and whatever :data:`ecphoryrag.evaluation.methods.WRONG_ANSWER` does not name.
    """
    asking.meter.take()
    start = time.perf_counter()
    own: Answer | None = None
    if asking.generator is not None:
        try:
            own = asking.method.answer(question.text)
        except NO_ANSWER:
            raise
        except WRONG_ANSWER as error:
            usage, replayed = asking.meter.take()
            seconds = time.perf_counter() - start + replayed
            return _row(asking, question, _Outcome(error=_said(error)), _Cost(usage, seconds))
    way, replayed = asking.meter.take()
    seconds = time.perf_counter() - start + replayed
    outcome, retrieval = _retrieve(asking, question, own)
    if own is not None:
        return _row(asking, question, outcome, _Cost(way, seconds, retrieval.seconds))
    reading, replayed = asking.meter.take()
    seconds = time.perf_counter() - start + replayed + retrieval.replayed
    return _row(asking, question, outcome, _Cost(retrieval.usage + reading, seconds, retrieval.seconds))


@dataclass(frozen=True, slots=True)
class _Cost:
    usage: Usage
    seconds: float
    retrieval: float = 0.0


@dataclass(frozen=True, slots=True)
class _Retrieval:
    usage: Usage
    seconds: float
    replayed: float


def _retrieve(asking: Asking, question: Question, answered: Answer | None) -> tuple[_Outcome, _Retrieval]:
    """Retrieve and, if nothing is answered yet and something is to be, let the shared reader answer."""
    try:
        retrieved = asking.method.retrieve(question.text, max(RANKED, asking.k))
    except NO_ANSWER:
        raise
    except WRONG_ANSWER as error:
        usage, replayed = asking.meter.take()
        return _Outcome(None, answered, _said(error)), _Retrieval(usage, replayed, replayed)
    usage, replayed = asking.meter.take()
    cost = _Retrieval(usage, retrieved.seconds + replayed, replayed)
    if asking.generator is None or answered is not None:
        return _Outcome(retrieved, answered), cost
    try:
        shown = for_reader(retrieved.recall, asking.k)
        answered = read_evidence(question.text, shown, asking.generator, asking.reading)
    except NO_ANSWER:
        raise
    except WRONG_ANSWER as error:
        return _Outcome(retrieved, None, _said(error)), cost
    return _Outcome(retrieved, answered), cost


def for_reader(recall: Recall, k: int) -> Recall:
    """The first ``k`` passages, and descriptions of entities, which do not count; without the cost, counted apart."""
    kept: list[Evidence] = []
    passages = 0
    for evidence in recall.chunks:
        if evidence.chunk.document_id.startswith(ENTITY):
            kept.append(evidence)
        elif passages < k:
            kept.append(evidence)
            passages += 1
    numbered = tuple(replace(evidence, number=number) for number, evidence in enumerate(kept, 1))
    return replace(recall, chunks=numbered, usage=Usage(), spending=())


def _row(asking: Asking, question: Question, outcome: _Outcome, cost: _Cost) -> QuestionRow:
    retrieved, answer = outcome.retrieved, outcome.answer
    documents = distinct(retrieved.documents)[:RANKED] if retrieved else ()
    shown = distinct(_document(evidence) for evidence in answer.evidence) if answer else ()
    reasons = (answer.reason if answer else None, retrieved.recall.reason if retrieved else None)
    return QuestionRow(
        cell=asking.cell,
        id=question.id,
        gold=question.gold,
        retrieved=documents,
        figures=_figures(asking, question, outcome, documents, shown),
        usage=replace(cost.usage, seconds=0.0, cached=0),  # the row has its own seconds; what was kept counts as paid
        seconds=cost.seconds,
        retrieval_seconds=cost.retrieval,
        answered=asking.generator is not None,
        answer=answer.text if answer else None,
        reasoning=answer.reasoning if answer else "",
        reason=next((reason for reason in reasons if reason), None),
        error=outcome.error,
        shown=shown,
        cited=answer.cited if answer else (),
        notes=tuple(dict.fromkeys([*(retrieved.notes if retrieved else ()), *(answer.notes if answer else ())])),
        code=asking.code,
        asked=words_hash(question.text),
    )


def words_hash(text: str) -> str:
    """16 hexadecimal digits of a hash of the text's words, whatever their case and spaces."""
    words = " ".join(text.casefold().split())
    return hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _figures(
    asking: Asking, question: Question, outcome: _Outcome, documents: tuple[str, ...], shown: tuple[str, ...]
) -> Mapping[str, float]:
    """An error is a wrong answer; what was brought back before it is counted all the same."""
    figures: dict[str, float] = {}
    if asking.generator is not None:
        said = outcome.answer.text if outcome.answer and outcome.error is None else None
        figures["em"] = exact_match(said, question.answers, asking.normalisation)
        figures["f1"] = f1(said, question.answers, asking.normalisation)
        figures["gold_shown"] = len(set(shown) & set(question.gold)) / len(question.gold)
    if asking.retrieves:
        scores = score([documents], [question.gold])
        figures |= {name: float(scores[name][0]) for name in FIGURES}
    return figures


def _document(evidence: Evidence) -> str:
    return evidence.chunk.document_id


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
