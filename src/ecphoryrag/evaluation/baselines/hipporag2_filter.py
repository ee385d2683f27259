"""Recognition memory: which of the facts that are like the question help to answer it.

Gutiérrez et al. (2025), "From RAG to Memory", section 3.4 and appendix on the triple filter. The prompt is our own;
the reply names facts by number, where the publication has the model write them out again and takes the nearest. As
in the public code, a model whose reply cannot be used leaves no fact, so that the dense ranking stands; a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ecphoryrag.calls.asking import Request
from ecphoryrag.calls.quoting import one_line
from ecphoryrag.errors import PromptTooLong, Rejected
from ecphoryrag.evaluation.baselines import language
from ecphoryrag.evaluation.baselines.port import Kit
from ecphoryrag.evaluation.baselines.triples import Triple
from ecphoryrag.types import JsonValue, Message, Usage

METHOD = "the recognition filter of hipporag2"
TOKENS = 128

SYSTEM = f"""\
You are given a question and numbered facts. Name the facts that help to find the answer, also those that are only a \
step on the way to it. Leave out facts on other matters; often that is all of them.
Reply with one JSON object: {{"facts": [numbers]}}
{language.QUOTED}"""
_EXAMPLE = (
    ("ines duarte", "founded", "mill lane bakery"),
    ("harvest fair", "first held in", "1921"),
    ("ines duarte", "was born in", "porto"),
)
_EXAMPLE_QUESTION = "In which city was the founder of Mill Lane Bakery born?"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Positions of the facts that were kept, as the model ordered them, and what the choice cost."""

    kept: tuple[int, ...]
    usage: Usage
    notes: tuple[str, ...] = ()


def recognised(question: str, facts: Sequence[Triple], kit: Kit) -> Chosen:
    """The facts that the language model keeps; none, with a note, if its reply cannot be used.

    Raises ModelError if the model cannot be asked.
    """
    numbers: list[JsonValue] = list(range(1, len(facts) + 1))
    request = Request(
        "cue",
        (
            Message("system", SYSTEM),
            Message("user", _shown(_EXAMPLE_QUESTION, _EXAMPLE)),
            Message("assistant", '{"facts": [1, 3]}'),
            Message("user", _shown(question, facts)),
        ),
        language.record(facts={"type": "array", "maxItems": len(facts), "items": {"type": "integer", "enum": numbers}}),
        TOKENS,
        lambda value: language.numbers_of(value, "facts", len(facts)),
    )
    try:
        asked = language.ask(request, kit, METHOD)
    except (Rejected, PromptTooLong) as error:
        return Chosen((), error.usage, (f"no fact was kept, since the filter's reply could not be used: {error}",))
    return Chosen(asked.value, asked.usage, asked.notes)


def _shown(question: str, facts: Sequence[Sequence[str]]) -> str:
    lines = [f"{number}. {' | '.join(fact)}" for number, fact in enumerate(facts, 1)]
    return f"{language.data('Facts', lines)}\nQuestion: {one_line(question)}"
