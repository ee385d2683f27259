"""What the model said, taken at its word only as far as it can be checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ecphoryrag.calls.quoting import plain
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.types import JsonValue

_NO_ANSWER = frozenset(
    ("null", "none", "unknown", "n/a", "not given", "not stated", "not specified", "not mentioned", "not available")
)
"""What small models write in place of a JSON null. None of it answers a question."""


MOST_NAMED = 4
LARGEST_NAMED = 10_000
"""How many unknown citations are named in a problem, and up to what size."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A well-formed reply. ``answer`` is None if the model says that the evidence does not give one."""

    reasoning: str
    answer: str | None
    cited: tuple[int, ...]
    """Distinct numbers of given evidence, in the order they were cited."""


def read_reply(said: JsonValue, evidence: int) -> Reply:
    """The reply to a prompt with ``evidence`` numbered pieces. Raises Unusable with what is wrong with it."""
    if not isinstance(said, dict):
        raise Unusable("the reply is not a JSON object")
    reasoning, answer, cited = said.get("reasoning", ""), said.get("answer"), said.get("evidence", [])
    if not isinstance(reasoning, str) or not isinstance(answer, str | None):
        raise Unusable("the reply's fields are not as asked for")
    reasoning, answer = plain(reasoning), _short(answer)
    if answer is None:
        return Reply(reasoning.strip(), None, ())
    numbers = _integers(cited)
    if numbers is None:
        raise Unusable("the reply does not give the numbers of the evidence it used as a list of integers")
    unknown = [number for number in numbers if not 1 <= number <= evidence]
    if unknown:
        raise Unusable(f"the reply cites evidence that was not given ({_named(unknown)}); there is 1 to {evidence}")
    if not numbers:
        raise Unusable("the reply gives an answer and cites no evidence for it")
    return Reply(reasoning.strip(), answer, numbers)


def _named(numbers: Sequence[int]) -> str:
    """The first of the numbers: the room for a correction in the next prompt is bounded, what a model says is not."""
    named = [str(number) if abs(number) < LARGEST_NAMED else "a very large number" for number in numbers[:MOST_NAMED]]
    return ", ".join(named) + (f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else "")


def _integers(values: JsonValue) -> tuple[int, ...] | None:
    """The distinct integers of a list in their order; None if it is something else."""
    if not isinstance(values, list):
        return None
    integers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    return tuple(dict.fromkeys(integers)) if len(integers) == len(values) else None


def _short(answer: str | None) -> str | None:
    """The answer on one line, without the full stop of a sentence that it is not; None if it says there is none."""
    if answer is None:
        return None
    words = plain(answer).split()
    text = " ".join(words)
    if len(words) > 1 and text.endswith(".") and text.count(".") == 1:
        text = text[:-1]
    return None if text.casefold().strip(" .") in _NO_ANSWER or not text else text
