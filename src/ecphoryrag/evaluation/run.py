"""An evaluation run: index a corpus into a temporary store, ask every question by every method, score."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.dataset import Dataset, load_dataset
from ecphoryrag.evaluation.methods import (
    CANNOT_RUN,
    DEFAULT,
    FLAT,
    METHODS,
    Asked,
    ProgressBar,
    ask_all,
    check_methods,
)
from ecphoryrag.evaluation.metrics import RANKED, PerQuestion, require_ir_measures, score
from ecphoryrag.evaluation.provenance import machine, peak_memory_mb, versions
from ecphoryrag.evaluation.ranking import Ranking
from ecphoryrag.evaluation.report import (
    COMPARED,
    Comparison,
    EvaluationReport,
    IndexResult,
    MethodResult,
    QuestionOutcome,
    QuestionRow,
)
from ecphoryrag.evaluation.statistics import paired_bootstrap, standard_error
from ecphoryrag.indexing import Progress
from ecphoryrag.memory import Memory
from ecphoryrag.settings import Settings
from ecphoryrag.settings.models import encoder_name
from ecphoryrag.types import JsonValue


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """What to evaluate. Raises InputError for a method or encoder that does not exist."""

    corpus: Path
    questions: Path
    methods: tuple[str, ...] = METHODS
    encoder: str = "static"
    titles: bool = True
    """False blanks every title, for every method."""
    limit: int | None = None
    """Only the first questions; the corpus stays whole."""

    def __post_init__(self) -> None:
        check_methods(self.methods)
        try:
            encoder_name(self.encoder)
        except ValueError as error:
            raise InputError(f"unknown encoder: {error}") from error


def evaluate(request: EvaluationRequest, settings: Settings, progress: ProgressBar | None = None) -> EvaluationReport:
    """Run it. The store lies in a temporary folder and is gone afterwards.

    A question on which a method raises is a wrong answer with its error kept; a method that cannot run at all (one
    that needs vectors, with the encoder ``none``) is reported with its reason. Raises InputError for data that cannot
    be used, and EcphoryError if the extra `eval` is missing.
    """
    require_ir_measures()
    tell = progress or _silent
    dataset = load_dataset(request.corpus, request.questions, titles=request.titles, limit=request.limit)
    settings = settings.model_copy(update={"encoder": request.encoder})
    with tempfile.TemporaryDirectory(prefix="ecphory-eval-") as folder:
        store = Path(folder) / "store.ecphory"
        index = _index(dataset, store, settings, tell)
        first, again = (
            _open_and_first_recall(store, settings, request.methods, dataset.questions[0].text) for _ in range(2)
        )
        with Memory.open(store, settings=settings, create=False) as memory:
            encoder = memory.status().encoder
            vectors = encoder.dimension > 0
            asked = [ask_all(memory, method, dataset.questions, tell, vectors=vectors) for method in request.methods]
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        index = replace(
            index,
            open_and_first_recall_ms=first,
            reopen_and_first_recall_ms=again,
            rss_mb=peak_memory_mb(),
            store_bytes=sum(file.stat().st_size for file in files),
        )
    made_with: dict[str, JsonValue] = {
        "methods": list(request.methods),
        "encoder": request.encoder,
        "encoder_version": encoder.version,
        "encoder_dimension": encoder.dimension,
        "encoder_fingerprint": encoder.fingerprint,
        "titles": request.titles,
        "limit": request.limit,
        "documents_ranked": RANKED,
        "indexing": settings.indexing.model_dump(mode="json"),
        "recall": settings.recall.model_dump(mode="json"),
    }
    return _report(dataset, index, asked, made_with)


def _index(dataset: Dataset, store: Path, settings: Settings, tell: ProgressBar) -> IndexResult:
    """Index the whole corpus. What later steps measure stands at zero."""

    def show(progress: Progress) -> None:
        tell("index", progress.done, len(dataset.documents))

    start = time.perf_counter()
    with Memory.open(store, settings=settings) as memory:
        added = memory.add(dataset.documents, progress=show)
        seconds = time.perf_counter() - start
        status = memory.status()
    return IndexResult(
        seconds=seconds,
        passages=status.documents,
        chunks=status.chunks,
        entities=status.entities,
        mentions=status.mentions,
        empty_chunks=status.empty_chunks,
        llm_tokens=added.usage.input_tokens + added.usage.output_tokens,
        rss_mb=None,
        store_bytes=0,
        text_bytes=dataset.text_bytes,
        open_and_first_recall_ms=None,
        reopen_and_first_recall_ms=None,
        failed=tuple((failure.source, failure.reason) for failure in added.failed),
    )


def _open_and_first_recall(store: Path, settings: Settings, methods: Sequence[str], question: str) -> float | None:
    """Milliseconds from a closed store to the first recall, by the first method that can run; None if none can."""
    for method in methods:
        start = time.perf_counter()
        with Memory.open(store, settings=settings, create=False) as memory:
            try:
                memory.recall(question, k=RANKED, method=method)
            except CANNOT_RUN:
                continue
            return (time.perf_counter() - start) * 1000
    return None


def _report(
    dataset: Dataset, index: IndexResult, asked: Sequence[Asked], made_with: Mapping[str, JsonValue]
) -> EvaluationReport:
    """Score the rankings, compare the methods, and set out a row a question."""
    gold = [question.gold for question in dataset.questions]
    scores = {each.method: score(each.rankings, gold) for each in asked if each.unavailable is None}
    comparisons = tuple(
        Comparison(DEFAULT, other, paired_bootstrap(scores[DEFAULT][COMPARED], figures[COMPARED]))
        for other, figures in scores.items()
        if DEFAULT in scores and other != DEFAULT
    )
    best = best_flat(scores)
    data: dict[str, JsonValue] = {
        "corpus_sha256": dataset.digests["corpus"],
        "questions_sha256": dataset.digests["questions"],
        "documents": len(dataset.documents),
        "questions": len(dataset.questions),
    }
    return EvaluationReport(
        methods=tuple(_result(each, scores.get(each.method, {})) for each in asked),
        index=index,
        comparison=next((each for each in comparisons if each.baseline == best), None),
        comparisons=comparisons,
        questions=_rows(dataset, asked, scores),
        settings=made_with,
        versions=versions(),
        machine=machine(),
        data=data,
    )


def best_flat(scores: Mapping[str, Mapping[str, PerQuestion]]) -> str | None:
    """The flat method with the highest mean recall@5, the first of equals; None if none ran.

    Choosing it after seeing its figures favours it: the comparison with it errs on the careful side.
    """
    flat = [method for method in scores if method in FLAT]
    return max(flat, key=lambda method: float(scores[method][COMPARED].mean()), default=None)


def _result(asked: Asked, figures: Mapping[str, PerQuestion]) -> MethodResult:
    if asked.unavailable is not None:
        return MethodResult(asked.method, unavailable=asked.unavailable)
    rankings = [outcome for outcome in asked.outcomes if isinstance(outcome, Ranking)]
    times = [ranking.milliseconds for ranking in rankings]
    return MethodResult(
        method=asked.method,
        figures={name: float(values.mean()) for name, values in figures.items()},
        standard_errors={name: standard_error(values) for name, values in figures.items()},
        p50_ms=float(np.percentile(times, 50)) if times else None,
        p95_ms=float(np.percentile(times, 95)) if times else None,
        errors=len(asked.outcomes) - len(rankings),
        empty=sum(not ranking.documents for ranking in rankings),
    )


def _rows(
    dataset: Dataset, asked: Sequence[Asked], scores: Mapping[str, Mapping[str, PerQuestion]]
) -> tuple[QuestionRow, ...]:
    ran = [each for each in asked if each.unavailable is None]
    rows = []
    for position, question in enumerate(dataset.questions):
        outcomes = {}
        for each in ran:
            figures = {name: float(values[position]) for name, values in scores[each.method].items()}
            outcomes[each.method] = _outcome(each.outcomes[position], figures)
        rows.append(QuestionRow(question.id, question.text, question.gold, outcomes))
    return tuple(rows)


def _outcome(outcome: Ranking | str, figures: Mapping[str, float]) -> QuestionOutcome:
    if isinstance(outcome, str):
        return QuestionOutcome(figures=figures, error=outcome)
    return QuestionOutcome(outcome.documents, figures, outcome.milliseconds, outcome.chunks_asked, outcome.reason)


def _silent(what: str, done: int, total: int | None) -> None:
    """No progress asked for."""
