"""The method ``react``: Yao et al. (2023), "ReAct: Synergizing Reasoning and Acting in Language Models".

Section 2 and 3.2: the model thinks, acts and observes in turns until it finishes with an answer. Departures:

- the action ``search`` asks ``dense`` over the corpus (the publication: Wikipedia, first sentences of a page); there is
  no ``lookup``, since passages are shown whole;
- at most 5 searches, as the publication has for FEVER (7 for HotpotQA); then the model must finish, where the
  publication ends without an answer or falls back on chain of thought with self-consistency;
- one worked example in our own words (the publication: six), and turns as JSON that follows a schema;
- a passage is shown once; where the turns do not fit the model's context, the oldest passages are left out.

Its ranking is the order in which its searches brought documents back, so that it may be shorter than asked for.

Parameters: ``rounds`` 5, ``passages`` 3 (a search).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ecphoryrag.calls.asking import Request
from ecphoryrag.calls.quoting import one_line
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.errors import PromptTooLong, Rejected
from ecphoryrag.evaluation.baselines import language
from ecphoryrag.evaluation.baselines.memory import MemoryMethod, make_named
from ecphoryrag.evaluation.baselines.options import Options
from ecphoryrag.evaluation.baselines.port import Indexed, Kit, Retrieved
from ecphoryrag.ports import JsonSchema
from ecphoryrag.types import Answer, Document, Evidence, JsonValue, Message, Recall, Usage

NAME = "react"
SEARCH, FINISH = "search", "finish"
TURN_TOKENS = 256
THOUGHT_CHARACTERS, INPUT_CHARACTERS = 400, 200

SYSTEM = f"""\
You answer a question by searching passages step by step. Each turn you reply with one JSON object:
{{"thought": "...", "action": "{SEARCH}" or "{FINISH}", "input": "..."}}
- thought: what is known so far and what is still missing, in a sentence or two.
- action {SEARCH}: input is a short query for the next missing fact, with the names found so far. You are then shown \
passages.
- action {FINISH}: input is the answer: only the name, place, date, number, or yes or no that was asked for.
{language.QUOTED}"""

_EXAMPLE_QUESTION = "Question: In which city was the founder of Mill Lane Bakery born?"
_EXAMPLE = (
    Message("user", _EXAMPLE_QUESTION),
    Message(
        "assistant",
        '{"thought": "I must find who founded Mill Lane Bakery.", "action": "search", '
        '"input": "founder of Mill Lane Bakery"}',
    ),
    Message("user", language.data("Passages", ["Mill Lane Bakery: It was founded by Ines Duarte and sold rye bread."])),
    Message(
        "assistant",
        '{"thought": "The founder is Ines Duarte. I need her place of birth.", "action": "search", '
        '"input": "Ines Duarte place of birth"}',
    ),
    Message("user", language.data("Passages", ["Ines Duarte: A baker, born in Porto."])),
    Message("assistant", '{"thought": "Ines Duarte was born in Porto.", "action": "finish", "input": "Porto"}'),
)
NOTHING_NEW = "The search found no passage that was not shown before. Try other words, or finish."
LEFT_OUT = "(shown before, left out for length)"
LAST = "No more searches: finish now, with the answer that is most likely."


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model did, as it wrote it, and what it was shown then."""

    thought: str
    action: str
    input: str
    shown: tuple[Evidence, ...] = ()
    """Passages that earlier turns had not been shown."""


@dataclass(frozen=True, slots=True)
class Trace:
    """All turns of a question, and how they ended."""

    question: str
    turns: tuple[Turn, ...] = ()
    text: str | None = None
    reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    searching: Usage = field(default_factory=Usage)
    """The part of the usage until the last search."""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def found(self) -> tuple[Evidence, ...]:
        """What the searches brought back, in order, numbered."""
        pieces = [piece for turn in self.turns for piece in turn.shown]
        return tuple(replace(piece, number=number) for number, piece in enumerate(pieces, 1))


def make(kit: Kit) -> ReAct:
    """The method. Raises SettingsError for a parameter it does not have, and ModelNotAvailable without a model."""
    options = Options(NAME, kit.parameters)
    rounds, passages = options.count("rounds", 5), options.count("passages", 3)
    options.finish()
    language.model_of(kit, NAME)
    return ReAct(kit, rounds, passages)


class ReAct:
    """Thinks and searches in turns."""

    name = NAME

    def __init__(self, kit: Kit, rounds: int, passages: int) -> None:
        self._kit = kit
        self._rounds = rounds
        self._passages = passages
        self._dense: MemoryMethod = make_named("dense", replace(kit, parameters={}))
        self._last: Trace | None = None

    def index(self, documents: Sequence[Document]) -> Indexed:
        """That of ``dense``."""
        return self._dense.index(documents)

    def retrieve(self, question: str, k: int) -> Retrieved:
        """The documents that the searches brought back, in order. Raises ModelError."""
        trace = self._trace(question)
        documents = tuple(dict.fromkeys(piece.chunk.document_id for piece in trace.found))[:k]
        kept = tuple(piece for piece in trace.found if piece.chunk.document_id in documents)
        recall = self._recall(trace, kept)
        return Retrieved(documents, recall, trace.searching, trace.seconds, trace.notes)

    def answer(self, question: str) -> Answer:
        """What the model finished with; its usage is that of all turns. Raises ModelError."""
        trace = self._trace(question)
        return Answer(
            question,
            trace.text,
            " ".join(turn.thought for turn in trace.turns),
            trace.found,
            (),
            self._recall(trace, trace.found),
            trace.usage,
            trace.reason,
            language.model_of(self._kit, NAME).name,
            trace.notes,
        )

    def close(self) -> None:
        """Close the store."""
        self._dense.close()

    def _recall(self, trace: Trace, kept: tuple[Evidence, ...]) -> Recall:
        reason = None if kept else "the model searched for nothing, or found nothing"
        return Recall(trace.question, NAME, kept, reason=reason, usage=trace.searching)

    def _trace(self, question: str) -> Trace:
        """Of the question asked last it is remembered: answering and retrieving are one piece of work."""
        if self._last is None or self._last.question != question:
            started = time.perf_counter()
            trace = self._run(Trace(question))
            self._last = replace(trace, seconds=time.perf_counter() - started)
        return self._last

    def _run(self, trace: Trace) -> Trace:
        for number in range(self._rounds + 1):
            may_search = number < self._rounds
            try:
                turn, usage, notes = self._ask(trace, may_search=may_search)
            except (Rejected, PromptTooLong) as error:
                reason = f"the language model gave no usable turn: {error}"
                return replace(trace, reason=reason, usage=trace.usage + error.usage)
            trace = replace(trace, usage=trace.usage + usage, notes=(*trace.notes, *notes))
            if turn.action == FINISH:
                return replace(trace, turns=(*trace.turns, turn), text=turn.input)
            retrieved = self._dense.retrieve(turn.input, self._passages)
            usage = trace.usage + retrieved.usage
            known = {piece.chunk for piece in trace.found}
            new = tuple(piece for piece in retrieved.recall.chunks if piece.chunk not in known)
            trace = replace(trace, turns=(*trace.turns, replace(turn, shown=new)), usage=usage, searching=usage)
        raise AssertionError("the last turn can only finish")

    def _ask(self, trace: Trace, *, may_search: bool) -> tuple[Turn, Usage, tuple[str, ...]]:
        """The next turn; the oldest passages are left out until the prompt fits. Raises ModelError."""
        actions = (SEARCH, FINISH) if may_search else (FINISH,)
        total = len(trace.found)
        for left_out in range(total + 1):
            request = Request(
                "answer",
                _messages(trace, left_out, may_search=may_search),
                _schema(actions),
                TURN_TOKENS,
                lambda value: _turn(value, actions),
                tuple(dict.fromkeys(piece.chunk.document_id for piece in trace.found)),
            )
            try:
                asked = language.ask(request, self._kit, NAME)
            except PromptTooLong:
                if left_out == total:
                    raise
                continue
            note = (f"{left_out} of {total} passages did not fit the model's context",) if left_out else ()
            return asked.value, asked.usage, (*note, *asked.notes)
        raise AssertionError("the loop ends with a turn or an error")


def _messages(trace: Trace, left_out: int, *, may_search: bool) -> tuple[Message, ...]:
    """The conversation so far, without the first ``left_out`` passages."""
    messages = [Message("system", SYSTEM), *_EXAMPLE, Message("user", f"Question: {one_line(trace.question)}")]
    for turn in trace.turns:
        kept = turn.shown[left_out:]
        left_out = max(0, left_out - len(turn.shown))
        lines = [f"{piece.title}: {piece.chunk.text}" if piece.title else piece.chunk.text for piece in kept]
        missing = LEFT_OUT if turn.shown else NOTHING_NEW
        said = {"thought": turn.thought, "action": turn.action, "input": turn.input}
        messages.append(Message("assistant", language.written(said)))
        messages.append(Message("user", language.data("Passages", lines) if lines else missing))
    if not may_search:
        messages[-1] = replace(messages[-1], content=f"{messages[-1].content}\n{LAST}")
    return tuple(messages)


def _schema(actions: tuple[str, ...]) -> JsonSchema:
    return language.record(
        thought={"type": "string", "maxLength": THOUGHT_CHARACTERS},
        action={"type": "string", "enum": list(actions)},
        input={"type": "string", "minLength": 1, "maxLength": INPUT_CHARACTERS},
    )


def _turn(value: JsonValue, actions: tuple[str, ...]) -> Turn:
    """Raises Unusable."""
    thought, action, given = (language.text_of(value, name) for name in ("thought", "action", "input"))
    turn = Turn(thought, action, given)
    if turn.action not in actions:
        raise Unusable(f'"action" must be {" or ".join(actions)}')
    if not turn.input:
        raise Unusable('"input" must not be empty')
    return turn
