"""The method ``closed-book``: the language model alone, without any evidence. What retrieval adds shows against it.

Its instructions are the shared reader's (:mod:`ecphoryrag.answering.prompt`) less all that speaks of evidence; there is
no worked example, since those show how evidence is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ecphoryrag.calls.asking import Request, ask
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.errors import ModelError, ModelNotAvailable
from ecphoryrag.evaluation.baselines.options import Options
from ecphoryrag.evaluation.baselines.port import Indexed, Kit, Retrieved
from ecphoryrag.ports import Generator, JsonSchema
from ecphoryrag.types import Answer, Document, JsonValue, Message, Recall, Usage

NAME = "closed-book"

SYSTEM = """\
You answer questions from what you know. Reply with one JSON object:
{"reasoning": "...", "answer": "..."}
- reasoning: one or two short sentences. Follow the question step by step and name the fact each step rests on.
- answer: only the name, place, date, number, or yes or no that was asked for, as short as possible. Use the language \
of the question. A yes-or-no question is answered "yes" or "no"; a question that compares two things is answered with \
the name of the one that fits. If you are not sure, give the answer that is most likely."""

SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {
        "reasoning": {"type": "string", "maxLength": 400},
        "answer": {"type": "string", "minLength": 1, "maxLength": 200},
    },
    "required": ["reasoning", "answer"],
    "additionalProperties": False,
}
"""The lengths are those of the shared reader."""


def make(kit: Kit) -> ClosedBook:
    """Raises SettingsError for any parameter, and ModelNotAvailable if the kit has no language model."""
    Options(NAME, kit.parameters).finish()
    if kit.generator is None:
        raise ModelNotAvailable(f"{NAME} is a language model alone, and the run has none: set `generator`")
    return ClosedBook(kit.generator, kit.settings.answering.answer_tokens)


class ClosedBook:
    """Answers without looking anything up."""

    name = NAME

    def __init__(self, generator: Generator, max_tokens: int) -> None:
        self._generator = generator
        self._max_tokens = max_tokens

    def index(self, documents: Sequence[Document]) -> Indexed:
        """Nothing is kept."""
        del documents
        return Indexed(Usage(), 0.0)

    def retrieve(self, question: str, k: int) -> Retrieved:
        """Nothing."""
        del k
        return Retrieved((), Recall(question, NAME, (), reason="this method looks nothing up"))

    def answer(self, question: str) -> Answer:
        """The model's own; a failure of the model is the answer's reason."""
        recall = Recall(question, NAME, ())
        bare = Answer(question, None, "", (), (), recall, Usage(), model=self._generator.name)
        request = Request(
            "answer",
            (Message("system", SYSTEM), Message("user", f"Question: {question}")),
            SCHEMA,
            self._max_tokens,
            _read,
        )
        try:
            asked = ask(request, self._generator)
        except ModelError as error:
            reason = f"the language model gave no answer: {error}"
            return replace(bare, usage=error.usage, notes=error.notes, reason=reason)
        reasoning, text = asked.value
        return replace(bare, text=text, reasoning=reasoning, usage=asked.usage, notes=asked.notes)

    def close(self) -> None:
        """Nothing to release."""


def _read(value: JsonValue) -> tuple[str, str]:
    """(reasoning, answer). Raises Unusable."""
    if not isinstance(value, dict):
        raise Unusable("the reply is no JSON object")
    reasoning, text = value.get("reasoning", ""), value.get("answer")
    if not isinstance(text, str) or not text.strip():
        raise Unusable('"answer" must be text that is not blank')
    return str(reasoning), text.strip()
