"""What the model said, taken at its word only as far as it can be checked."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ecphoryrag.types import Generation, JsonValue

_NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
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


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a reply cannot be used, in words that both the user and the model understand."""

    what: str


def check_reply(generation: Generation, evidence: int) -> Reply | Problem:
    """The reply to a prompt with ``evidence`` numbered pieces, or what is wrong with it. Raises nothing."""
    if generation.finish_reason == "length":
        return Problem("the reply was cut off because it was too long")
    try:
        said = json.loads(generation.text)
    except (ValueError, RecursionError):
        return Problem("the reply is not valid JSON")
    if not isinstance(said, dict):
        return Problem("the reply is not a JSON object")
    return _check_fields(said, evidence)


def _check_fields(said: dict[str, JsonValue], evidence: int) -> Reply | Problem:
    reasoning, answer, cited = said.get("reasoning", ""), said.get("answer"), said.get("evidence", [])
    if not isinstance(reasoning, str) or not isinstance(answer, str | None):
        return Problem("the reply's fields are not as asked for")
    reasoning, answer = _plain(reasoning), _short(answer)
    if answer is None:
        return Reply(reasoning.strip(), None, ())
    numbers = _integers(cited)
    if numbers is None:
        return Problem("the reply does not give the numbers of the evidence it used as a list of integers")
    unknown = [number for number in numbers if not 1 <= number <= evidence]
    if unknown:
        return Problem(f"the reply cites evidence that was not given ({_named(unknown)}); there is 1 to {evidence}")
    if not numbers:
        return Problem("the reply gives an answer and cites no evidence for it")
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


def _plain(text: str) -> str:
    """Without what JSON's escapes may smuggle in: halves of surrogate pairs, which no file takes, and controls."""
    return _NOT_TEXT.sub(" ", text)


def _short(answer: str | None) -> str | None:
    """The answer on one line, without the full stop of a sentence that it is not; None if it says there is none."""
    if answer is None:
        return None
    words = _plain(answer).split()
    text = " ".join(words)
    if len(words) > 1 and text.endswith(".") and text.count(".") == 1:
        text = text[:-1]
    return None if text.casefold().strip(" .") in _NO_ANSWER or not text else text
