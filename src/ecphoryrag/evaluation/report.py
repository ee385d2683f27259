"""The outcome of an evaluation as values, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from ecphoryrag.evaluation.statistics import LEVEL, RESAMPLES, SEED, Interval
from ecphoryrag.types import JsonValue

COMPARED = "recall@5"
"""The figure that methods are compared by."""


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One method over all questions."""

    method: str
    figures: Mapping[str, float] = field(default_factory=dict)
    """Means over the questions, by the names of ``metrics.FIGURES``; empty if the method could not run."""
    standard_errors: Mapping[str, float | None] = field(default_factory=dict)
    p50_ms: float | None = None
    p95_ms: float | None = None
    errors: int = 0
    """Questions on which it raised; each counts as a wrong answer."""
    empty: int = 0
    """Questions for which it recalled nothing; each counts as a wrong answer."""
    unavailable: str | None = None
    """Why it could not run at all."""

    def to_json(self) -> dict[str, JsonValue]:
        """Flat, as documented in ``docs/evaluation.md``."""
        if self.unavailable is not None:
            return {"unavailable": self.unavailable}
        return {
            **self.figures,
            "p50_ms": self.p50_ms,
            "p95_ms": self.p95_ms,
            "errors": self.errors,
            "empty": self.empty,
            "standard_errors": dict(self.standard_errors),
        }


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What indexing cost and made."""

    seconds: float
    """From opening the new store (loading the encoder included) to the last commit."""
    passages: int
    """Documents: one record is one."""
    chunks: int
    entities: int
    mentions: int
    empty_chunks: int
    """Chunks in which the extractor found nothing."""
    llm_tokens: int
    """Tokens that a language model read and wrote while indexing."""
    rss_mb: float | None
    """Peak main memory of the process, in MiB, from its start to the end of the last recall; None if unknown."""
    store_bytes: int
    """All files of the store, caches included, after the last recall."""
    text_bytes: int
    """The documents' texts in UTF-8."""
    open_and_first_recall_ms: float | None
    """Opening the store after indexing and answering one question by the first method that can run: it builds the
    caches, if indexing left that to it. Imports aside."""
    reopen_and_first_recall_ms: float | None
    """The same a second time, with the caches there."""
    failed: tuple[tuple[str, str], ...] = ()
    """Documents that could not be taken in, with the reason."""

    def to_json(self) -> dict[str, JsonValue]:
        """Every field, ``failed`` as records."""
        failed: list[JsonValue] = [{"id": document, "reason": reason} for document, reason in self.failed]
        return {**asdict(self), "failed": failed}


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """One method on one question."""

    documents: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    milliseconds: float | None = None
    chunks_asked: int | None = None
    reason: str | None = None
    """What the method says about recalling nothing or little."""
    error: str | None = None
    """What it raised."""

    def to_json(self) -> dict[str, JsonValue]:
        """Flat; ``reason`` and ``error`` only where there is one."""
        row: dict[str, JsonValue] = {"documents": list(self.documents), **self.figures, "ms": self.milliseconds}
        row["chunks_asked"] = self.chunks_asked
        row |= {"reason": self.reason} if self.reason else {}
        row |= {"error": self.error} if self.error else {}
        return row


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One question under every method that could run."""

    id: str
    question: str
    gold: tuple[str, ...]
    outcomes: Mapping[str, QuestionOutcome]

    def to_json(self) -> dict[str, JsonValue]:
        """With one record a method."""
        methods: dict[str, JsonValue] = {method: outcome.to_json() for method, outcome in self.outcomes.items()}
        return {"id": self.id, "question": self.question, "gold": list(self.gold), "methods": methods}


@dataclass(frozen=True, slots=True)
class Comparison:
    """``ecphory`` against another method, question by question."""

    method: str
    baseline: str
    interval: Interval

    def to_json(self) -> dict[str, JsonValue]:
        """The interval with all that is needed to draw it again."""
        return {
            "metric": COMPARED,
            "method": self.method,
            "baseline": self.baseline,
            "difference": self.interval.difference,
            "low": self.interval.low,
            "high": self.interval.high,
            "level": LEVEL,
            "resamples": RESAMPLES,
            "seed": SEED,
            "above_zero": self.interval.above_zero,
        }


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """All that a run found, and what it was made with."""

    methods: tuple[MethodResult, ...]
    index: IndexResult
    comparison: Comparison | None
    """``ecphory`` against the best flat method of the run; None if either is missing."""
    comparisons: tuple[Comparison, ...]
    """``ecphory`` against every other method that ran."""
    questions: tuple[QuestionRow, ...]
    settings: Mapping[str, JsonValue]
    versions: Mapping[str, str]
    machine: Mapping[str, str | int]
    data: Mapping[str, JsonValue]

    def result(self, method: str) -> MethodResult | None:
        """The result of this method, if it was asked for."""
        return next((result for result in self.methods if result.method == method), None)

    def to_json(self, *, rows: bool = True) -> dict[str, JsonValue]:
        """The format that ``docs/evaluation.md`` describes; ``rows=False`` leaves the questions out."""
        methods: dict[str, JsonValue] = {result.method: result.to_json() for result in self.methods}
        report: dict[str, JsonValue] = {
            "methods": methods,
            "index": self.index.to_json(),
            "comparison": self.comparison.to_json() if self.comparison else None,
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
            "settings": dict(self.settings),
            "versions": dict(self.versions),
            "machine": dict(self.machine),
            "data": dict(self.data),
        }
        if rows:
            report["questions"] = [row.to_json() for row in self.questions]
        return report
