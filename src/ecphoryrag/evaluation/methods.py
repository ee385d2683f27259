"""Asking every question by one method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, get_args

from ecphoryrag.errors import EcphoryError, InputError, ModelNotAvailable, SettingsError
from ecphoryrag.evaluation.dataset import Question
from ecphoryrag.evaluation.ranking import Ranking, Recaller, rank_documents
from ecphoryrag.settings import MethodName

METHODS: tuple[str, ...] = get_args(MethodName)
DEFAULT = "ecphory"
FLAT = ("dense", "bm25", "hybrid")
"""Methods that rank chunks by likeness to the question alone."""
NEED_VECTORS = ("dense", "paper")
"""Methods that with the encoder ``none`` have nothing to go by; they then recall nothing, for any question."""

CANNOT_RUN = (ModelNotAvailable, SettingsError)
"""Raised by a method that the configuration does not allow at all."""
WRONG_ANSWER = (EcphoryError, ArithmeticError, LookupError, ValueError)
"""What the data of one question can make a computation raise: kept in its row and scored 0. Anything else (a
misspelt attribute, no memory left, Ctrl-C) is no property of the question and stops the run."""

ProgressBar: TypeAlias = Callable[[str, int, int | None], None]
"""Called with what is being done, how many are done, and of how many (None if unknown)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one method brought back: one outcome a question, in order, or the reason why there are none."""

    method: str
    outcomes: tuple[Ranking | str, ...] = ()
    """A ranking, or the error that the method raised."""
    unavailable: str | None = None

    @property
    def rankings(self) -> list[tuple[str, ...]]:
        """The documents for each question; none where the method raised."""
        return [outcome.documents if isinstance(outcome, Ranking) else () for outcome in self.outcomes]


def check_methods(methods: Sequence[str]) -> tuple[str, ...]:
    """The methods as they are. Raises InputError if there are none, one is unknown, or one is named twice."""
    known = f"the methods are {', '.join(METHODS)}"
    if not methods:
        raise InputError(f"no method to evaluate; {known}")
    for method in methods:
        if method not in METHODS:
            raise InputError(f"unknown method {method!r}; {known}")
        if list(methods).count(method) > 1:
            raise InputError(f"the method {method!r} is named twice; name each once")
    return tuple(methods)


def ask_all(
    recaller: Recaller, method: str, questions: Sequence[Question], progress: ProgressBar, *, vectors: bool = True
) -> Asked:
    """Every question, timed one by one after a first that is not timed, so that what is loaded once is not counted.

    ``vectors`` is False if the encoder makes none.

    The untimed one is the last question: should an implementation remember the vector of the question it saw last,
    the first timed question does not profit.
    """
    try:
        recaller.recall(questions[-1].text, k=1, method=method)
    except CANNOT_RUN as error:
        return Asked(method, unavailable=str(error))
    except WRONG_ANSWER:
        progress(method, 0, len(questions))  # this question is asked again below, where its error is kept
    outcomes: list[Ranking | str] = []
    for number, question in enumerate(questions, 1):
        try:
            outcomes.append(rank_documents(recaller, question.text, method))
        except WRONG_ANSWER as error:
            outcomes.append(f"{type(error).__name__}: {error}")
        progress(method, number, len(questions))
    asked = Asked(method, tuple(outcomes))
    if not vectors and method in NEED_VECTORS and not any(asked.rankings):
        return Asked(method, unavailable=_usual_reason(outcomes))
    return asked


def _usual_reason(outcomes: Sequence[Ranking | str]) -> str:
    """What most of the questions that recalled nothing were told."""
    reasons = Counter(outcome.reason if isinstance(outcome, Ranking) else outcome for outcome in outcomes)
    return reasons.most_common(1)[0][0] or "it needs vectors, and the encoder makes none"
